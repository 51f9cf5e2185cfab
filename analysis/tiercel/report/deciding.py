"""What it would take to decide what a study left undecided, and which of it fits into some minutes.

Asked for are the answers of the first screen: whether a storage is ahead of the one that it is held against.
Time is that of the runs so far, their preparation included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tiercel.report.classes import WorkloadClass
from tiercel.report.data import Record, Results
from tiercel.statistics.ranking import same
from tiercel.statistics.verdict import Verdict
from tiercel.units import format_duration


@dataclass(frozen=True)
class Open:
    """An answer that is undecided."""

    workload: str
    stack: str
    against: str
    repetitions: int | None
    """How many more on each side, at each scale, would decide it; None where they would not."""
    configurations: tuple[str, ...]
    """Whose repetitions: those of both sides at all scales."""
    seconds: float
    """How long that takes; infinite where repetitions would not decide it."""
    cause: str = ""
    """Why repetitions would not decide it."""


@dataclass(frozen=True)
class Further:
    """What fits into a time."""

    answers: tuple[Open, ...]
    repetitions: Mapping[str, int]
    """By configuration: how many more."""
    seconds: float


def open_answers(results: Results, found: Iterable[WorkloadClass]) -> list[Open]:
    """Return the undecided answers of the classes, in their order; each pair of storages once."""
    cost = _seconds_of(results)
    of_run = dict(zip(results.runs["run"], results.runs["configuration"], strict=True))
    made: dict[tuple[object, ...], Open] = {}
    for c in found:
        if c.origin != "measured":
            continue
        for stack, standing in c.ranking.standings.items():
            pair = (c.key, frozenset((stack, standing.against)))
            if pair in made or not standing.rows or standing.outcome != "undecided":
                continue
            which = dict.fromkeys(
                of_run[run] for row in standing.rows for run in row["runs"] if run in of_run
            )
            needed = _needed(standing.rows)
            seconds = math.inf if needed is None else needed * sum(cost.get(each, 0.0) for each in which)
            cause = _cause(standing.rows)
            made[pair] = Open(c.name, stack, standing.against, needed, tuple(which), seconds, cause)
    return list(made.values())


def further(answers: Sequence[Open], results: Results, budget: float) -> Further:
    """Return what `budget` seconds decide: the quickest answers first; what two of them share runs once."""
    cost = _seconds_of(results)
    chosen: list[Open] = []
    counts: dict[str, int] = {}

    def total(of: Mapping[str, int]) -> float:
        return sum(n * cost.get(key, 0.0) for key, n in of.items())

    for answer in sorted(answers, key=lambda each: each.seconds):
        if answer.repetitions is None:
            continue
        wanted = {key: max(counts.get(key, 0), answer.repetitions) for key in answer.configurations}
        if total(counts | wanted) <= budget:
            counts |= wanted
            chosen.append(answer)
    return Further(tuple(chosen), counts, total(counts))


def sentence(answers: Sequence[Open], results: Results) -> str:
    """Say what would decide how many of the answers; empty where there are none."""
    if not answers:
        return ""
    every = further(answers, results, math.inf)
    never = len(answers) - len(every.answers)
    if not every.answers:
        return f"more repetitions would not decide {'it' if never == 1 else 'them'}: {causes(answers)}"
    said = f"about {format_duration(every.seconds)} more would decide "
    said += "it" if len(answers) == 1 else "all" if not never else f"{len(every.answers)} of {len(answers)}"
    return f"{said} (tiercel evaluate --decide)"


def causes(answers: Iterable[Open]) -> str:
    """Say why repetitions would not decide answers: ``copies of one configuration differ as much``."""
    return ", or ".join(dict.fromkeys(answer.cause for answer in answers))


def _cause(rows: Iterable[Record]) -> str:
    """Return why repetitions would not decide an answer: the rules that prevent its open comparisons."""
    open_ones = [v for row in rows if not (v := Verdict.of(row)).outcome.decided]
    return " and ".join(dict.fromkeys(f"{v.rule} ({v.action()})" for v in open_ones))


def _needed(rows: Iterable[Record]) -> int | None:
    """Return for one answer, of one comparison or of several operations', the fewest repetitions that decide
    one of them; None where none can, or where what is decided already contradicts itself."""
    rows = list(rows)
    left = [row for row in rows if row["verdict"] == "undecided" and not same(row)]
    if len({row["verdict"] for row in rows} - {"undecided"}) > 1:
        return None
    known = [int(row["needed"]) for row in left if not math.isnan(row["needed"])]
    return min(known, default=None)


def _seconds_of(results: Results) -> dict[str, float]:
    """Return how long a run of each configuration takes (s)."""
    runs = results.runs[~results.runs["traced"].fillna(False).astype(bool)]
    return {str(k): float(v) for k, v in runs.groupby("configuration")["duration"].mean().items()}
