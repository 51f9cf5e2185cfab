"""Traced runs: what the calls of each workload did on each storage, and where their time went."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tiercel.report import words
from tiercel.report.data import stack_key
from tiercel.report.sections.base import Block, Context, Section, sections
from tiercel.report.sections.trace_cells import Row, cost_interval, known
from tiercel.report.sections.trace_figure import lanes_picture
from tiercel.report.sections.trace_points import points
from tiercel.report.sections.trace_tables import calls_table, groups_table, overview
from tiercel.units import format_bandwidth, format_latency

if TYPE_CHECKING:
    import pandas as pd

#: Kinds of calls, and how a sentence names them.
KINDS = {"read": "reads", "write": "writes", "metadata": "metadata calls", "sync": "syncs"}
#: A kind with less of the time in calls is not worth a word.
_WORTH = 0.05
#: Pauses between phases are told where they make the whole longer by so much.
_PAUSES = 1.02


@sections.register("traces")
def traces(context: Context) -> Section | None:
    """Return the section, or None for a study without traced runs."""
    from tiercel.traced import load_trace_groups, load_traces  # noqa: PLC0415 -- DuckDB, for this section alone
    from tiercel.traced.tables import GROUPS, TRACES  # noqa: PLC0415

    study = context.results.study.study
    if not all((context.folder / name).is_file() for name in (TRACES, GROUPS)):
        return _not_collected(context)
    table, groups = load_traces(context.folder, study), load_trace_groups(context.folder, study)
    if table.empty:
        return None
    # Hundreds of points of a sample cannot be shown one by one.
    sampled = [
        workload in context.results.samples.get(str(experiment), ())
        for experiment, workload in zip(table["experiment"], table["workload"], strict=True)
    ]
    table = table[~np.array(sampled)]
    by_workload = list(_by_workload(context, table))
    rows = [row for _, mine in by_workload for row in mine]
    return Section(
        anchor="traces",
        heading="Traced runs",
        paragraphs=(
            "Each workload ran once more at its largest scale under a tracer that logs every I/O call. "
            "Tracing costs time, so no other section uses these speeds.",
            *_cost_in_words(rows),
            *_hidden_in_words(rows),
        ),
        tables=(overview(rows),) if rows else (),
        notes=(*_left_out(sum(sampled)), *(_notes(rows, context) if rows else ())),
        blocks=tuple(_block(context, mine, groups) for _, mine in by_workload),
    )


def _left_out(sampled: int) -> Iterator[str]:
    if sampled:
        yield f"Of designed samples: {words.count(sampled, 'traced run')}, in traces.parquet only."


def _not_collected(context: Context) -> Section | None:
    if not context.results.traced:
        return None
    site, study = context.site.site, context.results.study.study
    said = (
        f"{words.count(context.results.traced, 'traced run')} of this study are not aggregated yet: run "
        f"`tiercel trace collect --site {site} --study {study}`, then `tiercel report`."
    )
    return Section("traces", "Traced runs", (said,))


def _by_workload(context: Context, table: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], list[Row]]]:
    """Yield the rows of each workload and engine, in the order of the study; storages in the page's order."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    order = {stack: place for place, stack in enumerate(context.results.stacks)}
    for record in table.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        row["stack"] = stack_key(row["storage"], row["layer"])
        row["label"] = words.stack(row["storage_label"] or row["storage"], row["layer"])
        found.setdefault((row["experiment"], row["workload"], row["engine"]), []).append(row)
    main = {key: [e for x, w, e in found if (x, w) == key] for key in {(x, w) for x, w, _ in found}}
    for key in sorted(found, key=lambda key: (*context.results.place(*key[:2]), key[2])):
        rows = found[key]
        several = len(main[key[:2]]) > 1
        for row in rows:
            row["heading"] = f"{row['title']} ({row['engine']})" if several else row["title"]
        yield key, sorted(rows, key=lambda row: (order.get(row["stack"], len(order)), row["stack"]))


def _cost_in_words(rows: list[Row]) -> Iterator[str]:
    told = [row for row in rows if known(row["cost"]) and row["untraced_runs"] > 1]
    if not told:
        return
    beyond = [row for row in told if row["cost_low"] > 1]
    within = len(told) - len(beyond)
    if not beyond:
        yield "The cost of tracing is within the noise in every run."
        return
    most = max(beyond, key=lambda row: row["cost"])
    yield (
        f"The cost of tracing is within the noise in {within} of {len(told)} runs. Largest cost: "
        f"{words.times(most['cost'])} the time ({cost_interval(most)}), {most['heading']} on {most['label']}."
    )


def _hidden_in_words(rows: list[Row]) -> Iterator[str]:
    """Yield one sentence for each workload that computes: how much of its I/O computation hides."""
    by_heading: dict[str, list[Row]] = {}
    for row in rows:
        if known(row["compute_s"]) and known(row["io_s"]) and row["io_s"] > 0:
            by_heading.setdefault(row["heading"], []).append(row)
    for heading, mine in by_heading.items():
        said = words.listed(
            [f"{words.percent(row['overlapped_io_s'] / row['io_s'])} on {row['label']}" for row in mine]
        )
        yield f"{heading}: I/O time overlapped by computation: {said}."


def _block(context: Context, rows: list[Row], groups: pd.DataFrame) -> Block:
    first = rows[0]
    mine = groups[groups["run"].isin([row["run"] for row in rows])]
    whole = [row for row in rows if known(row["calls"])]
    name = f"trace-{first['experiment']}-{first['workload']}-{first['engine']}"
    picture = lanes_picture(context.figures, name, whole)
    folded = [("Calls by kind", (calls_table(whole),))] if whole else []
    if len(mine):
        folded.append(("Files", (groups_table(mine, {row["run"]: row["label"] for row in rows}),)))
    return Block(
        heading=first["heading"],
        paragraphs=tuple(_where_the_time_goes(row) for row in whole),
        pictures=(picture,) if picture else (),
        points=tuple(points(rows)),
        folded=tuple(folded),
        notes=tuple(_said_of(rows)),
    )


def _where_the_time_goes(row: Row) -> str:
    """Return ``ext4 /: 1.03 s, of which 99 % in I/O; of the time in calls, writes take 57 %, syncs 42 %.``"""
    said = f"{row['label']}: "
    if known(row["measured_s"]) and row["measured_s"] > 0:
        share = words.percent(row["io_s"] / row["measured_s"])
        said += f"{format_latency(row['measured_s'])}{_with_pauses(row)}, {share} in I/O calls"
    else:
        said += f"{format_latency(row['io_s'])} in I/O calls"
    whole = sum(row[f"{kind}_s"] for kind in KINDS)
    shares = {kind: row[f"{kind}_s"] / whole if whole else 0.0 for kind in KINDS}
    named = sorted((k for k in KINDS if shares[k] >= _WORTH), key=lambda kind: -shares[kind])
    if named:
        said += ": " + words.listed([f"{words.percent(shares[kind])} {KINDS[kind]}" for kind in named])
    if known(row["app_throughput"]):
        said += (
            f". Application throughput: {format_bandwidth(row['app_throughput'])}, system throughput: "
            f"{format_bandwidth(row['system_throughput'])}"
        )
    return f"{said}."


def _with_pauses(row: Row) -> str:
    """Say how long the phases took with what lies between them, which the picture's axis has, too."""
    timeline = json.loads(row["timeline"]) if isinstance(row["timeline"], str) else {}
    phases = timeline.get("phases", ())
    if len(phases) < 2:
        return ""
    whole = phases[-1]["end"] - phases[0]["start"]
    if whole < _PAUSES * row["measured_s"]:
        return ""
    return f" in {len(phases)} phases ({format_latency(whole)} with pauses)"


def _said_of(rows: list[Row]) -> Iterator[str]:
    """Yield what is missing, once for all storages of which the same is true."""
    found: dict[str, list[str]] = {}
    for row in rows:
        reason = [row["reason"]] if row["reason"] else []
        # What the reason quotes needs no second line.
        for said in (*reason, *(w for w in row["warnings"] if not any(w in r for r in reason))):
            found.setdefault(said, []).append(row["label"])
    for said, labels in found.items():
        yield f"{words.listed(labels)}: {said}."


def _notes(rows: list[Row], context: Context) -> tuple[str, ...]:
    computes = any(known(row["compute_s"]) for row in rows)
    tracers = words.listed(sorted({str(row["tracer"]) for row in rows}))
    return (
        "I/O: wall-clock time with at least one process in a call. Metadata and syncs: share of the summed "
        "time "
        "of all calls. Throughput: bytes over the I/O time.",
        *(
            (
                "Overlapped: I/O while the same process computes. Application throughput: bytes over the I/O "
                "time that is not overlapped. Unknown where the trace does not record computation.",
            )
            if computes
            else ()
        ),
        "Timelines: a stronger colour means a larger share of that time.",
        "Tracing: time with the tracer over the median time without; in brackets over the fastest and "
        "slowest "
        "repetition. If the range contains 1, the cost is within the noise.",
        f"Tracer: {tracers}. Data: traces.parquet, trace-groups.parquet and traces.nc in "
        f"results/{context.folder.name}. To analyse one trace, run `tiercel trace summary raw/RUN/trace`.",
    )
