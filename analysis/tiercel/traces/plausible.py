"""Whether a trace can be true: what it lacks, and where its parts contradict each other.

Every reader's traces are asked the same questions, once, when they are read. The answers are sentences in
`IOFrame.warnings`, with what was found and, where numbers are missing, how to record them next time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tiercel.deferred import pd
from tiercel.traces.analysis.common import (
    DATA_KINDS,
    IO_KINDS,
    by_key,
    group_calls,
    totals,
)
from tiercel.traces.analysis.counters import MODULES
from tiercel.traces.analysis.heat import HEATMAP
from tiercel.units import format_latency, format_share, format_size

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Batch systems end jobs after weeks.
_YEAR = 365 * 86400.0
_DAY = 86400.0
#: Of a hundred parts of a job, so few with a call in them are calls at two ends of nothing.
_PARTS, _FEW = 100, 3
#: Time in reads and writes that move nothing (s).
_IDLE = 0.1
#: What one layer moves beyond another's by so much is more than alignment, and more than a rounding.
_BEYOND, _ENOUGH = 1.5, 1 << 20
#: How the sizes of transfers, and durations, are recorded.
_SIZES = {
    "dftracer": "; DFTracer records sizes and names with DFTRACER_INC_METADATA=1",
    "recorder": "; Recorder knows the sizes of MPI's basic types alone",
}
_DURATIONS = {"strace": "; strace records them with -T"}


def doubts(frame: IOFrame) -> list[str]:
    """Return a sentence for each thing in a trace that is missing or cannot be true."""
    found = [*_long(frame)]
    if len(frame):
        found += _events(frame)
    for module, prefix, _ in MODULES:
        raw = frame.counters(module)
        if raw is not None:
            found += _counters(raw, module, prefix)
    return [*found, *_layers(frame), *_heat(frame)]


def _long(frame: IOFrame) -> Iterator[str]:
    if frame.job_time > _YEAR:
        yield (
            f"the trace lasts {frame.job_time / _YEAR:,.0f} years: its times are of different clocks or "
            f"units, and "
            "no number that depends on time holds"
        )
    elif frame.job_time > _DAY and len(frame):
        [(busy,)] = frame.rows(
            f"SELECT count(DISTINCT floor(time / {frame.job_time / _PARTS!r})) FROM events"
        )
        if busy <= _FEW:
            yield (
                f"in {_PARTS - busy} of {_PARTS} parts of {frame.job_time / _DAY:.1f} days nothing "
                f"happens: times may "
                "be of different clocks"
            )


def _events(frame: IOFrame) -> Iterator[str]:
    calls = [g for g in group_calls(frame) if g.api != "app" and g.kind in IO_KINDS]
    reads_writes = [g for g in calls if g.kind in DATA_KINDS]
    nameless = totals(g for g in reads_writes if g.nameless)
    data, unsized, untimed, moved = (
        sum(g.calls for g in reads_writes), sum(g.unsized for g in calls), sum(g.untimed for g in calls),
        sum(g.size for g in reads_writes),
    )  # fmt: skip
    spent = sum(g.seconds for g in reads_writes)
    how = str(frame.metadata.get("format", ""))
    if unsized:
        known = f" (the others moved {format_size(moved)})" if unsized < data else ""
        yield (
            f"{unsized:,} of {data:,} reads and writes have no size{known}: bytes, bandwidths and what "
            f"follows from "
            f"them are unknown{_SIZES.get(how, '')}"
        )
    elif data and not moved and spent >= _IDLE:
        yield f"{data:,} reads and writes take {format_latency(spent)} and move no byte"
    if untimed:
        yield (
            f"{untimed:,} of {sum(g.calls for g in calls):,} calls have no duration: times that they belong "
            f"to are unknown{_DURATIONS.get(how, '')}"
        )
    if nameless.calls:
        lost = "" if nameless.bytes is None else f" ({format_size(nameless.bytes)})"
        yield (
            f"{nameless.calls:,} of {data:,} reads and writes name no file{lost}: they are in the sums, and "
            "in no table of files"
        )


def _counters(raw: pd.DataFrame, module: str, prefix: str) -> Iterator[str]:
    for kind, moved in (("READ", "BYTES_READ"), ("WRITE", "BYTES_WRITTEN")):
        names = [f"{prefix}{moved}", f"{prefix}F_{kind}_TIME"]
        if not set(names) <= set(raw):
            continue
        bytes_, spent = (float(raw[name].sum(skipna=False)) for name in names)
        if bytes_ == 0 and spent >= _IDLE:
            yield f"{module}: {kind.lower()}s take {format_latency(spent)} and move no byte"


def _layers(frame: IOFrame) -> Iterator[str]:
    """Compare what MPI-IO moved with what moved below it: writes of all ranks arrive there."""
    moved = _moved(frame)
    if not {"mpiio", "posix"} <= moved.keys():
        return
    for number, (word, most) in enumerate((("read", np.inf), ("written", _BEYOND))):
        above = moved["mpiio"][number]
        below = moved["posix"][number] + moved.get("stdio", (0.0, 0.0))[number]
        # Of a read one rank may fetch what all get; nothing at all it cannot be.
        if above >= _ENOUGH and (below == 0 or above > most * below):
            yield (
                f"{format_size(above)} are {word} through MPI-IO, and {format_size(below)} below it: the "
                f"layers "
                "contradict each other, or what moves below is not traced"
            )


def _moved(frame: IOFrame) -> dict[str, tuple[float, float]]:
    """Return bytes read and written by layer; of a layer that lacks numbers nothing."""
    found: dict[str, tuple[float, float]] = {}
    for module, prefix, api in MODULES:
        raw = frame.counters(module)
        if raw is not None:
            read, written = (
                float(raw[f"{prefix}{name}"].sum(skipna=False)) for name in ("BYTES_READ", "BYTES_WRITTEN")
            )
            found[api] = read, written
    if not found:
        groups = [g for g in group_calls(frame) if g.kind in DATA_KINDS]
        for api, mine in by_key(groups, lambda g: g.api or "").items():
            if not any(g.unsized for g in mine):
                read, written = (sum(g.size for g in mine if g.kind == kind) for kind in DATA_KINDS)
                found[api] = float(read), float(written)
    return {api: both for api, both in found.items() if not np.isnan(sum(both))}


def _heat(frame: IOFrame) -> Iterator[str]:
    """Compare HEATMAP with the counters of the same calls."""
    heat: Any = frame.counters(HEATMAP)
    partial = frame.metadata.get("partial") or ()
    if heat is None:
        return
    for module, prefix, _ in MODULES[:2]:
        raw = frame.counters(module)
        if raw is None or module in partial or HEATMAP in partial:
            continue
        mine = heat[heat["file"] == f"heatmap:{module}"]
        over_time = float(mine[["read", "written"]].sum(skipna=False).sum(skipna=False))
        whole = float(
            raw[[f"{prefix}BYTES_READ", f"{prefix}BYTES_WRITTEN"]].sum(skipna=False).sum(skipna=False)
        )
        if abs(over_time - whole) >= max(_ENOUGH, 0.1 * whole):
            share = format_share(over_time / whole) if whole else format_size(over_time)
            yield (
                f"HEATMAP holds {share} of the {format_size(whole)} that {module} counts: what is over "
                f"time is of that "
                "part"
            )
