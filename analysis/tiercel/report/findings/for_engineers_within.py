"""Findings on what an aggregate hides: slow processes, pauses, and a client that has no processor left.

Only what nearly every run of a number shows: one slow process in one of seven runs is chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any

import pandas as pd

from tiercel.report import words
from tiercel.report.data import Number, Record, Results, records
from tiercel.report.findings.finding import Evidence, Finding, Rule
from tiercel.report.findings.phrases import number_evidence, of_origin
from tiercel.units import format_duration

#: Fewest runs from which anything is said, and the share of them that must show it.
_RUNS, _MOST = 3, 0.8
#: A process slower than this share of the others' speed holds the aggregate back.
_SLOW = 2 / 3
#: A pause is as long as this (s), this share of the phase, and so many typical operations.
_PAUSE_S, _PAUSE_SHARE, _PAUSE_OPERATIONS = 0.3, 0.1, 20
#: From this share of the processes' time on, they compute rather than wait for storage.
_BUSY = 0.85
_SHOWN = 3


def stragglers(results: Results) -> Iterable[Finding]:
    """Name processes that are much slower than the others in nearly every run: the whole waits for them."""
    found = []
    for n, rows in _measured(results):
        slow = [r for r in rows if r["slowest_process"] <= _SLOW]
        if not _nearly_all(slow, rows):
            continue
        share = median(r["slowest_process"] for r in slow)
        rank, often = Counter(int(r["slowest_rank"]) for r in slow).most_common(1)[0]
        who = f"always process {rank}" if often == len(slow) else (
            f"mostly process {rank}" if often > _MOST * len(slow) else "another process from run to run"
        )  # fmt: skip
        found.append((share, n, f"{_where(results, n)}: {words.percent(share)} ({who})"))
    yield from _finding(
        found,
        "One process delays the others in nearly every run. Its share of their speed",
        "Check its node, storage target and core.",
    )


def pauses(results: Results) -> Iterable[Finding]:
    """Name phases that stand still for a while in nearly every run."""
    found = []
    for n, rows in _measured(results):
        still = [r for r in rows if _pause(r)]
        if _nearly_all(still, rows):
            share = median(r["longest_pause"] / r["total_time"] for r in still)
            longest = median(r["longest_pause"] for r in still)
            said = f"{_where(results, n)}: {format_duration(longest)}, {words.percent(share)} of the phase"
            found.append((-share, n, said))
    yield from _finding(
        found,
        "I/O stops for a while in nearly every run",
        "Possible causes: a cache flush, or a busy server.",
    )


def busy_clients(results: Results) -> Iterable[Finding]:
    """Name numbers that the client's processors bound rather than the storage; memory always is."""
    found = []
    for n, rows in _measured(results):
        if n.medium == "memory":
            continue
        shares = [
            (r["cpu_user"] + r["cpu_system"]) / (r["total_time"] * n.processes)
            for r in rows
            if r["total_time"] > 0 and r["cpu_user"] == r["cpu_user"]
        ]
        busy = [share for share in shares if share >= _BUSY]
        if busy and len(busy) >= max(_RUNS, _MOST * len(rows)):
            found.append((-median(busy), n, f"{_where(results, n)}: {words.percent(min(1.0, median(busy)))}"))
    yield from _finding(
        found,
        "The client CPU limits these results, not the storage. CPU time, including time in I/O calls",
        "Use more processes or larger transfers.",
    )


def _pause(row: Record) -> bool:
    typical = row["latency_p50"] if row["latency_p50"] == row["latency_p50"] else 0.0
    least = max(_PAUSE_S, _PAUSE_SHARE * row["total_time"], _PAUSE_OPERATIONS * typical)
    return bool(row["longest_pause"] >= least)


def _measured(results: Results) -> Iterable[tuple[Number, list[Record]]]:
    """Yield numbers of enough runs, each with what its runs recorded; what is missing is NaN."""
    table = results.observations
    needed = ["slowest_process", "slowest_rank", "longest_pause", "cpu_user", "cpu_system", "total_time",
              "latency_p50"]  # fmt: skip
    if not set(needed) <= set(table.columns):  # a table of before they were recorded
        return
    table = table[table["role"] == "measured"]
    plain: Any = table[needed].apply(pd.to_numeric, errors="coerce").astype(float)
    at = {
        (str(run), str(operation)): row
        for run, operation, row in zip(table["run"], table["operation"], records(plain), strict=True)
    }
    for n in results.numbers:
        rows = [at[run, n.operation] for run in n.runs if (run, n.operation) in at]
        if len(rows) >= _RUNS:
            yield n, rows


def _nearly_all(some: list[Record], rows: list[Record]) -> bool:
    return len(some) >= max(_RUNS, _MOST * len(rows))


def _where(results: Results, n: Number) -> str:
    return f"{n.title or n.workload} on {results.name(n.stack)} at {n.scale}{of_origin(n.origin)}"


def _finding(found: list[tuple[float, Number, str]], what: str, advice: str) -> Iterable[Finding]:
    """Yield one sentence on all of them, the gravest first."""
    found.sort(key=lambda each: each[0])
    if not found:
        return
    more = len(found) - _SHOWN
    said = "; ".join(words for _, _, words in found[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    evidence: tuple[Evidence, ...] = tuple(number_evidence(n) for _, n, _ in found)
    yield Finding("engineer", "caution", f"{what}: {said}. {advice}", evidence)


RULES: tuple[Rule, ...] = (stragglers, pauses, busy_clients)
