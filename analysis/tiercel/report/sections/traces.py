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
            "Each workload ran once more at its largest scale on each storage system, under a tracer that "
            "logs every call on a file. The traces say what the calls did and where their time went; only "
            "what was measured is in them, not the making of the files. Tracing itself takes time, so no "
            "rate and no factor of this page comes from these runs; elsewhere on it, only the groups of "
            "files of the recommendations do.",
            *_cost_in_words(rows),
            *_hidden_in_words(rows),
        ),
        tables=(overview(rows),) if rows else (),
        notes=(*_left_out(sum(sampled)), *(_notes(rows, context) if rows else ())),
        blocks=tuple(_block(context, mine, groups) for _, mine in by_workload),
    )


def _left_out(sampled: int) -> Iterator[str]:
    if sampled:
        yield f"Of designed samples: {words.count(sampled, 'traced run')}, in traces.parquet alone."


def _not_collected(context: Context) -> Section | None:
    if not context.results.traced:
        return None
    site, study = context.site.site, context.results.study.study
    said = (
        f"{words.count(context.results.traced, 'traced run')} of this study are not aggregated yet: run "
        f"`tiercel trace collect --site {site} --study {study}`, and make the page again."
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
        yield "What tracing cost cannot be told from the scatter of the untraced repetitions anywhere."
        return
    most = max(beyond, key=lambda row: row["cost"])
    yield (
        f"What tracing cost cannot be told from the scatter of the untraced repetitions in {within} of "
        f"{len(told)} runs; of those beyond scatter, it cost most in {most['heading']} on {most['label']}: "
        f"{words.times(most['cost'])} the time for the same work ({cost_interval(most)})."
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
        yield f"{heading}: of the time in I/O, computation hides {said}."


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
        said += f"{format_latency(row['measured_s'])}{_with_pauses(row)}, {share} of it in I/O"
    else:
        said += f"{format_latency(row['io_s'])} in I/O"
    whole = sum(row[f"{kind}_s"] for kind in KINDS)
    shares = {kind: row[f"{kind}_s"] / whole if whole else 0.0 for kind in KINDS}
    named = sorted((k for k in KINDS if shares[k] >= _WORTH), key=lambda kind: -shares[kind])
    if named:
        said += "; of the time in calls, " + words.listed(
            [f"{KINDS[kind]} take {words.percent(shares[kind])}" for kind in named]
        )
    if known(row["app_throughput"]):
        said += (
            f". The application perceives {format_bandwidth(row['app_throughput'])}, the storage delivers "
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
    return f" in {len(phases)} phases ({format_latency(whole)} with the pauses between them)"


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
        "I/O: wall-clock time in which at least one process is in a call; metadata and syncs: their share of "
        "the summed time of all calls. Throughput: bytes over that wall-clock time (system throughput).",
        *(
            (
                "Hidden: I/O during which the same process also computes. Application throughput: bytes over "
                "the I/O that is not hidden (the VAST study of 2024, section VI). Only a deep-learning "
                "engine's own trace tells computation; elsewhere nothing is said of it.",
            )
            if computes
            else ()
        ),
        "Pictures: the stronger the colour, the larger the share of that moment; colours mix where kinds of "
        "calls take turns within it.",
        "Tracing: the time that the same work takes with the tracer over without, against the median of the "
        "untraced repetitions; in brackets, against the fastest and the slowest of them. It is one traced "
        "run: where the brackets hold 1, no cost can be told.",
        f"Traced by {tracers}. All numbers: traces.parquet, trace-groups.parquet and traces.nc in "
        f"results/{context.folder.name}; a trace itself: `tiercel trace summary` on raw/RUN/trace.",
    )
