"""Is one system better than another? A ratio, its interval, tests, and a verdict.

Within a study (:func:`compare_placed`) a difference is claimed only when all hold:

1. the two-level model of repetitions and placements (see :mod:`tiercel.statistics.placements`; Welch's t on
   logarithms, with the variance between placements added to that of the means, and that by which a system
   changed from round to round: :mod:`tiercel.statistics.wander`) gives p < 0.05, corrected for the number of
   comparisons made, and such a change alone would not give as much, and
2. the Mann-Whitney rank test, which needs no model, gives p < 0.05 for the comparison alone: over all of its
   scales, or at one of them, times their number (what differs at one scale alone is hidden by the others),
   and
3. usual runs differ, not only some of them (:mod:`tiercel.statistics.usual`).

Where the placements that were measured are not those of the comparison (between evaluations of different
days, replays of one program; :func:`compare_scales`), it is claimed only when the interval of the ratio of
medians lies outside the A/A noise floor, and the rank test, corrected, gives p < 0.05.

The rank test is exact: it counts in how many of all ways to deal the values to the two sides the rank sum
would be as extreme (ties share their mean rank). Three values against three can be dealt in 20 ways, so
the smallest two-sided p is 2/20 = 0.1, and no difference however large passes at 5 %; such a comparison
is undecided, for that reason. A study with three repetitions still decides where it has several scales:
:func:`compare_scales` counts the ways within each scale (a stratified, van Elteren-like, test), and two
scales of three against three have 400 ways. Its claim is about the scales together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tiercel.statistics.bootstrap import ratio_interval
from tiercel.statistics.distributions import f_above, t_beyond, t_bound
from tiercel.statistics.noise import Floor
from tiercel.statistics.placements import between
from tiercel.statistics.ranking import NOT_IN_TURN
from tiercel.statistics.satterthwaite import of_seen, satterthwaite
from tiercel.statistics.summary import Values, finite
from tiercel.statistics.usual import USUAL, usual_p
from tiercel.statistics.verdict import MARGIN, POWERLESS, SAME_FROM, Outcome, Rule
from tiercel.statistics.verdict import Verdict as Value
from tiercel.statistics.wander import EXPLAINS, STEADY, Wander
from tiercel.units import format_duration, format_share

Verdict = Literal["higher", "lower", "undecided"]
Sample = Iterable[Any]

ALPHA = 0.05
#: More values than this in one sample pair are tested by the normal approximation.
_EXACT = 80

#: Reasons: in plain words first, what they rest on in brackets.
NO_PAIR = "nothing was measured twice over, so the noise is unknown (no A/A pair)"
WITHIN_NOISE = (
    "one system measured twice over differs as much from itself (the ratio's interval reaches into the A/A "
    "noise floor)"
)

#: Columns that every table of comparisons has.
VERDICT_COLUMNS = (
    "n_a",
    "n_b",
    "ratio",
    "low",
    "high",
    "effect",
    "p_value",
    "p_corrected",
    "floor_low",
    "floor_high",
    "floor_source",
    "verdict",
    "reason",
    "separated",
    "farthest",
    "outcome",
    "rule",
    "family",
    "detectable",
    "extent",
)


@dataclass(frozen=True)
class Parts:
    """What the two-level model makes a difference of: all of logarithms."""

    difference: float
    sides: tuple[tuple[tuple[float, int], ...], ...]
    """For each side, and each of its scales: the variance of a repetition, and how many there are."""
    placed: float
    """The variance between placements, of the whole difference: repetitions do not make it smaller."""
    placed_freedom: float
    farthest: float = math.nan
    """The ratio at the scale where it is farthest from 1, where scales surely differ (F test); NaN else."""
    changed: Wander = STEADY
    """What the systems changed against each other over the study: further rounds tell more of it."""

    def repeated(self, more: int = 0) -> tuple[float, float]:
        """Return the variance of the difference by the repetitions, were there so many more of them, and its
        degrees of freedom (B. L. Welch, Biometrika 34, 1947); one repetition has an infinite variance."""
        if any(n < 2 for side in self.sides for _, n in side):
            return math.inf, 1.0
        parts = [
            (variance / (n + more) / len(side) ** 2, float(n + more - 1))
            for side in self.sides
            for variance, n in side
        ]
        # A system may vary more at one scale than at another: what varies most has its own freedom alone.
        freedom = of_seen(parts) if len(self.sides[0]) > 1 else satterthwaite(parts)
        return sum(variance for variance, _ in parts), freedom


@dataclass(frozen=True)
class Comparison:
    """What a says against b. `verdict` is of a: its number is higher, lower, or undecided."""

    ratio: float
    """Median of a over median of b; over several scales, the geometric mean of their ratios."""
    low: float
    high: float
    p_value: float
    """Exact, two-sided, for this comparison alone."""
    effect: float
    """Cliff's delta: share of pairs in which a is greater, less the share in which b is; -1 to 1."""
    n_a: int
    n_b: int
    floor: Floor
    smallest_p: float
    """The least p that samples of these sizes can give."""
    p_corrected: float = math.nan
    verdict: Verdict = "undecided"
    reason: str = ""
    """Why it is undecided; empty for a claim."""
    model_p: float | None = None
    """p of the two-level model, for this comparison alone; None where it was compared without."""
    parts: Parts | None = None
    """What the model rests on; None where it was compared without, or nothing tells of placements."""
    changed: float = 0.0
    """The variance by which the systems changed against each other over the study."""
    changed_p: float = 0.0
    """The chance that this change alone gives such a difference."""
    usual_p: float = 0.0
    """p of usual runs alike (:mod:`tiercel.statistics.usual`), for this comparison alone."""
    scale_p: float = 1.0
    """The least p of the rank test at a single scale, in the direction of the ratio, times the scales."""
    later: float = 0.0
    """Seconds by which one side was measured after the other; 0 where they took turns."""
    family: int = 1
    spend: float = 1.0

    @property
    def separated(self) -> bool:
        """Every value of one side is beyond every value of the other: a hint where claims are impossible."""
        return abs(self.effect) == 1.0

    @property
    def farthest(self) -> float:
        """The ratio at the scale where it is farthest from 1; NaN where scales do not surely differ."""
        return math.nan if self.parts is None else self.parts.farthest

    def value(self, margin: float = MARGIN, needed: int | None = None) -> Value:
        """Return the comparison as a verdict."""
        rule, extent = self._rule()
        outcome = {"higher": Outcome.BETTER, "lower": Outcome.WORSE}.get(self.verdict, Outcome.NOT_DECIDED)
        inside = self.low >= 1 / margin and self.high <= margin and min(self.n_a, self.n_b) >= SAME_FROM
        far = math.isfinite(self.farthest) and abs(math.log(self.farthest)) > math.log(margin)
        if inside and not far and not self.later:
            outcome, rule, extent, needed = Outcome.SAME, Rule.EQUIVALENCE, math.nan, None
        detectable = self._detectable()
        if outcome is Outcome.NOT_DECIDED and not detectable <= POWERLESS:
            outcome = Outcome.NO_POWER
        return Value(
            outcome, rule, self.ratio, self.low, self.high, self.p_corrected, self.n_a, self.n_b, self.family,
            detectable, needed, margin, extent,
        )  # fmt: skip

    def _rule(self) -> tuple[Rule, float]:
        """Return the rule that fired, and what it rests on."""
        parts = self.parts
        if self.verdict != "undecided":
            return Rule.DIFFERENCE, math.nan
        if not math.isfinite(self.ratio):
            return Rule.NO_RATE, math.nan
        if self.later:
            return Rule.NOT_IN_TURN, self.later
        if not self.floor.known:
            return Rule.NO_REPLICATE, math.nan
        if self.smallest_p >= ALPHA:
            return Rule.FEW_REPETITIONS, math.nan
        if self.model_p is not None and self.p_corrected < ALPHA and min(self.p_value, self.scale_p) < ALPHA:
            return Rule.SOME_RUNS, math.nan
        if math.isfinite(self.farthest):
            return Rule.SCALES, self.farthest
        if parts and (self.changed > max(parts.placed, parts.repeated()[0]) or self.changed_p >= EXPLAINS):
            return Rule.ROUND_DRIFT, math.exp(math.sqrt(self.changed))
        if parts is None or parts.placed > parts.repeated()[0]:
            return Rule.LAYOUT, self.floor.high
        return Rule.REPETITIONS, math.nan

    def _detectable(self) -> float:
        if self.parts is None or self.smallest_p >= ALPHA or self.later:
            return math.inf
        repeated, freedom = self.parts.repeated()
        rest = [(self.parts.placed, self.parts.placed_freedom), (self.changed, self.parts.changed.freedom)]
        whole = repeated + sum(part for part, _ in rest)
        freedom = satterthwaite([(repeated, freedom), *rest])
        reach = t_bound(ALPHA * self.spend / self.family / 2, freedom) + t_bound(0.2, freedom)
        return math.exp(min(reach * math.sqrt(whole), 700.0))

    def columns(self, margin: float = MARGIN) -> dict[str, Any]:
        """Return the values of VERDICT_COLUMNS."""
        value = self.value(margin).columns()
        told = {name: value[name] for name in ("outcome", "rule", "family", "detectable", "extent")}
        return self._columns() | told

    def _columns(self) -> dict[str, Any]:
        floor = {
            "floor_low": self.floor.low,
            "floor_high": self.floor.high,
            "floor_source": self.floor.source,
        }
        return {name: floor.get(name, getattr(self, name, None)) for name in VERDICT_COLUMNS}


def compare(a: Sample, b: Sample, floor: Floor, seed: int = 0) -> Comparison:
    """Compare two samples; the verdict is that of a single comparison (see :func:`judge` for families)."""
    return compare_scales([(a, b)], floor, seed)


def compare_scales(strata: Iterable[tuple[Sample, Sample]], floor: Floor, seed: int = 0) -> Comparison:
    """Compare pairs of samples, one pair for each scale, in one verdict about all of them."""
    pairs = _both(strata)
    plain = _plain(pairs, floor)
    if not math.isfinite(plain.ratio):
        return plain
    low, high = ratio_interval(pairs, seed=seed)
    return judge([replace(plain, low=min(low, plain.ratio), high=max(high, plain.ratio))])[0]


def compare_placed(
    strata: Iterable[tuple[Sample, Sample]],
    spread: Floor,
    shown: Iterable[tuple[Sample, Sample]] | None = None,
    changed: Wander = STEADY,
) -> Comparison:
    """Compare pairs of samples, one pair for each scale, by the two-level model.

    `spread` is that of two placements of these configurations (:mod:`tiercel.statistics.placements`). The
    ratio of medians is that of `shown`, values as they were measured, where `strata` were flattened.
    `changed`: by how much the two systems changed against each other (:mod:`tiercel.statistics.wander`).
    """
    pairs = _both(strata)
    plain = _plain(pairs, spread)
    if not math.isfinite(plain.ratio):
        return plain
    ratio = plain.ratio if shown is None else _ratio(_both(shown))
    difference, sides = _sides(pairs)
    apart = between(spread) / len(pairs) if spread.known else math.inf
    stays = [(apart, float(spread.n)), (changed.variance, changed.freedom)]
    parts = Parts(difference, sides, apart, float(spread.n), _farthest(pairs, between(spread)), changed)
    variance, freedom = parts.repeated()
    whole = variance + sum(part for part, _ in stays)
    if not math.isfinite(whole):
        model_p, low, high = 1.0, *ratio_interval(pairs)
    else:
        freedom = satterthwaite([(variance, freedom), *stays])
        half = t_bound(ALPHA / 2, freedom) * math.sqrt(whole)
        low, high = (math.exp(max(min(difference + side, 700.0), -700.0)) for side in (-half, half))
        model_p = _two_sided(difference, whole, freedom)
    if (difference > 0) != (ratio > 1):
        model_p = 1.0  # the means say one thing and the medians another: nothing is clear
    made = replace(
        plain, ratio=ratio, low=min(low, ratio), high=max(high, ratio), model_p=model_p,
        parts=parts if math.isfinite(whole) else None, changed=changed.variance,
        changed_p=changed.alone(difference), usual_p=usual_p(pairs, difference, math.log(plain.ratio)),
        scale_p=_scale_p(pairs, ratio),
    )  # fmt: skip
    return judge([made])[0]


def _both(strata: Iterable[tuple[Sample, Sample]]) -> list[tuple[Values, Values]]:
    """Return the pairs of which both sides have finite values, with those alone."""
    pairs = ((finite(a), finite(b)) for a, b in strata)
    return [(a, b) for a, b in pairs if len(a) and len(b)]


def _plain(pairs: Sequence[tuple[Values, Values]], floor: Floor) -> Comparison:
    """Return what needs no floor: the ratio, the rank test, the effect; no interval yet."""
    n_a, n_b = sum(len(a) for a, _ in pairs), sum(len(b) for _, b in pairs)
    nan = math.nan
    if not pairs:
        return Comparison(nan, nan, nan, 1.0, nan, 0, 0, floor, 1.0, 1.0, reason="nothing to compare")
    p_value, effect = rank_test(pairs), cliffs_delta(pairs)
    smallest = min(1.0, 2 / math.prod(math.comb(len(a) + len(b), len(a)) for a, b in pairs))
    ratio = _ratio(pairs)
    reason = "" if math.isfinite(ratio) else "a value of zero"
    return Comparison(ratio, nan, nan, p_value, effect, n_a, n_b, floor, smallest, p_value, reason=reason)


def _ratio(pairs: Sequence[tuple[Values, Values]]) -> float:
    """Return the ratio of medians, over pairs their geometric mean; NaN where a value is not above 0."""
    if any(a.min() <= 0 or b.min() <= 0 for a, b in pairs):
        return math.nan
    logs = [math.log(float(np.median(a))) - math.log(float(np.median(b))) for a, b in pairs]
    return math.exp(sum(logs) / len(logs))


def _sides(
    pairs: Sequence[tuple[Values, Values]],
) -> tuple[float, tuple[tuple[tuple[float, int], ...], ...]]:
    """Return the mean difference of logarithms over the pairs, and each side's variances and numbers."""
    sides = [[np.log(pair[side]) for pair in pairs] for side in (0, 1)]
    means = [float(np.mean([values.mean() for values in side])) for side in sides]
    told = (tuple((float(v.var(ddof=1)) if len(v) > 1 else math.inf, len(v)) for v in side) for side in sides)
    return means[0] - means[1], tuple(told)


def _scale_p(pairs: Sequence[tuple[Values, Values]], ratio: float) -> float:
    if len(pairs) < 2:
        return 1.0
    toward = [pair for pair in pairs if (cliffs_delta([pair]) > 0) == (ratio > 1)]
    return min([1.0, *(len(pairs) * rank_test([pair]) for pair in toward)])


def _farthest(pairs: Sequence[tuple[Values, Values]], placed: float) -> float:
    """Return the ratio at the scale where it is farthest from 1, if scales differ more than repetitions and
    placements (`placed`, of each) explain: one system ahead at few processes and behind at many is on the
    whole as fast as the other, and not the same. NaN where they do not."""
    logs = [(np.log(a), np.log(b)) for a, b in pairs]
    freedom = sum(len(a) + len(b) - 2 for a, b in logs)
    if len(logs) < 2 or any(len(side) < 2 for pair in logs for side in pair) or not math.isfinite(placed):
        return math.nan
    apart = np.array([float(a.mean() - b.mean()) for a, b in logs])
    error = float(np.mean([a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b) for a, b in logs])) + placed
    seen = float(apart.var(ddof=1))
    if seen <= 0 or (error > 0 and f_above(seen / error, len(logs) - 1, freedom) >= ALPHA):
        return math.nan
    return math.exp(float(apart[np.abs(apart).argmax()]))


def _two_sided(difference: float, variance: float, freedom: float) -> float:
    if variance <= 0:  # every repetition gave the same
        return 0.0 if difference else 1.0
    return t_beyond(difference / math.sqrt(variance), freedom)


def judge(family: Sequence[Comparison], spend: float = 1.0) -> list[Comparison]:
    """Return the comparisons of a family with corrected p and the verdicts that follow from it.

    `spend`: the part of the 5 % that may be spent here (:mod:`tiercel.statistics.looks`); p is corrected for
    it, too.
    """
    found = step_up([_tested(c) for c in family])
    corrected = [min(1.0, p / spend) for p in found]
    size = len(family)
    return [
        _judged(replace(c, p_corrected=p, family=size, spend=spend), size)
        for c, p in zip(family, corrected, strict=True)
    ]


def _tested(c: Comparison) -> float:
    """Return the p that is corrected for the family: 1 for what a change alone explains, since that is one
    and the same for all, and whatever goes together would pass Hochberg's step at 5 %."""
    if c.later:
        return 1.0
    if c.model_p is None:
        return c.p_value
    return 1.0 if c.changed_p >= EXPLAINS else c.model_p


def step_up(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Y. Hochberg, Biometrika 75, 1988).

    The k-th largest counts k times, and none more than a larger one: where all are below 5 %, all are
    claimed. Step-up needs tests that are independent or go together (S. Sarkar and C.-K. Chang, JASA 92,
    1997): here the noise and the rounds are the same for all, and `python -m benchmarks.decisions` counts.
    """
    corrected = [1.0] * len(p_values)
    running = 1.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=lambda i: -p_values[i]), start=1):
        running = min(running, rank * p_values[i])
        corrected[i] = running
    return corrected


def _judged(c: Comparison, family: int) -> Comparison:
    if not math.isfinite(c.ratio):
        return c
    reason = ""
    if c.later:
        reason = f"{NOT_IN_TURN}: one ran {format_duration(c.later)} after the other, which may be all of it"
    elif not c.floor.known:
        reason = NO_PAIR
    elif c.model_p is not None:
        reason = _unplaced(c, family)
    elif c.low <= c.floor.high and c.high >= c.floor.low:
        reason = WITHIN_NOISE
    elif c.smallest_p >= ALPHA:
        reason = f"too few repetitions for a rank test at 5 % ({c.n_a} against {c.n_b})"
    elif c.p_corrected >= ALPHA and c.smallest_p * family >= ALPHA:
        reason = (
            f"too few repetitions for a rank test at 5 % among {family} comparisons ({c.n_a} against {c.n_b})"
        )
    elif c.p_corrected >= ALPHA:
        reason = f"values of the two mix too much to be told apart (rank test, p = {c.p_corrected:.2g})"
    if reason:
        return replace(c, verdict="undecided", reason=reason)
    return replace(c, verdict="higher" if c.ratio > 1 else "lower", reason="")


def _unplaced(c: Comparison, family: int) -> str:
    """Return why the two-level model and the rank test claim nothing; empty where both do."""
    if c.smallest_p >= ALPHA:
        return f"too few repetitions for a rank test at 5 % ({c.n_a} against {c.n_b})"
    if c.p_corrected >= ALPHA:
        among = f", among {family} comparisons" if family > 1 and (c.model_p or 0.0) < ALPHA else ""
        if math.isfinite(c.farthest):
            told = f"{c.farthest:.3g} at one of them, {c.ratio:.3g} over all"
            return f"scales differ: a ratio of {told} (p = {c.p_corrected:.2g}{among})"
        larger = c.parts and c.changed > c.parts.placed and c.changed > c.parts.repeated()[0]
        if larger or c.changed_p >= EXPLAINS:
            by = format_share(math.expm1(math.sqrt(c.changed)))
            told = f"p = {max(c.changed_p, c.model_p or 0.0):.2g}{among}"
            return f"one of the two changed against the other from round to round, by {by} ({told})"
        return (
            f"runs of one system differ as much (repetitions and placements, p = {c.p_corrected:.2g}{among})"
        )
    # Systems that are alike with few processes may differ with many: ranks of all scales hide that.
    if min(c.p_value, c.scale_p) >= ALPHA:
        return f"values of the two mix too much to be told apart (rank test, p = {c.p_value:.2g})"
    if c.usual_p >= max(ALPHA, USUAL * (c.model_p or 0.0)):
        return (
            f"some runs differ, usual ones do not (a ratio of medians of {c.ratio:.3g}, p = {c.usual_p:.2g})"
        )
    return ""


def cliffs_delta(strata: Sequence[tuple[Values, Values]]) -> float:
    """Return the share of pairs with a > b less that with a < b, over all pairs within the strata."""
    signs = sum(float(np.sign(a[:, None] - b[None, :]).sum()) for a, b in strata)
    return signs / sum(len(a) * len(b) for a, b in strata)


def rank_test(strata: Sequence[tuple[Values, Values]]) -> float:
    """Return the two-sided p of the Mann-Whitney test, summed over strata; exact, also with ties."""
    if any(len(a) + len(b) > _EXACT for a, b in strata):
        return _approximate(strata)
    observed = 0
    ways = np.ones(1)
    for a, b in strata:
        ranks = _double_ranks(np.concatenate([a, b]))
        observed += int(ranks[: len(a)].sum())
        ways = np.convolve(ways, _deals(ranks, len(a)))
    total = ways.sum()
    below, above = ways[: observed + 1].sum() / total, ways[observed:].sum() / total
    return float(min(1.0, 2 * min(below, above)))


def _double_ranks(values: Values) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return twice the rank, ties sharing their mean rank: always whole numbers."""
    less = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return np.asarray(2 * less + equal + 1, dtype=np.int64)


def _deals(ranks: np.ndarray[tuple[int], np.dtype[np.int64]], size: int) -> Values:
    """Return, for each sum, in how many ways `size` of `ranks` have it."""
    ways = np.zeros((size + 1, int(ranks.sum()) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        # Right to left, so that each rank is dealt at most once.
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    return np.asarray(ways[size], dtype=np.float64)


def _approximate(strata: Sequence[tuple[Values, Values]]) -> float:
    difference = variance = 0.0
    for a, b in strata:
        ranks = _double_ranks(np.concatenate([a, b])) / 2
        n, m, mean = len(a), len(b), float(ranks.mean())
        difference += float(ranks[:n].sum()) - n * mean
        variance += n * m / ((n + m) * (n + m - 1)) * float(((ranks - mean) ** 2).sum())
    if variance == 0:
        return 1.0
    return math.erfc(max(0.0, abs(difference) - 0.5) / math.sqrt(2 * variance))
