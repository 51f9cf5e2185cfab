"""Asks all rules of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tiercel.errors import UserError, suggest
from tiercel.traces.analysis.common import IO_KINDS, IS_DATA, IS_IO, LAYERS, UNSIZED, group_calls
from tiercel.traces.analysis.counters import counted, has_counters
from tiercel.traces.analysis.overlap import evidence
from tiercel.traces.analysis.tally import lowest, processes_time, tally
from tiercel.traces.engine import quoted
from tiercel.traces.findings.base import SEVERITIES, Case, Finding, Storage, needs_ranks, rules
from tiercel.traces.program import PATTERN, is_program

if TYPE_CHECKING:
    import pandas as pd

    from tiercel.traces.frame import IOFrame


def explain(
    frame: IOFrame,
    storage: Storage | None = None,
    only: Iterable[str] | None = None,
    api: str | None = None,
    seconds: float | None = None,
) -> list[Finding]:
    """Return what the rules (all, or those named by `only`) find in a trace, the gravest first.

    `api` is the layer whose calls count; left out, it is the lowest one that moved bytes (POSIX and STDIO
    together: a call is in one of them). `seconds`: how long the frame's part of a job lasted, where that has
    pauses. UserError for a name that no rule has, or a layer that is none.
    """
    names = rules.names() if only is None else list(only)
    for name in names:
        rules.get(name)
    case = _case(frame, storage or Storage(), api, seconds)
    if case is None:
        return []
    silent = _without_numbers(frame)
    if case.low.empty:
        names = [name for name in names if name == _OF_PROGRAM]
    found = [finding for name in names if name not in silent for finding in rules.get(name)(case)]
    return sorted(found, key=lambda f: (SEVERITIES.index(f.severity), -(f.share or 0.0)))


#: How a choice of ranks is written (IOFrame.select).
_BY_RANK = "rank IN ("
#: Rules that look at calls of MPI-IO, which DFTracer and strace do not see.
_OF_PROGRAM = "program-files"
#: Rules that need neither sizes nor durations, and those that need no sizes.
_OF_COUNTS = frozenset({"mapped"})
_OF_METADATA = frozenset({"metadata-bound", "open-storm", _OF_PROGRAM})
#: Rules judge by what is known where no more calls than this share lack a number.
_TOLERATED = 0.01
_SIZES = ["bytes_read", "bytes_written"]
_TIMES = ["read_time", "write_time", "metadata_time"]
_OF_MPIIO = frozenset({"independent-io", "few-aggregators", "exchange", "sieving"})


def mute(frame: IOFrame) -> dict[str, str]:
    """Return the rules that cannot be checked on this trace, each with the reason."""
    if not len(frame) and not has_counters(frame):
        return dict.fromkeys(rules.names(), "the trace has neither events nor counters")
    found = _without_numbers(frame)
    if not frame.metadata.get("stripes"):
        found["narrow-stripes"] = "the trace has no stripe sizes"
    if has_counters(frame):
        return found
    found["mapped"] = "the tracer does not record memory-mapped I/O"
    if not _sees_mpiio(frame):
        found |= dict.fromkeys(sorted(_OF_MPIIO), "the tracer does not record MPI-IO")
    if _no_ranks(frame):
        some = frame.metadata.get("format") != "strace"
        told = "only some ranks are selected" if some else "the tracer records processes, not ranks"
        found |= {name: told for name in rules if needs_ranks(rules.get(name))}
    return found


def _without_numbers(frame: IOFrame) -> dict[str, str]:
    """Return the rules that need sizes or durations of calls which the trace does not tell."""
    if has_counters(frame):
        table = counted(frame)
        shares = [table[names].isna().any(axis=1).mean() for names in (_SIZES, _TIMES)]
    else:
        row = frame.query(
            f"SELECT count(*) FILTER ({UNSIZED}) AS unsized, count(*) FILTER ({IS_DATA}) AS data, "
            f"count(*) FILTER ({IS_IO} AND duration IS NULL) AS untimed, count(*) FILTER ({IS_IO}) AS calls "
            "FROM events WHERE api <> 'app'"
        ).iloc[0]
        shares = [row["unsized"] / max(row["data"], 1), row["untimed"] / max(row["calls"], 1)]
    if shares[1] > _TOLERATED:
        return dict.fromkeys(frozenset(rules.names()) - _OF_COUNTS, "the trace has no durations of calls")
    if shares[0] > _TOLERATED:
        return dict.fromkeys(
            frozenset(rules.names()) - _OF_COUNTS - _OF_METADATA,
            "the trace has no sizes of reads and writes",
        )
    return {}


def no_findings(frame: IOFrame) -> str:
    """Return what the lack of findings means, in words: how many rules were checked. It claims no more."""
    every, skipped = len(rules.names()), mute(frame)
    if not has_counters(frame) and not any(group.kind in IO_KINDS for group in group_calls(frame)):
        return f"nothing to check: the trace has no {'I/O calls' if len(frame) else 'events and no counters'}"
    if len(skipped) == every:
        return f"none of the {every} rules could be checked"
    checked = (
        f"all {every} rules were checked" if not skipped else
        f"{every - len(skipped)} of {every} rules were checked, {len(skipped)} could not be"
    )  # fmt: skip
    doubt = "; warnings about this trace may hide problems" if frame.warnings else ""
    return f"no findings: {checked}{doubt}"


def unjudged(frame: IOFrame) -> list[str]:
    """Return `mute` as sentences, one for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in mute(frame).items():
        by_reason.setdefault(reason, []).append(name)
    return [
        f"not checked, because {reason}: {', '.join(sorted(names))}" for reason, names in by_reason.items()
    ]


def tellable(frame: IOFrame) -> frozenset[str]:
    """Return the rules that are checked on this trace."""
    return frozenset(rules.names()) - mute(frame).keys()


def _sees_mpiio(frame: IOFrame) -> bool:
    """Say whether calls of MPI-IO would be in the trace; DFTracer and strace see what is below."""
    return has_counters(frame) or frame.metadata.get("format") not in ("dftracer", "strace")


def _no_ranks(frame: IOFrame) -> bool:
    """Say whether what the trace calls ranks are processes of any program, or only some are looked at."""
    some = any(condition.startswith(_BY_RANK) for condition in frame.chosen)
    return some or frame.metadata.get("format") == "strace"


def _case(frame: IOFrame, storage: Storage, api: str | None, seconds: float | None) -> Case | None:
    """Return what the rules look at; None for a trace that tells nothing."""
    if api is not None and api not in LAYERS:
        raise UserError(f"no layer named {api!r}: {suggest(api, LAYERS)}")
    whole = tally(frame, storage.block)
    if whole.empty:
        return None
    own = np.array([isinstance(file, str) and is_program(file) for file in whole["file"]], dtype=bool)
    table = whole[~own]
    low = lowest(table) if api is None else table[table["api"] == api]
    layer = api or _lowest_name(low)
    took, ranks = processes_time(frame) or (None, None)
    if seconds and ranks:
        took = seconds * ranks
    if _no_ranks(frame):
        ranks = None
    numbered = not has_counters(frame) and bool(frame.ranks_are_numbered)
    felt = _felt(frame, layer)
    if own.any() and not has_counters(frame):
        frame = frame.where(f"file IS NULL OR NOT regexp_matches(file, {quoted(PATTERN)})")
    return Case(
        frame, layer, storage, table, low, ranks, took, felt, numbered, whole[own], _sees_mpiio(frame)
    )


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
