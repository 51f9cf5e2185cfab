"""A comparison as a whole: sides, what differs between them, rows with verdicts, what has no partner."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiercel.compare.circumstances import Circumstance, circumstances
from tiercel.compare.judging import OUTCOMES, Judged, Outcome, Row, judge_matches
from tiercel.compare.matching import Alone, match
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
        return len(_runs(self.base) & _runs(self.other))


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

    def found(self, outcome: str) -> bool:
        """Return whether a row has that outcome (``different``: slower or faster).

        Rows that hold numbers of different origins against each other do not count: that a simulation is
        slower than a measurement is no regression.
        """
        wanted = ("slower", "faster") if outcome == "different" else (outcome,)
        return any(row.alike and row.outcome in wanted for row in self.rows)


def compare_sides(
    sides: Sequence[Side], excluded: Sequence[str], mapped: Mapping[str, str], margin: float = 0.0
) -> Answer:
    """Compare every side with the first. `excluded`: flags whose rows do not count. Raises UserError."""
    base, *others = sides
    check_map(mapped, base, others)
    pairs = []
    for other in others:
        if _runs(base) and _runs(base) == _runs(other):
            raise UserError(
                f"{base.name} and {other.name} are the same {len(_runs(base))} runs: narrow them to "
                "different dates, layers or storages"
            )
        stacks = pair_stacks(base, other, mapped)
        matches, alone = match(base, other, stacks, excluded)
        judged = judge_matches(base, other, matches, excluded, margin, interleaved(base, other))
        pairs.append(Pair(base, other, stacks, judged, alone))
    return Answer(list(sides), pairs, circumstances(sides, [p.stacks for p in pairs]), margin)


def interleaved(one: Side, two: Side) -> bool:
    """Return whether both sides come from one session: their repetitions took turns, without a drift."""
    if one.place.source != two.place.source or one.span is None or two.span is None:
        return False
    return max(one.span[0], two.span[0]) <= min(one.span[1], two.span[1])


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
    rows = side.observations
    return set(zip(rows["run"], rows["began"].fillna(0), strict=True))
