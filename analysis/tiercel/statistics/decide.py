"""From contrasts to verdicts: corrected p values, the rule that fired, what more repetitions would do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from tiercel.statistics.model import (
    ALPHA,
    DRIFT,
    EXPLAINS,
    FIRST,
    LAYOUT,
    POWER,
    SECOND,
    Contrast,
    Floats,
    Ints,
    beyond,
    carried,
    holm,
    satterthwaite,
)
from tiercel.statistics.verdict import MARGIN, MINIMUM, MOST, POWERLESS, SAME_FROM, Outcome, Rule, Verdict

#: The study's own part of the 5 %; the follow-up rounds share the rest (K. K. G. Lan and D. L. DeMets,
#: Biometrika 70, 1983): each of them has half of what those before it left.
_FIRST_SHARE = 0.95


def share(follow_up: int) -> float:
    """Return the part of the 5 % that a follow-up may spend (0: the study itself)."""
    return _FIRST_SHARE if follow_up == 0 else (1 - _FIRST_SHARE) * 0.5**follow_up


@dataclass(frozen=True)
class Facts:
    """What is known of each pair besides its contrast; without a time, None."""

    zero: Floats
    """A rate is not above zero."""
    later: Floats
    """Seconds by which one side was measured after the other; 0 where they took turns."""


def smallest_detectable(noise: float, repetitions: int, scales: int, family: int) -> float:
    """Return the smallest ratio above 1 that a study detects with a chance of 80 %.

    `noise`: standard deviation between repetitions, as a part of the rate; layout sessions are alike and
    nothing drifts. Infinite for fewer than `MINIMUM` repetitions, which decide nothing.
    """
    if repetitions < MINIMUM:
        return math.inf
    count = repetitions * scales
    error = math.sqrt(2 * math.log1p(noise**2) / count)
    freedom = 2.0 * (count - scales)
    reach = special.stdtrit(freedom, 1 - ALPHA * share(0) / family / 2) + special.stdtrit(freedom, POWER)
    return math.exp(float(reach) * error)


def verdicts(
    made: Contrast,
    facts: Facts,
    families: Sequence[object],
    spend: float = 1.0,
    margin: float = MARGIN,
    minimum: int = MINIMUM,
) -> list[Verdict]:
    """Return the verdict of each pair; p is corrected by Holm's method in each family."""
    mean = _mean_repetitions(made)
    few = mean.min(axis=0) < minimum
    unknown = ~np.isfinite(made.difference) | (facts.zero > 0)
    alone = ~np.isfinite(made.parts[LAYOUT])
    blocked = unknown | (facts.later > 0) | alone | few
    p = np.where(blocked, 1.0, made.p)
    corrected, size = np.ones(len(p)), np.ones(len(p), dtype=int)
    for family in dict.fromkeys(families):
        mine = np.array([each == family for each in families])
        corrected[mine], size[mine] = np.minimum(holm(p[mine]) / spend, 1.0), mine.sum()
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        error, freedom = np.sqrt(made.variance), made.freedom
        half = special.stdtrit(freedom, 1 - ALPHA / 2) * error
        low, high = np.exp(made.difference - half), np.exp(made.difference + half)
        reach = special.stdtrit(freedom, 1 - ALPHA * spend / size / 2) + special.stdtrit(freedom, POWER)
        detectable = np.where(blocked, math.inf, np.exp(np.minimum(reach * error, 700.0)))
        drift = beyond(made.difference, made.parts[DRIFT], made.freedoms[DRIFT]) >= EXPLAINS
        drift &= beyond(made.difference, made.variance, made.freedom) < ALPHA
        far = np.abs(np.nan_to_num(made.farthest)) > math.log(margin)
    same = ~blocked & (low >= 1 / margin) & (high <= margin) & (mean.min(axis=0) >= SAME_FROM) & ~far
    claim = ~blocked & (corrected < ALPHA) & made.usual & made.everywhere & ~same
    open_ = ~(same | claim)
    needed = _needed(made, size, spend, margin)
    sure = corrected < ALPHA
    # Without a claim over all scales, "compare at each scale" helps where the farthest one alone is a claim.
    scales = np.isfinite(made.farthest) & (sure | (made.farthest_p * size < ALPHA * spend))
    found = []
    for i in range(len(p)):
        rule, extent = _rule(
            made, facts, i, bool(unknown[i]), bool(few[i]), bool(sure[i]), bool(scales[i]), drift
        )
        if claim[i] or same[i]:
            rule, extent = (Rule.EQUIVALENCE if same[i] else Rule.DIFFERENCE), math.nan
        outcome = Outcome.NOT_DECIDED if detectable[i] <= POWERLESS else Outcome.NO_POWER
        if same[i]:
            outcome = Outcome.SAME
        elif claim[i]:
            outcome = Outcome.BETTER if made.difference[i] > 0 else Outcome.WORSE
        more = None
        if open_[i]:
            more = _more(rule, int(needed[i]), math.ceil(minimum - mean[:, i].min()))
        n = [int(side[side > 0].min()) if (side > 0).any() else 0 for side in made.n[:, i]]
        found.append(Verdict(
            outcome, rule, float(np.exp(made.difference[i])) if not unknown[i] else math.nan, float(low[i]),
            float(high[i]), float(corrected[i]), n[0], n[1], int(size[i]), float(detectable[i]), more, margin,
            extent,
        ))  # fmt: skip
    return found


def _mean_repetitions(made: Contrast) -> Floats:
    """Return the repetitions of either side in the mean of its scales; 0 where it has none."""
    return np.asarray(made.n.sum(axis=-1) / np.maximum((made.n > 0).sum(axis=-1), 1))


def _rule(
    made: Contrast,
    facts: Facts,
    i: int,
    unknown: bool,
    few: bool,
    sure: bool,
    scales: bool,
    drift: npt.NDArray[np.bool_],
) -> tuple[Rule, float]:
    """Return the rule that prevents a claim, and what it rests on.

    `scales`: it is that scales differ. `drift`: where only it does.
    """
    layout, moved = float(made.parts[LAYOUT, i]), float(made.parts[DRIFT, i])
    repeated = float(made.parts[FIRST, i] + made.parts[SECOND, i])
    if unknown:
        return Rule.NO_RATE, math.nan
    if facts.later[i] > 0:
        return Rule.NOT_IN_TURN, float(facts.later[i])
    if not math.isfinite(layout):
        return Rule.NO_REPLICATE, math.nan
    if few:
        return Rule.FEW_REPETITIONS, math.nan
    if sure and not made.usual[i]:
        return Rule.SOME_RUNS, math.nan
    if scales:
        return Rule.SCALES, math.exp(made.farthest[i])
    if moved > 0 and (moved > max(layout, repeated) or drift[i]):
        return Rule.ROUND_DRIFT, math.exp(1.96 * math.sqrt(moved))
    if layout > repeated:
        return Rule.LAYOUT, math.exp(1.96 * math.sqrt(layout))
    return Rule.REPETITIONS, math.nan


def _more(rule: Rule, needed: int, lacking: int) -> int | None:
    if rule is Rule.FEW_REPETITIONS:
        return max(lacking, min(needed, MOST))
    if rule in (Rule.REPETITIONS, Rule.LAYOUT, Rule.ROUND_DRIFT, Rule.SCALES) and needed <= MOST:
        return needed
    return None


def _needed(made: Contrast, size: Ints, spend: float, margin: float) -> Ints:
    """Return how many more repetitions on each side would decide each pair with a chance of four in five;
    more than `MOST` where they would not. Layout sessions stay as they are; rounds are like each other."""
    found = np.full(made.difference.shape, MOST + 1)
    mean = np.maximum(_mean_repetitions(made), 1.0)
    rounds = int(made.n.max(initial=2.0))
    now = carried(rounds)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        away = np.abs(made.difference)
        beyond_it = np.abs(np.nan_to_num(made.farthest)) > math.log(margin)
        inside = np.where(beyond_it, -math.inf, math.log(margin))
        for more in range(MOST, 0, -1):
            parts, freedoms = made.parts.copy(), made.freedoms.copy()
            parts[[FIRST, SECOND]] *= mean / (mean + more)
            freedoms[[FIRST, SECOND]] += more
            then = carried(rounds + more)
            parts[DRIFT] *= then[0] / now[0]
            freedoms[DRIFT] *= then[1] / now[1]
            error, freedom = np.sqrt(parts.sum(axis=0)), satterthwaite(parts, freedoms)
            room = special.stdtrit(freedom, POWER) * np.sqrt(parts[[FIRST, SECOND, DRIFT]].sum(axis=0))
            claim = special.stdtrit(freedom, 1 - ALPHA * spend / size / 2) * error
            drift = special.stdtrit(freedoms[DRIFT], 1 - EXPLAINS / 2) * np.sqrt(parts[DRIFT])
            same = special.stdtrit(freedom, 1 - ALPHA / 2) * error
            ok = (away >= np.maximum(claim, drift) + room) | (away + same + room <= inside)
            found = np.where(ok, more, found)
    return found
