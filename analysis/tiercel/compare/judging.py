"""Ratios of matched numbers, and whether they are more than noise: every verdict is of statistics.

A match over several scales is judged over all of them together, and at each one. All matches of two sides (of
one origin) are one family; the single scales are another. The method is that of a study (docs/method.md);
instead of round drift, sessions vary: by `SESSION`, and by what further baselines show.

Within a session, other programs on the machine disturb all stacks alike; between two sessions they do not.
Where a side's machine was loaded, and more or less so than the other's, nothing is claimed either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from tiercel.compare.matching import Match, Scale
from tiercel.compare.rates import is_lost, rates, said_of, strays
from tiercel.compare.side import Side
from tiercel.results.validity import LOADED
from tiercel.statistics.comparison import Comparison
from tiercel.statistics.decide import Facts, verdicts
from tiercel.statistics.model import DRIFT, Fit, Floats, Shape, contrast, fit, joined
from tiercel.statistics.noise import UNKNOWN, Floor
from tiercel.statistics.select import SCALE, flag_list
from tiercel.statistics.summary import summarize
from tiercel.statistics.verdict import MARGIN, Rule, Verdict
from tiercel.statistics.verdict import Outcome as Verdicts

#: Loads of two machines are the same up to this share of the cores.
_UNEVEN = 0.1
#: Sessions of one system differ by this (standard deviation of logarithms), as if so many had shown it.
SESSION, SESSIONS = 0.05, 8

#: Lost: the other side was measured, too, and gave no rate.
Outcome = Literal["lost", "slower", "faster", "undecided"]
OUTCOMES: tuple[Outcome, ...] = ("lost", "slower", "faster", "undecided")

#: All that is measured here counts something done in a second: more is faster.
_OUTCOME: dict[str, Outcome] = {"lower": "slower", "higher": "faster"}


#: Of a row that is not judged yet.
UNJUDGED = Comparison(Verdict(Verdicts.NO_POWER, Rule.NO_RATE, math.nan, math.nan, math.nan), UNKNOWN, 1.0)


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
    comparison: Comparison
    runs_base: tuple[str, ...]
    runs_other: tuple[str, ...]
    loaded: bool = False
    """Beyond noise, and not claimed because other programs used the machine on one side."""
    strays: tuple[int, int] = (0, 0)
    """How many repetitions of the baseline and of the other side gave no rate."""
    lost: str = ""
    """What the other side gave where it should have given rates; empty where it did."""

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty for a claim."""
        return self.lost or self.comparison.reason

    @property
    def findable(self) -> float:
        """Return the largest ratio below 1 that would have been claimed; NaN where none would."""
        detectable = self.comparison.value.detectable
        return 1 / detectable if math.isfinite(detectable) else math.nan

    @property
    def same(self) -> bool:
        """The whole interval lies within the margin."""
        return self.comparison.value.outcome is Verdicts.SAME

    def blind(self, least: float) -> bool:
        """Return whether the row is open and could not have shown a slowdown to `least`, or such a gain.

        What is the same within the margin excludes that slowdown only where its interval does.
        """
        shows = self.comparison.low > least if self.same else self.findable >= least
        return self.outcome == "undecided" and not shows

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

    def hides(self, row: Row, least: float) -> bool:
        """Return whether a row is open and one of its scales may be as slow as `least`.

        Such a scale does not exclude it, and its ratio is nearer to it than to 1.
        """
        return row.outcome == "undecided" and any(
            each.comparison.ratio < math.sqrt(least) and not each.comparison.low > least
            for each in self.details if each.match is row.match
        )  # fmt: skip


def judge_matches(
    base: Side,
    other: Side,
    matches: Sequence[Match],
    excluded: Sequence[str],
    margin: float = 0.0,
    interleaved: bool = False,
    sessions: Sequence[float] = (),
) -> Judged:
    """Return ratios and verdicts.

    `margin`: differences up to this share are noise in any case. `interleaved`: the sides' repetitions took
    turns in one session. `sessions`: variances of a session that further baselines show.
    """
    if not matches:
        return Judged([], [])
    origins = list(dict.fromkeys(one.origin for one in matches))
    if len(origins) > 1:  # numbers of different origins never enter one estimate
        order = {id(one): place for place, one in enumerate(matches)}
        parts = [
            judge_matches(base, other, [one for one in matches if one.origin == origin], excluded, margin,
                          interleaved, sessions) for origin in origins
        ]  # fmt: skip
        rows, details = ([row for part in parts for row in getattr(part, n)] for n in ("rows", "details"))
        return Judged(*(sorted(each, key=lambda row: order[id(row.match)]) for each in (rows, details)))
    asked: list[tuple[Match, Scale | None]] = []
    for one in matches:
        asked.append((one, None if len(one.scales) > 1 else one.scales[0]))
    asked += [(one, scale) for one in matches if len(one.scales) > 1 for scale in one.scales]
    made = _fits(base, other, matches, excluded)
    places = {id(one): place for place, one in enumerate(matches)}
    second = np.array([places[id(one)] for one, _ in asked])
    scales = np.zeros((len(asked), made.logs.shape[1]), dtype=bool)
    for row, (one, scale) in enumerate(asked):
        at = range(len(one.scales)) if scale is None else [one.scales.index(scale)]
        scales[row, list(at)] = True
    known = SESSIONS + len(sessions)
    session = (SESSIONS * SESSION**2 + sum(sessions)) / known
    drift = np.full(len(asked), 0.0 if interleaved else 2 * session), np.full(len(asked), float(known))
    found = contrast(made, second + len(matches), second, list(drift), scales)
    failures = _failures(base), _failures(other)
    rows = [_row(base, other, one, scale, failures) for one, scale in asked]
    families = [(row.origin, i < len(matches)) for i, row in enumerate(rows)]
    nothing = np.zeros(len(rows))
    facts = Facts(nothing, nothing)
    judged = verdicts(found, facts, families, margin=1 + margin if margin else MARGIN)
    layout = made.layout[second] + made.layout[second + len(matches)]
    for i, each in enumerate(judged):
        verdict = _of_sessions(each, margin, bool(found.parts[DRIFT, i] <= 2 * session))
        high = math.exp(1.96 * math.sqrt(layout[i])) if math.isfinite(layout[i]) else math.inf
        floor = Floor(1 / high, high, int(made.layout_freedom), "own") if math.isfinite(high) else UNKNOWN
        rows[i] = replace(rows[i], comparison=Comparison(verdict, floor, float(found.p[i])))
    result = Judged(rows[: len(matches)], rows[len(matches) :])
    if interleaved:
        return result
    loads = [_load_of(side) for side in (base, other)]
    return Judged(*([_of_load(row, *loads) for row in part] for part in (result.rows, result.details)))


def _of_sessions(verdict: Verdict, margin: float, by_sessions: bool) -> Verdict:
    """Return the verdict with what the user takes for noise, and with sessions as what drifts, `by_sessions`:
    no operation drifts more within one."""
    if verdict.rule is Rule.ROUND_DRIFT and by_sessions:
        return replace(verdict, rule=Rule.SESSIONS)
    if verdict.rule is Rule.DIFFERENCE and abs(math.log(verdict.ratio)) <= math.log1p(margin):
        return replace(verdict, outcome=Verdicts.NOT_DECIDED, rule=Rule.SESSIONS, extent=1 + margin)
    return verdict


def session_variance(base: Side, other: Side, matches: Sequence[Match], excluded: Sequence[str]) -> float:
    """Return the variance of one session from two of the same system: what all matches differ by, in the mean
    square, less what their repetitions and layout sessions explain."""
    made = _fits(base, other, matches, excluded)
    places = np.arange(len(matches))
    found = contrast(made, places + len(matches), places)
    known = np.isfinite(found.difference) & np.isfinite(found.variance)
    surplus = found.difference[known] ** 2 - found.variance[known]
    return max(0.0, float(surplus.mean()) / 2) if known.any() else SESSION**2


def _fits(base: Side, other: Side, matches: Sequence[Match], excluded: Sequence[str]) -> Fit:
    """Return the fit of both sides: a cell for each match, first those of the baseline, then of the other."""
    return joined(*(
        _fit(side, [getattr(one, name) for one in matches], [one.metric for one in matches],
             [one.scales for one in matches], excluded)
        for side, name in ((base, "base"), (other, "other"))
    ))  # fmt: skip


def _fit(
    side: Side, questions: Sequence[Any], metrics: Sequence[str], scales: Sequence[Sequence[Scale]],
    excluded: Sequence[str],
) -> Fit:  # fmt: skip
    seconds = side.observations[side.observations["twin"] == "b"]
    banned = seconds["flags"].map(lambda flags: bool(set(excluded) & set(flag_list(flags))))
    seconds = seconds[~banned.astype(bool)]
    replicates = dict(list(seconds.groupby(["origin", "configuration", "operation"])))
    series: dict[tuple[int, int, int], Floats] = {}
    for cell, (question, metric) in enumerate(zip(questions, metrics, strict=True)):
        for place, scale in enumerate(scales[cell]):
            rows = question.scales[scale]
            series[cell, place, 0] = rates(rows[metric])
            key = tuple(rows[name].iloc[0] for name in ("origin", "configuration", "operation"))
            if key in replicates:
                series[cell, place, 1] = rates(replicates[key][metric])
    longest = max([1, *(len(values) for values in series.values())])
    logs = np.full((len(questions), max(map(len, scales)), 2, longest), math.nan)
    for at, values in series.items():
        logs[at][: len(values)] = np.log(values)
    stacks = pd.factorize(pd.Series([f"{q['storage']}|{q['layer']}" for q in questions]))[0]
    operations = pd.factorize(pd.Series([q["operation"] for q in questions]))[0]
    return fit(logs, Shape(stacks, operations, np.arange(len(questions))))


def values_of(one: Match, scale: Scale | None) -> list[tuple[pd.Series[Any], pd.Series[Any]]]:
    """Return all values of the other side and of the baseline at a scale, or at each of the match's."""
    chosen = one.scales if scale is None else (scale,)
    return [(one.other.scales[s][one.metric], one.base.scales[s][one.metric]) for s in chosen]


def _row(
    base: Side, other: Side, one: Match, scale: Scale | None, failures: tuple[Failures, Failures]
) -> Row:
    """Return a row that is not judged yet."""
    chosen = one.scales if scale is None else (scale,)
    theirs = [one.other.scales[s] for s in chosen]
    mine = [one.base.scales[s] for s in chosen]
    values = values_of(one, scale)
    alone = scale is not None
    return Row(
        base.name, other.name, one, scale,
        summarize(values[0][1]).median if alone else math.nan,
        summarize(values[0][0]).median if alone else math.nan,
        UNJUDGED, _runs(mine), _runs(theirs),
        strays=(sum(strays(b) for _, b in values), sum(strays(a) for a, _ in values)),
        lost=_lost(values) or _failed(*failures, one, chosen),
    )  # fmt: skip


def _lost(values: Sequence[tuple[pd.Series[Any], pd.Series[Any]]]) -> str:
    """Return what the other side gave instead of rates, at the scales where the baseline has some."""
    found = [other for other, base in values if is_lost(other) and not is_lost(base)]
    if not found:
        return ""
    where = f" at {len(found)} of {len(values)} scales" if len(values) > 1 else ""
    every = pd.concat(found)
    return f"of {len(every)} repetitions{where} {said_of(every)}"


#: What a run and a question have in common.
_OF_RUN = ("origin", "study", "experiment", "workload", "engine", "storage", "layer")
#: By that and the scale: how many runs failed, and how many there are.
Failures = Mapping[tuple[str | int, ...], tuple[int, int]]


def _failures(side: Side) -> Failures:
    columns = [*(side.runs[name].astype(str) for name in _OF_RUN), *(side.runs[name] for name in SCALE)]
    keys = zip(*columns, strict=True)
    found: dict[tuple[str | int, ...], tuple[int, int]] = {}
    for key, status in zip(keys, side.runs["status"], strict=True):
        failed, runs = found.get(key, (0, 0))
        found[key] = failed + (status != "ok"), runs + 1
    return found


def _failed(base: Failures, other: Failures, one: Match, scales: Sequence[Scale]) -> str:
    """Return how many runs of the other side failed at a scale, if half of them or more did, and not of the
    baseline."""
    for scale in scales:
        (before, planned), (failed, runs) = (
            found.get((*(question[name] for name in _OF_RUN), *scale), (0, 0))
            for found, question in ((base, one.base), (other, one.other))
        )
        if failed and 2 * failed >= runs and 2 * before < planned:
            where = f" at {scale[0]} x {scale[1]} processes" if len(one.scales) > 1 else ""
            return f"{failed} of {runs} runs{where} failed"
    return ""


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
    loaded = row.comparison.value.outcome.decided
    value = replace(
        row.comparison.value, outcome=Verdicts.NO_POWER, rule=Rule.LOAD, detectable=math.inf, needed=None
    )
    return replace(row, comparison=replace(row.comparison, value=value), loaded=loaded)


def _uneven(one: float, two: float) -> bool:
    """Return whether a machine was loaded, and the other not as much, as far as is known."""
    known = [load for load in (one, two) if math.isfinite(load)]
    if not known or max(known) <= LOADED:
        return False
    return len(known) < 2 or abs(one - two) > _UNEVEN


def _runs(parts: Sequence[pd.DataFrame]) -> tuple[str, ...]:
    return tuple(str(run) for part in parts for run in part["run"])
