"""One traced run: its row of ``traces.parquet`` and its rows of ``trace-groups.parquet``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tiercel.engines import Measurement
from tiercel.errors import RunFailed, UserError, one_line
from tiercel.plain import plain
from tiercel.results.measured import measurements_of
from tiercel.results.observations import identity_of
from tiercel.results.raw import RawRun
from tiercel.traced.groups import group_rows
from tiercel.traced.part import Part, part_of, relative
from tiercel.traced.schema import TRACES
from tiercel.traced.timeline import timeline_of
from tiercel.traces.analysis.common import CALLS, IS_IO, SUMS, layer_of
from tiercel.traces.analysis.overlap import evidence
from tiercel.traces.analysis.patterns import PATTERNS, access_pattern
from tiercel.traces.findings import explain
from tiercel.traces.findings.base import rules
from tiercel.traces.frame import IOFrame, open_trace

#: Rows of a finding's evidence that are kept: those that a reader looks at.
_EVIDENCE = 8
#: A trace with less of the bytes that the engine counted lost some, or does not see them.
_WHOLE = 0.99

#: Operations of metadata phases, each of which calls on one file or directory.
_OF_NAMES = ("file-", "directory-")

Rows = tuple[dict[str, Any], list[dict[str, Any]]]


def rows_of(raw: RawRun) -> Rows:
    """Return a traced run's row, without what tracing cost, and its groups' rows.

    A trace that is missing or cannot be read gives a row that says so and no groups.
    """
    row = dict.fromkeys((column.name for column in TRACES), None) | identity_of(raw.run)
    row |= {"reason": "", "warnings": [], "tracer": _tracer(raw)}
    measurements: list[Measurement] = []
    if raw.ok:
        try:
            measurements = measurements_of(raw)
        except RunFailed as failure:
            row["reason"] = f"the run's numbers cannot be read: {failure}"
    else:
        row["reason"] = f"the run failed: {raw.record['reason']}"
    folder = raw.folder / "trace"
    if not folder.is_dir() or not any(folder.iterdir()):
        row["reason"] = row["reason"] or "the run left no trace"
        return row, []
    try:
        frame = open_trace(folder)
    except (UserError, OSError) as error:
        said = one_line(str(error)).replace(f"{folder}", "trace")
        row["reason"] = row["reason"] or f"the trace cannot be read: {said}"
        return row, []
    return numbers_of(row, frame, raw, measurements)


def numbers_of(row: dict[str, Any], frame: IOFrame, raw: RawRun, measurements: list[Measurement]) -> Rows:
    """Return `row` with the numbers of the trace's part that counts, and the rows of its groups."""
    warnings = [w.replace(f"{raw.folder}/", "") for w in frame.warnings]
    if warnings and not row["reason"]:
        row["reason"] = f"the trace is torn: {warnings[0]}"
    row |= {"events": len(frame), "trace_s": frame.job_time, "warnings": warnings}
    if not len(frame):
        row["reason"] = row["reason"] or "the trace has no events"
        return row, []
    part = part_of(frame, raw, measurements)
    row["reason"] = row["reason"] or _ranks_lost(part, raw)
    layer = layer_of(part.frame, None)
    sums = part.frame.query(f"SELECT {SUMS} FROM events WHERE {IS_IO} AND api = '{layer}'")
    row |= {str(name): plain(sums[name].iloc[0]) for name in sums}
    row |= {"part": part.name, "measured_s": part.seconds, "api": layer, "files_elsewhere": part.elsewhere}
    row |= {f"{kind}_wall_s": wall for kind, wall in _walls(part.frame, layer)}
    row |= _sizes(part.frame, layer) | _overlap(part.frame, layer)
    row |= {"metadata_share": _metadata_share(row), "random_share": _random_share(part.frame, layer)}
    found = explain(part.frame, only=_asked(part, raw), api=layer, seconds=part.seconds)
    findings = [_finding(f, part.folder) for f in found]
    row |= {"findings": json.dumps(findings), "timeline": _json(timeline_of(part, layer))}
    row["warnings"] = [*warnings, *row.pop("notes"), *_unseen(part, row, layer)]
    identity = identity_of(raw.run)
    groups = [{**identity, **group} for group in group_rows(part, layer)]
    row["files"] = sum(group["files"] for group in groups) if part.folder else None
    return row, groups


def _tracer(raw: RawRun) -> str:
    words = [word for step in raw.record.get("steps", ()) for word in step["argv"]]
    return "DFTracer" if any(w.startswith("DFTRACER_ENABLE=") for w in words) else str(raw.run["engine"])


def _asked(part: Part, raw: RawRun) -> list[str]:
    """Return the rules that can speak on what counts.

    Repeats are each of a new file of the same name, which was written in between: no read of it is another's
    again, though its name and its bytes are. Of a storage that is memory all reads are as fast as memory.
    """
    silent = {"read-again"} if part.repeated else set()
    if raw.run["storage"]["medium"] == "memory":
        silent.add("cached-reads")
    return [name for name in rules.names() if name not in silent]


def _walls(frame: IOFrame, layer: str) -> Iterator[tuple[str, float]]:
    """Yield the wall-clock time of each kind of calls: the union over all processes."""
    for kind in CALLS:
        table = frame.overlap(filter=f"kind = '{kind}'", api=layer)
        yield kind, float(table["io_time"].iloc[-1])


def _sizes(frame: IOFrame, layer: str) -> dict[str, float | None]:
    """Return quantiles of the sizes of reads and writes that moved bytes; exact, as sizes are few."""
    counts = frame.query(
        f"SELECT kind, size, count(*) AS n FROM events WHERE api = '{layer}' AND kind IN ('read', 'write') "
        "AND size > 0 GROUP BY ALL ORDER BY kind, size"
    )
    found: dict[str, float | None] = {}
    for kind in ("read", "write"):
        mine = counts[counts["kind"] == kind]
        below = mine["n"].cumsum().to_numpy()
        for percent in (10, 50, 90):
            place = int(np.searchsorted(below, percent / 100 * below[-1])) if len(mine) else None
            found[f"{kind}_p{percent}"] = None if place is None else float(mine["size"].iloc[place])
    return found


def _overlap(frame: IOFrame, layer: str) -> dict[str, Any]:
    """Return I/O against computation; what needs computation is missing where the trace has none."""
    found = evidence(frame, layer)
    computes = bool(found["compute_s"])
    only = ("overlapped_io_s", "nonoverlapped_io_s", "compute_s")
    return {
        "io_s": found["io_s"],
        **{name: found[name] if computes else None for name in only},
        "app_throughput": found["app_throughput_bytes_s"] if computes else None,
        "system_throughput": found["system_throughput_bytes_s"],
        "ranks": found["ranks"],
        "notes": [str(w) for w in found["warnings"] if w not in frame.warnings],  # type: ignore[attr-defined]
    }


def _metadata_share(row: dict[str, Any]) -> float | None:
    times = [row[f"{kind}_s"] for kind in CALLS]
    if None in times or not sum(times) > 0:
        return None
    return float((row["metadata_s"] + row["sync_s"]) / sum(times))


def _random_share(frame: IOFrame, layer: str) -> float | None:
    counts = access_pattern(frame, api=layer)[list(PATTERNS)].sum()
    return float(counts["random"] / counts.sum()) if counts.sum() else None


def _ranks_lost(part: Part, raw: RawRun) -> str:
    """Return the reason why a trace is not whole if processes of the run are not in what counts, else "".

    Of the whole trace that would not be seen: the step that wrote the files has processes of its own. With
    collective calls some processes may move the data of all.
    """
    if raw.run["workload"].get("collective"):
        return ""
    seen = int(part.frame.query("SELECT count(DISTINCT rank) AS n FROM events")["n"].iloc[0])
    processes = raw.run["nodes"] * raw.run["processes_per_node"]
    return f"the trace holds calls of {seen} of the run's {processes} processes" if seen < processes else ""


def _unseen(part: Part, row: dict[str, Any], layer: str) -> Iterator[str]:
    """Yield sentences on what the engine did and the trace does not show."""
    calls = f"SELECT 1 FROM events WHERE {IS_IO} AND api = '{layer}' LIMIT 1"
    blind = [
        phase.operation for phase in part.phases
        if phase.operations
        and part.frame.where(f"time >= {phase.start!r} AND time < {phase.limit!r}").query(calls).empty
    ]  # fmt: skip
    if blind:
        yield f"no call of {', '.join(blind)} is in the trace: the tracer does not see such calls"
    for phase in part.phases:
        if not phase.operation.startswith(_OF_NAMES) or not phase.operations or phase.operation in blind:
            continue
        # Each operation makes one call of some function, or several.
        counts = part.frame.where(f"time >= {phase.start!r} AND time < {phase.limit!r}").query(
            f"SELECT count(*) AS n FROM events WHERE {IS_IO} AND api = '{layer}' GROUP BY function"
        )
        seen = int(counts["n"].max())
        if seen < _WHOLE * phase.operations:
            yield (
                f"the trace holds calls for at most {seen:,} of the {phase.operations:,} operations of "
                f"{phase.operation}: the rest was lost"
            )
    for operation, column in (("read", "bytes_read"), ("write", "bytes_written")):
        moved = sum(p.bytes or 0 for p in part.phases if p.operation == operation)
        if moved and row[column] is not None and row[column] < _WHOLE * moved:
            yield (
                f"the trace holds {row[column]:,} of the {moved:,} bytes of operation {operation}: the rest "
                "was lost, or moved by calls that the tracer does not see (io_uring, mmap)"
            )


def _finding(finding: Any, folder: str) -> dict[str, Any]:
    evidence_table: pd.DataFrame = finding.evidence.reset_index().head(_EVIDENCE)
    evidence_table = evidence_table.drop(columns=["index"], errors="ignore")
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "sentence": relative(finding.sentence, folder),
        "advice": relative(finding.advice, folder),
        "evidence": [
            {str(k): relative(v, folder) if isinstance(v, str) else plain(v) for k, v in record.items()}
            for record in evidence_table.to_dict("records")
        ],
    }


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, separators=(",", ":"))
