"""Ratios of matched numbers, and whether they are more than noise: every verdict is statistics' own.

A match over several scales is judged over all of them together, and at each one besides. All matches of two
sides (of one origin) are one family for Hochberg's correction, so that "nothing is slower" holds for the
whole comparison; the single scales are another. The noise is the wider of both sides' A/A floors; where one
side ran no A/A pair nothing can be claimed.

Within a session, other programs on the machine disturb all stacks alike; between two sessions they do not.
Where a side's machine was loaded, and more or less so than the other's, nothing is claimed either; nor where
the load of the other is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from tiercel.compare.findable import findable
from tiercel.compare.matching import Match, Scale
from tiercel.compare.rates import is_lost, rates, said_of, strays
from tiercel.compare.side import Side
from tiercel.results.validity import LOADED
from tiercel.statistics.comparison import Comparison, compare_scales, judge
from tiercel.statistics.noise import UNKNOWN, Floor, lookup, widest
from tiercel.statistics.summary import finite, summarize
from tiercel.units import format_share

#: Loads of two machines are the same up to this share of the cores.
_UNEVEN = 0.1

#: Lost: the other side was measured, too, and gave no rate.
Outcome = Literal["lost", "slower", "faster", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("lost", "slower", "faster", "undecided")

#: All that is measured here counts something done in a second: more is faster.
_OUTCOME: dict[str, Outcome] = {"lower": "slower", "higher": "faster"}


@dataclass(frozen=True)
class Row:
    """A match and its verdict, of the other side over the baseline."""

    base_side: str
    other_side: str
    match: Match
    scale: Scale | None
    """None: over the several scales of the match."""
    median_base: float
    """NaN over several scales."""
    median_other: float
    floor_base: Floor
    floor_other: Floor
    comparison: Comparison
    runs_base: tuple[str, ...]
    runs_other: tuple[str, ...]
    loaded: bool = False
    """Beyond noise, and not claimed because other programs used the machine on one side."""
    strays: tuple[int, int] = (0, 0)
    """How many repetitions of the baseline and of the other side gave no rate."""
    lost: str = ""
    """What the other side gave where it should have given rates; empty where it did."""
    findable: float = math.nan
    """Of an undecided row: the largest ratio below 1 that would have been claimed; NaN where none would."""
    unfindable: str = ""
    """Why none would have been."""

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty for a claim."""
        return self.lost or self.comparison.reason

    @property
    def outcome(self) -> Outcome:
        if self.lost:
            return "lost"
        return _OUTCOME.get(self.comparison.verdict, "undecided")

    @property
    def origin(self) -> str:
        return self.match.origin

    @property
    def alike(self) -> bool:
        """Both numbers have the same origin."""
        return self.match.base["origin"] == self.match.other["origin"]


@dataclass(frozen=True)
class Judged:
    """`rows`: one for each match. `details`: each scale of the matches that have several."""

    rows: list[Row]
    details: list[Row]


def judge_matches(
    base: Side,
    other: Side,
    matches: Sequence[Match],
    excluded: Sequence[str],
    margin: float = 0.0,
    interleaved: bool = False,
) -> Judged:
    """Return ratios and verdicts.

    `margin`: differences up to this share are noise in any case. `interleaved`: the sides' repetitions took
    turns in one session.
    """
    floors = [lookup(side.floors(excluded)) for side in (base, other)]
    rows, details = [], []
    for one in matches:
        several = len(one.scales) > 1
        rows.append(_row(base, other, one, None if several else one.scales[0], floors, margin))
        if several:
            details += [_row(base, other, one, scale, floors, margin) for scale in one.scales]
    judged = Judged(_judged(rows), _judged(details))
    if interleaved:
        return judged
    loads = [_load_of(side) for side in (base, other)]
    return Judged(*([_of_load(row, *loads) for row in part] for part in (judged.rows, judged.details)))


def values_of(one: Match, scale: Scale | None) -> list[tuple[pd.Series[Any], pd.Series[Any]]]:
    """Return all values of the other side and of the baseline at a scale, or at each of the match's."""
    chosen = one.scales if scale is None else (scale,)
    return [(one.other.scales[s][one.metric], one.base.scales[s][one.metric]) for s in chosen]


def _row(
    base: Side,
    other: Side,
    one: Match,
    scale: Scale | None,
    floors: Sequence[Callable[[Mapping[str, Any]], Floor]],
    margin: float,
) -> Row:
    chosen = one.scales if scale is None else (scale,)
    theirs = [one.other.scales[s] for s in chosen]
    mine = [one.base.scales[s] for s in chosen]
    values = values_of(one, scale)
    floor_base, floor_other = floors[0](one.base.words), floors[1](one.other.words)
    strata = [(rates(other_values), rates(base_values)) for other_values, base_values in values]
    alone = scale is not None
    return Row(
        base.name,
        other.name,
        one,
        scale,
        summarize(values[0][1]).median if alone else math.nan,
        summarize(values[0][0]).median if alone else math.nan,
        floor_base,
        floor_other,
        ratio_of(strata, wider(floor_base, floor_other, margin)),
        _runs(mine),
        _runs(theirs),
        strays=(sum(strays(b) for _, b in values), sum(strays(a) for a, _ in values)),
        lost=_lost(values),
    )


def _lost(values: Sequence[tuple[pd.Series[Any], pd.Series[Any]]]) -> str:
    """Return what the other side gave instead of rates, at the scales where the baseline has some."""
    found = [other for other, base in values if is_lost(other) and not is_lost(base)]
    if not found:
        return ""
    where = f" at {len(found)} of {len(values)} scales" if len(values) > 1 else ""
    every = pd.concat(found)
    return f"of {len(every)} repetitions{where} {said_of(every)}"


def wider(one: Floor, two: Floor, margin: float = 0.0) -> Floor:
    """Return the floor that holds for a comparison of two sides: the wider; unknown unless both are known."""
    if not (one.known and two.known):
        return UNKNOWN
    least = Floor(1 / (1 + margin), 1 + margin, min(one.n, two.n), "margin")
    return widest([one, two, least] if margin else [one, two])


def ratio_of(strata: Iterable[tuple[Iterable[Any], Iterable[Any]]], floor: Floor) -> Comparison:
    """Compare pairs of samples so that the answer for b to a is that for a to b, turned around.

    The interval is drawn by chance, first of the one sample and then of the other: which is first must not
    hang on which side the user named first, so it is drawn both ways, and the wider one counts.
    """
    pairs = [(finite(a), finite(b)) for a, b in strata]
    one, turned = compare_scales(pairs, floor), compare_scales([(b, a) for a, b in pairs], floor)
    if not math.isfinite(one.ratio):
        return one
    return judge([replace(one, low=min(one.low, 1 / turned.high), high=max(one.high, 1 / turned.low))])[0]


def _judged(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with verdicts corrected within each origin, and what the undecided could have shown."""
    found: list[Row] = list(rows)
    for origin in {row.origin for row in rows}:
        places = [i for i, row in enumerate(rows) if row.origin == origin]
        family = judge([rows[i].comparison for i in places])
        for place, i in enumerate(places):
            row = replace(rows[i], comparison=family[place])
            if row.outcome == "undecided":
                strata = [(rates(a), rates(b)) for a, b in values_of(row.match, row.scale)]
                ratio, why = findable(family, place, strata)
                row = replace(row, findable=ratio, unfindable=why)
            found[i] = row
    return found


def _load_of(side: Side) -> Callable[[Sequence[pd.DataFrame]], float]:
    """Return a function for the share of the cores that others used while these rows were measured."""
    column = pd.to_numeric(side.observations["others_cpu"], errors="coerce")

    def median(parts: Sequence[pd.DataFrame]) -> float:
        found = summarize(column.loc[index] for part in parts for index in part.index)
        return found.median

    return median


def _of_load(
    row: Row,
    load_base: Callable[[Sequence[pd.DataFrame]], float],
    load_other: Callable[[Sequence[pd.DataFrame]], float],
) -> Row:
    chosen = row.match.scales if row.scale is None else (row.scale,)
    one = load_base([row.match.base.scales[s] for s in chosen])
    two = load_other([row.match.other.scales[s] for s in chosen])
    if row.outcome == "lost" or not _uneven(one, two):
        return row
    reason = (
        f"other programs used {_share(two)} of the cores on {row.other_side} and {_share(one)} on "
        f"{row.base_side}"
    )
    if row.outcome == "undecided":
        return replace(row, findable=math.nan, unfindable=reason)
    held_back = replace(row.comparison, verdict="undecided", reason=reason)
    return replace(row, comparison=held_back, loaded=True, unfindable=reason)


def _uneven(one: float, two: float) -> bool:
    """Return whether a machine was loaded, and the other not as much, as far as is known."""
    known = [load for load in (one, two) if math.isfinite(load)]
    if not known or max(known) <= LOADED:
        return False
    return len(known) < 2 or abs(one - two) > _UNEVEN


def _share(load: float) -> str:
    return format_share(load) if math.isfinite(load) else "an unknown share"


def _runs(parts: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    return tuple(str(run) for part in parts for run in part["run"])
