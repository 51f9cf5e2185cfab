"""The tables of advice: ways, units, storages, findings."""

from __future__ import annotations

import math
from typing import Any, cast

from tiercel.advice.answer import Advice
from tiercel.advice.judge import Span, WayResult
from tiercel.advice.words import label, storage_facts, way_title
from tiercel.pages.tables import Table, table
from tiercel.units import format_latency, format_size

_VERDICTS = {"higher": "faster", "lower": "slower", "undecided": "not told apart"}


def ways(advice: Advice) -> Table | None:
    """Return what each way came to; None where none was measured."""
    if not advice.ways:
        return None
    rows = []
    for way in advice.ways:
        c = way.comparison
        rows.append(
            [
                way_title(advice, way), way.n, _time(way.run.median), _range(way.run),
                _time(way.io.median),
                _time(way.copy_in), _time(way.copy_out), "" if c is None else f"{c.ratio:.2f}×",
                "" if c is None else f"{c.low:.2f} to {c.high:.2f}",
                _verdict(advice, way),
            ]
        )  # fmt: skip
    return table(
        "Ways to place the files, each replayed in turn. Time: of one run, median; I/O: summed over "
        "its processes; "
        "home over this: with copying counted.",
        ["way", "replays", "time", "interval", "I/O", "copy in", "copy out", "home over this",
         "ratio's interval",
         "verdict"],
        rows, ("replays", "time", "I/O", "copy in", "copy out", "home over this"),
    )  # fmt: skip


def _verdict(advice: Advice, way: WayResult) -> str:
    c = way.comparison
    if c is None:
        return "as found"
    if way.name in advice.left_out:
        return advice.left_out[way.name]
    return _VERDICTS[c.verdict] + (f": {c.reason}" if c.reason else "")


def units(advice: Advice) -> Table | None:
    """Return where each folder or group of inputs belongs, with its I/O on each storage."""
    storages = list(advice.unit_io.columns)
    v = advice.verdict
    rows: list[list[Any]] = []
    for unit in advice.units:
        if not unit.size:
            continue
        there = v.way.systems[unit.name] if v is not None and not advice.refused else unit.storage
        seconds = [
            _time(cast(float, advice.unit_io.at[unit.name, s])) if unit.name in advice.unit_io.index else ""
            for s in storages
        ]
        rows.append(
            [
                unit.name, len(unit.files), (format_size(unit.size), unit.size), *seconds,
                label(advice, unit.storage or ""), label(advice, there or ""),
                unit.stays or ("moves as a folder" if unit.whole else "its inputs move one by one"),
            ]
        )  # fmt: skip
    if not rows:
        return None
    names = [f"I/O on {label(advice, s)}" for s in storages]
    return table(
        "What can be moved as one, with the seconds in its calls on each storage.",
        ["folder", "files", "size", *names, "lies on", "belongs on", ""], rows, ("files", "size", *names),
    )  # fmt: skip


def storages(advice: Advice) -> Table:
    """Return how long files stay on each storage, who sees them, and what is free."""
    rows = [
        [
            fact["label"], fact["type"], fact["kept"], fact["seen_by"],
            "" if fact["free_bytes"] is None else (format_size(fact["free_bytes"]), fact["free_bytes"]),
            advice.left_out.get(fact["storage"]) or advice.left_out.get(f"all on {fact['storage']}")
            or ("tried" if fact["tried"] else "not tried"),
        ]
        for fact in storage_facts(advice)
    ]  # fmt: skip
    return table(
        "Storage systems.", ["storage", "type", "files stay", "seen by", "free", ""], rows, ("free",)
    )


def findings(advice: Advice) -> Table | None:
    """Return what the trace's rules found, the gravest first."""
    rows = [[f.severity, f.sentence, f.advice] for f in advice.findings]
    return table("What to change in the program.", ["", "found", "what to do"], rows) if rows else None


def _time(seconds: float) -> Any:
    if math.isnan(seconds):
        return ""
    return (format_latency(seconds) if seconds else "0 s", float(seconds))


def _range(span: Span) -> str:
    return f"{format_latency(span.low)} to {format_latency(span.high)}"
