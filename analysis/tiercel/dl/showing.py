"""What `tiercel dl run` tells people of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tiercel.dl.running import Ran
from tiercel.engines import Measurement
from tiercel.units import format_bandwidth, format_duration, format_share

#: Of an epoch: the share, and so many times what the steps took that count, from which on it is told that
#: utilisation leaves something out. Less is what every first step takes.
_SHARE, _TIMES = 0.2, 3


def print_run(ran: Ran) -> None:
    """Print a heading, what is to be minded, and a line for each operation."""
    print(f"{ran.workload.workload} on {ran.engine} {ran.version}, processes: {ran.processes}, {ran.scale}")
    run = ran.details.get("run", {})
    rows = run.get("rows", [])
    for line in (*_data(ran, run), *_not_done(ran, rows), *_utilisation(rows)):
        print(f"  {line}")
    for m in ran.measurements:
        print(f"  {m.operation:17} {', '.join(_parts(m))}")


def _data(ran: Ran, run: dict[str, Any]) -> Iterator[str]:
    if ran.dataset is not None:
        yield f"dataset: {ran.dataset} ({'was there' if ran.found_dataset else 'made for this run'})"
    for split, files in run.get("files", {}).items():
        if files["there"] > files["used"]:
            yield f"{split}: the first {files['used']} of the {files['there']} files that are there"
    if ran.without_effect:
        yield f"without effect here: {', '.join(ran.without_effect)} (tiercel dl check says why)"


def _not_done(ran: Ran, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Say what the workload states and its samples or epochs do not reach, as DLIO passes over it."""
    workload, _ = ran.workload.resolved(1, ran.processes)
    trained = [row for row in rows if row["kind"] == "train"]
    if not trained:
        return
    steps, stated = min(row["steps"] for row in trained), workload.train.total_training_steps
    if steps < stated:
        yield f"train.total_training_steps: {stated}, of which each process has samples for {steps}"
    kinds = {row["kind"] for row in rows}
    if workload.workflow.evaluation and "eval" not in kinds:
        first = workload.evaluation.eval_after_epoch
        yield f"no evaluation: evaluation.eval_after_epoch: {first}, of {len(trained)} epochs"
    point = workload.checkpoint
    if workload.workflow.checkpoint and "checkpoint-write" not in kinds:
        between, first = point.steps_between_checkpoints, point.checkpoint_after_epoch
        by_steps = f"checkpoint.steps_between_checkpoints: {between}, and an epoch has {steps}"
        by_epochs = f"checkpoint.checkpoint_after_epoch: {first}, of {len(trained)} epochs"
        yield f"no checkpoint was written: {by_steps if between > 0 else by_epochs}"


def _utilisation(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    if short := sum(row.get("short_blocks", 0) for row in rows):
        blocks = sum(row.get("blocks", 0) for row in rows)
        yield (
            f"AU: {short} of {blocks} runs of steps are too short to leave out any (output.metric): all "
            "their steps count, the first one too, which is the slowest"
        )
    told = [row for row in rows if _leaves_much_out(row)]
    if told:
        left, whole = (sum(row[key] for row in told) for key in ("left_out", "seconds"))
        yield (
            f"AU leaves out {left:.3g} of {whole:.3g} s of {len(told)} epochs (output.metric): their first "
            "steps, with all that is looked up and read ahead for them"
        )


def _leaves_much_out(row: dict[str, Any]) -> bool:
    left, whole = float(row.get("left_out", 0.0)), float(row["seconds"])
    counted = (whole - left) / max(1, row.get("steps", 0) - 1)
    return left > _SHARE * whole and left > _TIMES * counted


def _parts(m: Measurement) -> Iterator[str]:
    seconds = m.total_time or 0.0
    yield format_duration(seconds) if seconds >= 10 else f"{seconds:.2f} s"
    rate, au, io, felt = map(m.metrics.get, ("samples_per_second", "au", "io_time", "nonoverlapped_io"))
    if rate is not None:
        yield f"{rate:.4g} samples/s"
    if au is not None:
        goal = m.metrics.get("au_goal") or 0.0
        yield f"AU {format_share(au, 1)} ({'passes' if au >= goal else 'below'} {format_share(goal)})"
    if m.bytes_moved:
        yield format_bandwidth(m.bandwidth or 0.0)
    if felt is not None and io:
        yield f"I/O {io:.3g} s, of which {felt:.3g} s not hidden"
    if m.resident_fraction is not None:
        # Not the share of hits: files read in a cycle may be evicted just before they are read again.
        yield f"page cache held {format_share(m.resident_fraction)} of the dataset at its start"
