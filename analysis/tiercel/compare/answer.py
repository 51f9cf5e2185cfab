"""A comparison as a whole: sides, what differs between them, rows with verdicts, what has no partner."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tiercel.compare.circumstances import Circumstance, circumstances
from tiercel.compare.judging import OUTCOMES, Judged, Outcome, Row, judge_matches, session_variance
from tiercel.compare.matching import INVALID_HERE, OTHER_ORIGIN, Alone, match
from tiercel.compare.side import Side
from tiercel.compare.stacks import Stacks, check_map, pair_stacks
from tiercel.errors import UserError


@dataclass(frozen=True)
class Pair:
    """The baseline and one other side."""

    base: Side
    other: Side
    stacks: Stacks
    judged: Judged
    alone: list[Alone]

    @property
    def rows(self) -> list[Row]:
        return self.judged.rows

    @property
    def origins(self) -> list[str]:
        """Return the origins of its rows: measured first, and those of two origins last."""
        order = ("measured", "imported", "simulated")
        found = {row.origin for row in self.rows}
        return sorted(found, key=lambda o: (order.index(o) if o in order else len(order), o))

    @property
    def interleaved(self) -> bool:
        return interleaved(self.base, self.other)

    @property
    def shared_runs(self) -> int:
        """Return how many runs are on both sides."""
        return _count(_runs(self.base) & _runs(self.other))

    @property
    def failed(self) -> list[Alone]:
        """Return the baseline's numbers whose partner on the other side failed in every run."""
        return [each for each in self.alone if each.lost and each.side == self.base.name]

    @property
    def load_unknown(self) -> str:
        """Return the side whose load nobody recorded, where that of the other is known; else nothing."""
        sides = self.base, self.other
        known = [bool(side.observations["others_cpu"].notna().any()) for side in sides]
        return "" if known[0] == known[1] else sides[known.index(False)].name


@dataclass(frozen=True)
class Answer:
    """All that a comparison says. The first side is the baseline."""

    sides: list[Side]
    pairs: list[Pair]
    circumstances: list[Circumstance]
    margin: float

    @property
    def rows(self) -> list[Row]:
        return [row for pair in self.pairs for row in pair.rows]

    def powerless(self, least: float) -> list[Row]:
        """Return the rows that could not have shown a slowdown to `least` of the rate, or such a gain.

        A number beside one of another origin shows nothing. A row over several scales may
        hide a slower one: it counts if it is open and one of them may be that slow (`Judged.hides`).
        """
        return [
            row
            for pair in self.pairs
            for row in pair.rows
            if not row.alike or row.blind(least) or pair.judged.hides(row, least)
        ]  # fmt: skip

    def unmeasured(self) -> list[Alone]:
        """Return the baseline's numbers that could not be held against one of the other side's, and were not
        lost there. What neither side has a valid number of is `untested`."""
        return [each for pair in self.pairs for each in _alone(pair)[0]]

    def untested(self) -> list[Alone]:
        """Return the baseline's numbers of which neither side has a valid one."""
        return [each for pair in self.pairs for each in _alone(pair)[1]]

    def found(self, outcome: str) -> bool:
        """Return whether a row, or one of its scales, has that outcome (``different``: slower or faster).

        What a side lost is worse than slower: a number of the baseline whose partner failed or gave no rate
        counts for ``slower`` and ``different``. Rows that hold numbers of different origins against each
        other do not count: that a simulation is slower than a measurement is no regression.
        """
        wanted = ("slower", "faster") if outcome == "different" else (outcome,)
        if "slower" in wanted:
            wanted = ("lost", *wanted)
            if any(pair.failed for pair in self.pairs):
                return True
        every = [row for pair in self.pairs for row in (*pair.rows, *pair.judged.details)]
        return any(row.alike and row.outcome in wanted for row in every)


def _alone(pair: Pair) -> tuple[list[Alone], list[Alone]]:
    """Return the baseline's numbers that could not be compared, and those of which neither side has a valid
    one."""
    valid = {
        _asked(each) for each in pair.alone
        if each.side == pair.other.name and each.reason not in INVALID_HERE
    }  # fmt: skip
    one_sided: list[Alone] = []
    neither: list[Alone] = []
    for each in pair.alone:
        if each.side == pair.base.name and not each.lost and each.reason != OTHER_ORIGIN:
            nowhere = each.reason in INVALID_HERE and _asked(each) not in valid
            (neither if nowhere else one_sided).append(each)
    return one_sided, neither


def _asked(each: Alone) -> tuple[object, ...]:
    return (each.scale, *(each.question[name] for name in ("experiment", "workload", "operation", "engine")))


def compare_sides(
    sides: Sequence[Side], excluded: Sequence[str], mapped: Mapping[str, str], margin: float = 0.0,
    baselines: Sequence[Side] = (),
) -> Answer:  # fmt: skip
    """Compare every side with the first. `excluded`: flags whose rows do not count. `baselines`: further
    sessions of the first side, which show how much sessions vary. Raises UserError."""
    base, *others = sides
    check_map(mapped, base, others)
    sessions = []
    compared = {side.name: _runs(side) for side in sides}
    for again in baselines:
        for name, runs in compared.items():
            if runs and runs & _runs(again):
                raise UserError(
                    f"--baseline {again.name}: has runs of {name}; name another session of {base.name}"
                )
        compared[f"--baseline {again.name}"] = _runs(again)
        matches, _ = match(base, again, pair_stacks(base, again, {}), excluded)
        if not matches:
            raise UserError(f"{again.name}: nothing in it matches the baseline {base.name}")
        sessions.append(session_variance(base, again, matches, excluded))
    pairs = []
    for other in others:
        mine, theirs = _runs(base), _runs(other)
        if mine and mine == theirs:
            raise UserError(
                f"{base.name} and {other.name} are the same {_count(mine)} runs: narrow them to "
                "different dates, layers or storages"
            )
        stacks = pair_stacks(base, other, mapped)
        matches, alone = match(base, other, stacks, excluded)
        together = interleaved(base, other)
        judged = judge_matches(base, other, matches, excluded, margin, together, sessions)
        pairs.append(Pair(base, other, stacks, judged, alone))
    return Answer(list(sides), pairs, circumstances(sides, [p.stacks for p in pairs]), margin)


def interleaved(one: Side, two: Side) -> bool:
    """Return whether the repetitions of both sides took turns in one session, without a drift between them.

    That their times overlap does not say so: a side may have been measured between two halves of the other.
    Runs in random order change sides about 2 a b / (a + b) times; half of that is asked for.
    """
    if one.place.source != two.place.source:
        return False
    began = [_began(one), _began(two)]
    mine, theirs = (
        [(at, run, number) for run, at in times.items() if run not in began[1 - number]]
        for number, times in enumerate(began)
    )
    if not mine or not theirs:
        return False
    order = [number for _, _, number in sorted(mine + theirs)]
    changes = sum(a != b for a, b in pairwise(order))
    return changes >= max(2.0, len(mine) * len(theirs) / len(order))


def _began(side: Side) -> dict[str, float]:
    rows = side.runs.dropna(subset=["run", "started"])
    return {str(run): float(at) for run, at in zip(rows["run"], rows["started"], strict=True)}


def tally(rows: Sequence[Row]) -> dict[Outcome, int]:
    """Return how many rows have each outcome."""
    counts = Counter(row.outcome for row in rows)
    return {outcome: counts[outcome] for outcome in OUTCOMES}


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Return rows: slower ones by size, faster ones by size, then the rest by how far they lie from 1."""

    def key(row: Row) -> tuple[int, float]:
        ratio = row.comparison.ratio
        far = abs(math.log(ratio)) if math.isfinite(ratio) and ratio > 0 else 0.0
        return OUTCOMES.index(row.outcome), -far

    return sorted(rows, key=key)


def reasons(alone: Sequence[Alone]) -> list[tuple[str, int]]:
    """Return each reason with how many numbers have it, the most frequent first."""
    return Counter(each.reason for each in alone).most_common()


def _runs(side: Side) -> set[tuple[Any, Any]]:
    """Return what names each observation's run: its name, which a later measurement has again, and when."""
    rows = side.observations.dropna(subset="began")
    return set(zip(rows["run"], rows["began"], strict=True))


def _count(runs: set[tuple[Any, Any]]) -> int:
    return len({run for run, _ in runs})
