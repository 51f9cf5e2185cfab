"""Asks all rules of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiercel.errors import UserError, suggest
from tiercel.traces.analysis.common import LAYERS
from tiercel.traces.analysis.counters import has_counters
from tiercel.traces.analysis.overlap import evidence
from tiercel.traces.analysis.tally import lowest, processes_time, tally
from tiercel.traces.findings.base import SEVERITIES, Case, Finding, Storage, rules

if TYPE_CHECKING:
    import pandas as pd

    from tiercel.traces.frame import IOFrame


def explain(
    frame: IOFrame, storage: Storage | None = None, only: Iterable[str] | None = None, api: str | None = None
) -> list[Finding]:
    """Return what the rules (all, or those named by `only`) find in a trace, the gravest first.

    `api` is the layer whose calls count; left out, it is the lowest one that moved bytes (POSIX and STDIO
    together: a call is in one of them). UserError for a name that no rule has, or a layer that is none.
    """
    names = rules.names() if only is None else list(only)
    for name in names:
        rules.get(name)
    case = _case(frame, storage or Storage(), api)
    if case is None:
        return []
    found = [finding for name in names for finding in rules.get(name)(case)]
    return sorted(found, key=lambda f: (SEVERITIES.index(f.severity), -(f.share or 0.0)))


#: Rules that look at calls of MPI-IO, which DFTracer and strace do not see.
_OF_MPIIO = frozenset({"independent-io", "few-aggregators", "exchange", "sieving"})


def tellable(frame: IOFrame) -> frozenset[str]:
    """Return the rules that can speak on a trace of this kind: that others are silent tells nothing."""
    if not len(frame) and not has_counters(frame):
        return frozenset()
    mute = set()
    if not has_counters(frame):
        mute |= {"mapped"} | (set() if frame.metadata.get("format") == "recorder" else _OF_MPIIO)
    if not frame.metadata.get("stripes"):
        mute |= {"narrow-stripes"}
    return frozenset(rules.names()) - mute


def _case(frame: IOFrame, storage: Storage, api: str | None) -> Case | None:
    """Return what the rules look at; None for a trace that tells nothing."""
    if api is not None and api not in LAYERS:
        raise UserError(f"no layer named {api!r}: {suggest(api, LAYERS)}")
    table = tally(frame, storage.block)
    if table.empty:
        return None
    low = lowest(table) if api is None else table[table["api"] == api]
    layer = api or _lowest_name(low)
    took, ranks = processes_time(frame) or (None, None)
    if frame.metadata.get("format") == "strace":
        ranks = None  # processes, of whatever program
    numbered = not has_counters(frame) and bool(frame.ranks_are_numbered)
    return Case(frame, layer, storage, table, low, ranks, took, _felt(frame, layer), numbered)


def _lowest_name(low: pd.DataFrame) -> str:
    there = set(low["api"])
    return next((name for name in LAYERS if name in there), "posix")


def _felt(frame: IOFrame, layer: str) -> float:
    """Return the part of the time in I/O that computation does not hide; 1 where no computation is known."""
    if not len(frame) or not frame.query("SELECT 1 FROM events WHERE kind = 'compute' LIMIT 1").size:
        return 1.0
    numbers = evidence(frame, layer)
    io, felt = (float(str(numbers[name])) for name in ("io_s", "nonoverlapped_io_s"))
    return felt / io if io else 1.0
