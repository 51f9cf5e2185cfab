"""Reads what DLIO leaves: ``summary.json``, ``per_epoch_stats.json`` and ``<rank>_output.json``.

Only the summary is always there (what others published often has no more). Units as in the files: seconds,
percent, samples; times of day are local times of rank 0's node. Tried on DLIO of 2023 to 2.0.0 and on MLPerf
Storage 1.0 results.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed


@dataclass(frozen=True)
class Span:
    """Part of a run, on rank 0. Seconds; `began` since the epoch, by local time."""

    epoch: int
    name: str
    """``block1`` for steps between checkpoints, ``ckpt1`` for a checkpoint, ``eval``, ``epoch``."""
    began: float
    seconds: float


@dataclass(frozen=True)
class Steps:
    """Steps of one rank in one block of one epoch. Seconds for each step, in order."""

    rank: int
    epoch: int
    block: str
    load: tuple[float, ...]
    """Waiting for a batch. After a checkpoint the first step's is missing."""
    process: tuple[float, ...]
    """Waiting and computing."""
    compute: tuple[float, ...]
    """Computing, as asked for: DLIO does not measure it."""


@dataclass(frozen=True)
class DLIOResults:
    """A DLIO run. Lists have one entry for each epoch (or evaluation)."""

    accelerators: int
    hosts: int | None
    utilisation: tuple[float, ...]
    """Accelerator utilisation in percent, without the first step of each epoch."""
    throughput: tuple[float, ...]
    """Samples per second of all ranks together."""
    eval_throughput: tuple[float, ...]
    io_mib: float | None
    """Mean MiB/s by the record length that was asked for, as DLIO states it."""
    meets_expectation: bool | None
    started: float | None
    ended: float | None
    files_train: int | None
    samples_per_file: int | None
    spans: tuple[Span, ...] = ()
    steps: tuple[Steps, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return len(self.utilisation)

    def steps_of(self, epoch: int) -> list[Steps]:
        """Return the training steps of one epoch, evaluation left out."""
        return [s for s in self.steps if s.epoch == epoch and s.block != "eval"]

    def span(self, epoch: int, name: str) -> Span | None:
        return next((s for s in self.spans if s.epoch == epoch and s.name == name), None)


def read_results(folder: Path, ranks: int | None = None) -> DLIOResults:
    """Return the results in `folder`.

    With `ranks`, nothing may be missing: per-epoch statistics and every rank's steps must be there. Raises
    RunFailed that names the file for one that is missing, torn, or contradicts the others.
    """
    path = folder / "summary.json"
    summary = _json(path)
    metric = summary.get("metric")
    if not isinstance(metric, dict) or "train_au_percentage" not in metric:
        raise RunFailed(f"{path.name} has no metric.train_au_percentage: the training did not end")
    utilisation = _numbers(path, metric, "train_au_percentage")
    throughput = _numbers(path, metric, "train_throughput_samples_per_second")
    if len(utilisation) != len(throughput):
        raise RunFailed(
            f"{path.name}: {len(utilisation)} epochs of utilisation, {len(throughput)} of throughput"
        )
    strict = ranks is not None
    accelerators = summary.get("num_accelerators")
    if not isinstance(accelerators, int) or accelerators < 1:
        raise RunFailed(f"{path.name} has no num_accelerators")
    if strict and accelerators != ranks:
        raise RunFailed(f"{path.name} is of {accelerators} processes where {ranks} were started")
    spans = _spans(folder / "per_epoch_stats.json", strict)
    steps = _all_steps(folder, accelerators, strict)
    if strict:
        _whole(folder, len(utilisation), spans, steps)
    meets = metric.get("train_au_meet_expectation")
    io = metric.get("train_io_mean_MB_per_second")
    return DLIOResults(
        accelerators=accelerators,
        hosts=summary.get("num_hosts"),
        utilisation=utilisation,
        throughput=throughput,
        eval_throughput=_numbers(path, metric, "eval_throughput_samples_per_second", optional=True),
        io_mib=float(io) if isinstance(io, int | float) else None,
        meets_expectation=None if meets is None else meets == "success",
        started=_moment(path, summary["start"]) if "start" in summary else None,
        ended=_moment(path, summary["end"]) if "end" in summary else None,
        files_train=summary.get("num_files_train"),
        samples_per_file=summary.get("num_samples_per_file"),
        spans=spans,
        steps=steps,
        summary=summary,
    )


def _whole(folder: Path, epochs: int, spans: tuple[Span, ...], steps: tuple[Steps, ...]) -> None:
    for epoch in range(1, epochs + 1):
        if not any(s.epoch == epoch and s.name == "epoch" for s in spans):
            raise RunFailed(f"per_epoch_stats.json has no end of epoch {epoch}")
        if not any(s.epoch == epoch and s.block != "eval" for s in steps):
            raise RunFailed(f"{folder.name}: no rank took a step in epoch {epoch}: too few samples?")


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
    except FileNotFoundError:
        raise RunFailed(f"{path.name} is missing: DLIO did not finish") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error}") from None
    if not isinstance(content, dict):
        raise RunFailed(f"{path.name} is not a DLIO result")
    return content


def _numbers(path: Path, group: Mapping[str, Any], key: str, optional: bool = False) -> tuple[float, ...]:
    values = group.get(key)
    if values is None and optional:
        return ()
    if (
        not isinstance(values, list)
        or not all(_is_number(v) for v in values)
        or (not values and not optional)
    ):
        raise RunFailed(f"{path.name} has no valid metric.{key}")
    return tuple(float(v) for v in values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _moment(path: Path, text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        raise RunFailed(f"{path.name}: {text!r} is not a time") from None


def _spans(path: Path, strict: bool) -> tuple[Span, ...]:
    """Return the parts of each epoch that have ended; the exact times, not DLIO's rounded durations."""
    if not strict and not path.exists():
        return ()
    found = []
    for number, epoch in _json(path).items():
        if not number.isdigit() or not isinstance(epoch, dict):
            raise RunFailed(f"{path.name}: {number!r} is not an epoch")
        parts = {"epoch": epoch, **{k: v for k, v in epoch.items() if isinstance(v, dict)}}
        for name, part in parts.items():
            if "start" in part and "end" in part:
                began = _moment(path, part["start"])
                found.append(Span(int(number), name, began, _moment(path, part["end"]) - began))
    return tuple(found)


def _all_steps(folder: Path, ranks: int, strict: bool) -> tuple[Steps, ...]:
    found: list[Steps] = []
    for rank in range(ranks):
        path = folder / f"{rank}_output.json"
        if strict or path.exists():
            found += _steps(path, rank)
    return tuple(found)


def _steps(path: Path, rank: int) -> list[Steps]:
    found = []
    for number, epoch in _json(path).items():
        if not number.isdigit():
            continue  # facts on the host
        try:
            for block in epoch["load"]:
                columns = [tuple(float(v) for v in epoch[k][block]) for k in ("load", "proc", "compute")]
                waits, steps, computed = (len(c) for c in columns)
                # DLIO forgets the first wait of each block after a checkpoint.
                if steps != computed or waits not in (steps, steps - 1):
                    raise RunFailed(f"{path.name}: epoch {number}, {block}: lists of different lengths")
                if steps:
                    found.append(Steps(rank, int(number), block, *columns))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunFailed(f"{path.name}: epoch {number} has no valid {error}") from None
    return found
