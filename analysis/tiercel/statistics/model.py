"""The method that decides, on arrays of logarithms of rates. One page explains it: docs/method.md.

Axes: any number of leading ones (studies of a simulation), then cell, scale, replicate (A, A'), round.
A cell is one operation of a workload on one stack. NaN stands where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ALPHA = 0.05
#: Chance with which a difference of the size `detectable` is detected.
POWER = 0.8
#: Variances of fewer cells than these are not shrunk: they do not show how much variances differ.
SHRUNK_FROM = 6
#: A round's common effect is taken off where so many series are known in it.
ENOUGH = 8
#: The next wider level counts for so many replicate pairs when the layout variance is shrunk.
PRIOR = 4.0
#: A variance that few values show is taken at the median of its distribution, not at the mean: small ones are
#: more frequent than large ones.
MEDIAN = 0.5
#: Degrees of freedom of the layout variance, at most: workloads differ in it, so many pairs show no more.
FREEDOM = 8.0
#: Fewer series than these on a stack do not show more than one cell's own drift.
SERIES = 3
#: Chance of adding stack drift where there is none: five rounds show little of it, so it is added early.
STACK_CHANCE = 0.7
#: Chance of adding operation drift where there is none: over all cells or those of an operation; of a
#: single cell.
CELL_CHANCE, OWN_CHANCE = 0.02, 0.004
#: Correlation of a round with the next, for the longest load that is guarded against.
CORRELATION = 0.8
#: A difference that drift alone gives with this chance is not claimed.
EXPLAINS = 0.025
#: Medians must differ by this part of what means do.
MEDIAN_PART = 0.5
#: Where scales surely differ, the least of them must have this part of the mean difference.
SCALE_PART = 0.25
_TINY = 1e-18


@dataclass(frozen=True)
class Shape:
    """What cells have in common: for each cell, a number of its stack, its operation and its runs.

    Cells of one stack with the same `runs` are operations of one workload, and count as one.
    """

    stack: Ints
    operation: Ints
    runs: Ints


@dataclass(frozen=True)
class Fit:
    """A study's cells. All variances are of logarithms."""

    shape: Shape
    logs: Floats
    """Without what a round had in common."""
    variance: Floats
    """Of one repetition, moderated: cell."""
    freedom: Floats
    layout: Floats
    """Between layout sessions: cell. NaN where no replicate was measured."""
    layout_freedom: Floats
    drift: Floats
    """Of the cell's mean by operation drift."""
    drift_freedom: Floats
    planned: npt.NDArray[np.bool_]
    """Rounds of the study itself, not of a follow-up: cell, scale, round."""


@dataclass(frozen=True)
class Contrast:
    """Pairs of cells, first less second; `parts` of the variance in the order of `PARTS`."""

    difference: Floats
    medians: Floats
    parts: Floats
    freedoms: Floats
    farthest: Floats
    """The difference at the scale where it is farthest from 0, where scales surely differ; NaN else."""
    farthest_p: Floats
    """Two-sided, of that scale alone; 1 where scales do not surely differ."""
    nearest: Floats
    """The difference at the scale where it is least in the direction of the mean."""
    repetitions: Floats
    """Of either side, at the scale that has fewest."""
    scales: Ints
    n: Floats
    """Of either side, at each scale."""

    def flat(self) -> Contrast:
        """Return the pairs of all leading axes as one axis."""
        one = ("difference", "medians", "farthest", "farthest_p", "nearest", "scales")
        made = {name: getattr(self, name).reshape(-1) for name in one}
        several = ("parts", "freedoms", "repetitions")
        made |= {name: getattr(self, name).reshape(len(getattr(self, name)), -1) for name in several}
        return Contrast(**made, n=self.n.reshape(2, -1, self.n.shape[-1]))

    @property
    def variance(self) -> Floats:
        return np.asarray(self.parts.sum(axis=0))

    @property
    def freedom(self) -> Floats:
        return satterthwaite(self.parts, self.freedoms)

    @cached_property
    def p(self) -> Floats:
        """Two-sided, of each comparison alone; 1 where drift alone explains it or nothing is known."""
        plain = beyond(self.difference, self.variance, self.freedom)
        drift = beyond(self.difference, self.parts[DRIFT], self.freedoms[DRIFT])
        return np.where((self.parts[DRIFT] > 0) & (drift >= EXPLAINS), 1.0, np.nan_to_num(plain, nan=1.0))

    @property
    def usual(self) -> npt.NDArray[np.bool_]:
        """Whether usual runs differ, and not only some of them."""
        return np.asarray(self.medians * np.sign(self.difference) >= MEDIAN_PART * np.abs(self.difference))

    @property
    def everywhere(self) -> npt.NDArray[np.bool_]:
        """Whether the difference is there at all scales; taken for so where scales do not surely differ."""
        return np.isnan(self.farthest) | (self.nearest >= SCALE_PART * np.abs(self.difference))


#: Parts of a variance: repetitions of either side, layout sessions of both, drift.
FIRST, SECOND, LAYOUT, DRIFT = range(4)


def beyond(difference: Floats, variance: Floats, freedom: Floats) -> Floats:
    """Return the two-sided p of Student's t."""
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.abs(difference) / np.sqrt(variance)
        t = np.where((variance <= 0) & (difference == 0), 0.0, t)
        return np.asarray(2 * special.stdtr(freedom, -t))


def t_bound(chance: float, freedom: float) -> float:
    """Return what Student's t is above with `chance`."""
    return -float(special.stdtrit(freedom, chance))


def satterthwaite(parts: Floats, freedoms: Floats) -> Floats:
    """Return the degrees of freedom of a sum of variances (F. E. Satterthwaite, Biometrics 2, 1946)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = parts.sum(axis=0) ** 2 / np.where(parts > 0, parts**2 / freedoms, 0.0).sum(axis=0)
    return np.where(np.isfinite(found), found, 1.0)


def holm(p: Floats) -> Floats:
    """Return p values corrected for their number along the last axis (S. Holm, 1979)."""
    order = np.argsort(p, axis=-1)
    steps = np.take_along_axis(p, order, axis=-1) * np.arange(p.shape[-1], 0, -1)
    found = np.empty_like(p)
    np.put_along_axis(found, order, np.minimum(np.maximum.accumulate(steps, axis=-1), 1.0), axis=-1)
    return found


def fit(logs: Floats, shape: Shape, planned: npt.NDArray[np.bool_] | None = None) -> Fit:
    """Fit a study: logs[..., cell, scale, replicate, round]."""
    logs = logs - common(logs)[..., None, None, None, :]
    variance, freedom = moderated(*pooled(logs))
    if planned is None:
        planned = np.ones((*logs.shape[-4:-2], logs.shape[-1]), dtype=bool)
    return Fit(
        shape, logs, variance, freedom, *_layout(logs, variance, shape), *_cell_drift(logs, shape), planned
    )


def common(logs: Floats) -> Floats:
    """Return what each round had in common: the median over series of their distance from their own medians
    (median polish, J. W. Tukey, Exploratory Data Analysis, 1977); 0 where too few series are known."""
    series = logs.reshape(*logs.shape[:-4], -1, logs.shape[-1])
    off = series - _median(series)[..., None]
    count, known = np.isfinite(off).sum(axis=-2), np.isfinite(off).any(axis=-1).sum(axis=-1)
    enough = count >= np.maximum(ENOUGH, known[..., None] / 2)
    return np.where(enough, np.nan_to_num(_median(np.swapaxes(off, -1, -2))), 0.0)


def pooled(logs: Floats) -> tuple[Floats, Floats]:
    """Return the variance of a repetition of each cell over its scales and replicates, and its freedom."""
    known = np.isfinite(logs)
    freedom = np.maximum(known.sum(axis=-1) - 1, 0).sum(axis=(-1, -2)).astype(float)
    squares = np.nansum((logs - _mean(logs)[..., None]) ** 2, axis=(-1, -2, -3))
    return np.where(freedom > 0, squares / np.maximum(freedom, 1), np.nan), freedom


def moderated(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Return variances shrunk towards each other, with their freedom (G. K. Smyth, Statistical Applications
    in Genetics and Molecular Biology 3, 2004). They are as they are where there are too few."""
    use = (freedom > 0) & (variance > 0)
    count = use.sum(axis=-1)
    d = np.where(use, freedom, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        e = np.where(use, np.log(np.where(use, variance, 1.0)) - special.digamma(d / 2) + np.log(d / 2), 0.0)
        mean = e.sum(axis=-1) / count
        surplus = (np.where(use, (e - mean[..., None]) ** 2, 0.0).sum(axis=-1) / (count - 1)
                   - np.where(use, special.polygamma(1, d / 2), 0.0).sum(axis=-1) / count)  # fmt: skip
        prior = np.where(surplus > 0, 2 * _trigamma_inverse(np.maximum(surplus, 1e-6)), 1e6)
        at = np.exp(mean + special.digamma(prior / 2) - np.log(prior / 2))
        prior = np.where(count >= SHRUNK_FROM, prior, 0.0)[..., None]
        at = np.where(count >= SHRUNK_FROM, at, 0.0)[..., None]
        known = np.where(freedom > 0, np.nan_to_num(variance), 0.0)
        return (prior * at + freedom * known) / (prior + freedom), prior + freedom


def _trigamma_inverse(x: Floats) -> Floats:
    y = 0.5 + 1 / x
    for _ in range(12):
        tri = special.polygamma(1, y)
        y = y + tri * (1 - tri / x) / special.polygamma(2, y)
    return np.asarray(y)


def _layout(logs: Floats, variance: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """Return the variance between layout sessions of each cell, and its freedom.

    A replicate pair differs by twice that variance and by the repetitions' share. Pairs of a cell are shrunk
    towards those of its stack, and these towards the study's.
    """
    apart = logs[..., 0, :] - logs[..., 1, :]
    n = np.isfinite(apart).sum(axis=-1)
    known = n >= 2
    squares = np.where(known, _mean(apart) ** 2, np.nan)
    errors = np.where(known, np.maximum(2 * variance[..., None] / np.maximum(n, 1), _TINY), np.nan)
    flat = squares.shape[:-2]
    study = component(squares.reshape(*flat, -1), errors.reshape(*flat, -1))
    pairs = known.sum(axis=(-1, -2))
    wider = np.empty(variance.shape)
    for stack in np.unique(shape.stack):
        mine = shape.stack == stack
        some = component(squares[..., mine, :].reshape(*flat, -1), errors[..., mine, :].reshape(*flat, -1))
        count = known[..., mine, :].sum(axis=(-1, -2))
        wider[..., mine] = _toward(count, some, study)[..., None]
    own = np.nansum(squares - errors, axis=-1)
    count = known.sum(axis=-1)
    twice = np.maximum(_toward(count, own / np.maximum(count, 1), wider), 0.0)
    return twice / 2, np.where(pairs > 0, np.minimum(1 + pairs / 2, FREEDOM), 0.0)


def _toward(count: Ints, own: Floats, wider: Floats) -> Floats:
    return np.where(count > 0, (count * np.nan_to_num(own) + PRIOR * wider) / (count + PRIOR), wider)


def component(squares: Floats, errors: Floats) -> Floats:
    """Return the variance at which the sum of squares over (it + errors) is the median of chi squared, over
    the last axis; 0 where the errors explain all, NaN without a pair."""
    count = np.isfinite(squares).sum(axis=-1)
    target = special.chdtri(np.maximum(count, 1), MEDIAN)

    def surplus(between: Floats) -> Floats:
        return np.asarray(np.nansum(squares / (between[..., None] + errors), axis=-1) - target)

    low, high = np.zeros(count.shape), np.nansum(squares, axis=-1) / target + _TINY
    none = surplus(low) <= 0
    for _ in range(50):
        middle = (low + high) / 2
        more = surplus(middle) > 0
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.where(count == 0, np.nan, np.where(none, 0.0, high))


@cache
def carried(rounds: int) -> tuple[float, float]:
    """Return what the mean of so many rounds varies by, in variances that they show (ddof 1, at the median),
    and the freedom of these, where a round has a correlation of `CORRELATION` with the next."""
    steps = np.arange(rounds)
    correlations = CORRELATION ** np.abs(steps[:, None] - steps)
    centred = np.eye(rounds) - 1.0 / rounds
    left = centred @ correlations @ centred
    seen = float(np.trace(left))
    freedom = seen**2 / float((left**2).sum())
    share = float(correlations.mean()) * (rounds - 1) / seen
    return share * freedom / float(special.chdtri(freedom, MEDIAN)), freedom


_CARRIED = np.array([[0.0, 1.0], [0.0, 1.0], *(carried(n) for n in range(2, 64))])


def _carried(rounds: Ints) -> tuple[Floats, Floats]:
    found = _CARRIED[np.minimum(rounds, len(_CARRIED) - 1)]
    return found[..., 0], found[..., 1]


def _cell_drift(logs: Floats, shape: Shape) -> tuple[Floats, Floats]:
    """Return the variance of each cell's mean by operation drift, and its freedom.

    It is what a cell's scales and replicates have in common in a round, beyond what series that err alone
    have: an F test against the moderated variance of these, over all cells, over those of an operation, and
    of each cell alone.
    """
    series = logs.reshape(*logs.shape[:-3], -1, logs.shape[-1])
    known = np.isfinite(series)
    exists = known.sum(axis=-1) >= 2
    rounds = (known | ~exists[..., None]).all(axis=-2)
    use = rounds[..., None, :] & exists[..., None]
    count, size = np.maximum(exists.sum(axis=-1), 1), rounds.sum(axis=-1)
    off = np.where(use, series, np.nan)
    off = np.where(use, off - _mean(off)[..., None], 0.0)
    level = off.sum(axis=-2) / count[..., None]
    over = np.where(count >= 2, np.maximum(size - 1, 0), 0).astype(float)
    under = over * (count - 1)
    alone = (np.where(use, off - level[..., None, :], 0.0) ** 2).sum(axis=(-1, -2))
    error, freedom = moderated(alone / np.maximum(under, 1), under)
    freedom = np.minimum(freedom, under.sum(axis=-1, keepdims=True))  # the study as a whole shows no more
    error = np.maximum(error, _TINY)
    seen = count * (level**2).sum(axis=-1) / error
    weight = np.where(under > 0, 1 / _sharing(shape), 0.0)

    def surplus(members: npt.NDArray[np.bool_] | slice, chance: float, own: bool = False) -> Floats:
        # The mean of F is above 1, which would add up over several cells.
        mean = 1.0 if own else freedom / np.maximum(freedom - 2, 1)
        sums = [weight[..., members] * x[..., members] for x in (seen / mean, over, under)]
        if not own:
            sums = [x.sum(axis=-1, keepdims=True) for x in sums]
        total, rows, columns = (np.maximum(x, _TINY) for x in sums)
        ratio = total / rows
        p = special.fdtrc(rows, np.maximum(columns, freedom[..., members]), ratio)
        sure = (under[..., members] > 0) & (ratio > 1) & (p < chance)
        return np.where(sure, (ratio - 1) * error[..., members] / count[..., members], 0.0)

    found = surplus(slice(None), OWN_CHANCE, own=True)
    groups = [
        np.ones(len(shape.stack), dtype=bool),
        *(shape.operation == each for each in set(shape.operation)),
    ]
    for members in groups:
        found[..., members] = np.maximum(found[..., members], surplus(members, CELL_CHANCE))
    return found * _carried(size)[0], np.maximum(over + under, 1)


def _sharing(shape: Shape) -> Floats:
    """Return for each cell how many cells are operations of the same runs."""
    _, inverse, counts = np.unique(
        np.stack([shape.stack, shape.runs]), axis=1, return_inverse=True, return_counts=True
    )
    return np.asarray(counts[inverse.reshape(-1)], dtype=np.float64)


def stack_drift(made: Fit, one: int, other: int) -> tuple[Floats, Floats]:
    """Return the variance of the difference of two stacks by round drift, and its freedom: what all that ran
    on a stack has in common in a round, beyond what it would have if every series erred alone."""
    (mine, *first), (theirs, *second) = (_stack_level(made, stack) for stack in (one, other))
    apart, error, series = mine - theirs, first[0] + second[0], first[1] + second[1]
    known = np.isfinite(apart)
    rounds = known.sum(axis=-1)
    freedom = np.maximum(rounds - 1, 0)
    seen = np.nansum((apart - _mean(apart)[..., None]) ** 2, axis=-1) / np.maximum(freedom, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        limit = special.fdtri(np.maximum(freedom, 1), np.maximum(freedom * series, 1), 1 - STACK_CHANCE)
        surplus = (seen - limit * error) / np.maximum(1 - limit * 2 / np.maximum(series, 1), 0.1)
    ok = (freedom >= 1) & (error > 0) & (seen > limit * error)
    share, freedom_of = _carried(rounds)
    return np.where(ok, share * np.nan_to_num(surplus), 0.0), freedom_of


def _stack_level(made: Fit, stack: int) -> tuple[Floats, Floats, Floats]:
    """Return for each round what a stack's series have in common; the variance that it has where they err
    alone, and how many of them there are."""
    mine = made.shape.stack == stack
    cells = made.logs[..., mine, :, :, :]
    places = np.prod(cells.shape[-3:-1])
    series = cells.reshape(*cells.shape[:-4], -1, cells.shape[-1])
    known = np.isfinite(series)
    usable = known.sum(axis=-1) >= 2
    off = np.where(usable[..., None], series - _mean(series)[..., None], np.nan)
    spread = np.where(usable, np.nansum(off**2, axis=-1) / np.maximum(known.sum(axis=-1) - 1, 1), np.nan)
    weight = np.where(
        usable, 1 / (np.nan_to_num(spread) + np.maximum(_median(spread), _TINY)[..., None]), 0.0
    )
    there = weight[..., None] * np.isfinite(off)
    total = there.sum(axis=-2, keepdims=True)
    share = there * np.nan_to_num(off) / np.where(total > 0, total, 1.0)
    _, runs = np.unique(made.shape.runs[mine], return_inverse=True)
    group = (runs[:, None] * places + np.arange(places)).reshape(-1)
    groups = int(group.max(initial=-1)) + 1
    parts = np.zeros((*share.shape[:-2], groups, share.shape[-1]))
    present = np.zeros(parts.shape[:-1], dtype=bool)
    for number in range(series.shape[-2]):
        parts[..., group[number], :] += share[..., number, :]
        present[..., group[number]] |= usable[..., number]
    count = present.sum(axis=-1)
    mean = parts.sum(axis=-2, keepdims=True) / np.maximum(count, 1)[..., None, None]
    squares = (np.where(present[..., None], parts - mean, 0.0) ** 2).sum(axis=-2)
    # A follow-up repeats some series only: its rounds do not show what the stack has in common.
    rounds = (total[..., 0, :] > 0) & (2 * (there > 0).sum(axis=-2) >= usable.sum(axis=-1)[..., None])
    error = np.where(rounds, squares, 0.0).sum(axis=-1) / np.maximum(rounds.sum(axis=-1), 1)
    error = error * count / np.maximum(count - 1, 1)
    level = np.where(rounds & (count >= SERIES)[..., None], parts.sum(axis=-2), np.nan)
    return level, error, count.astype(float)


def contrast(
    made: Fit,
    first: Ints,
    second: Ints,
    drift: Sequence[Floats] | None = None,
    scales: npt.NDArray[np.bool_] | None = None,
) -> Contrast:
    """Compare cells `first` with cells `second` over the `scales` that both have.

    `drift`: (variance, freedom) of round drift between the stacks of each pair; None on one stack.
    `scales`: for each pair, which scales count.
    """
    sides = [made.logs[..., 0, :][..., cells, :, :] for cells in (first, second)]
    sides = _met(made, first, second, sides)
    n = np.stack([np.isfinite(side).sum(axis=-1) for side in sides]).astype(float)
    shared = (n > 0).all(axis=0) & (True if scales is None else scales)
    count = shared.sum(axis=-1)
    over = np.maximum(count, 1)

    def difference(of: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        each = np.where(shared, of(sides[0]) - of(sides[1]), 0.0)
        return each, np.where(count == 0, np.nan, each.sum(axis=-1) / over)

    each, mean = difference(_mean)
    _, medians = difference(_median)
    inverse = np.where(shared, 1 / np.maximum(n, 1), 0.0).sum(axis=-1) / over**2
    repeated = np.stack([made.variance[..., first], made.variance[..., second]]) * inverse
    between = made.layout[..., first] + made.layout[..., second]
    moved = np.stack(
        [
            made.drift[..., first] + made.drift[..., second],
            np.minimum(made.drift_freedom[..., first], made.drift_freedom[..., second]),
        ]
    )
    if drift is not None:  # both see a change of the whole stack: the larger one, not their sum
        stacks = np.stack(np.broadcast_arrays(drift[0], drift[1], moved[0])[:2])
        moved = np.where(stacks[0] > moved[0], stacks, moved)
    parts = np.stack([*repeated, between / over, moved[0]])
    freedoms = np.stack(
        np.broadcast_arrays(
            made.freedom[..., first], made.freedom[..., second], made.layout_freedom[..., None], moved[1]
        )
    )
    error = repeated.sum(axis=0) * over + between
    seen = np.where(shared, (each - mean[..., None]) ** 2, 0.0).sum(axis=-1) / np.maximum(count - 1, 1)
    freedom = made.freedom[..., first] + made.freedom[..., second]
    with np.errstate(invalid="ignore", divide="ignore"):
        chance = special.fdtrc(np.maximum(count - 1, 1), np.maximum(freedom, 1), seen / error)
    at = np.abs(each).argmax(axis=-1)[..., None]
    far = np.take_along_axis(each, at, axis=-1)[..., 0]
    differ = (count > 1) & (seen > 0) & (chance < ALPHA)
    farthest = np.where(differ, far, np.nan)
    one = parts.copy()
    one[LAYOUT] = between
    for side, cells in ((FIRST, first), (SECOND, second)):
        one[side] = made.variance[..., cells] / np.take_along_axis(n[side], at, axis=-1)[..., 0].clip(1)
    far_p = np.where(differ, beyond(far, one.sum(axis=0), satterthwaite(one, freedoms)), 1.0)
    toward = np.where(shared, each * np.sign(mean)[..., None], np.inf).min(axis=-1)
    repetitions = np.where(shared, n, np.inf).min(axis=-1)
    return Contrast(mean, medians, parts, freedoms, farthest, far_p, toward, repetitions, count, n)


def _met(made: Fit, first: Ints, second: Ints, sides: list[Floats]) -> list[Floats]:
    """Return the values that are compared.

    Rounds that one side alone has count too, if they are the study's own and the side was the same in them
    as in the rounds that both have (t test). Of a follow-up only rounds of both sides count: it is of
    another day.
    """
    known = [np.isfinite(side) for side in sides]
    both = known[0] & known[1]
    used = []
    for cells, side, there in zip((first, second), sides, known, strict=True):
        alone = there & ~both & made.planned[..., cells, :, :]
        inside, outside = (np.where(mask, side, np.nan) for mask in (both, alone))
        gap = _mean(outside) - _mean(inside)
        share = sum(1 / np.maximum(mask.sum(axis=-1), 1) for mask in (both, alone))
        p = beyond(gap, made.variance[..., cells, None] * share, made.freedom[..., cells, None])
        changed = (p < ALPHA)[..., None]
        used.append(np.where(both | (alone & ~changed), side, np.nan))
    return used


def _mean(values: Floats) -> Floats:
    known = np.isfinite(values)
    count = known.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(count > 0, np.where(known, values, 0.0).sum(axis=-1) / np.maximum(count, 1), np.nan)


def _median(values: Floats) -> Floats:
    """Return medians over the last axis without NaN; NaN where there is nothing."""
    ordered = np.sort(np.where(np.isfinite(values), values, np.inf), axis=-1)
    count = np.isfinite(values).sum(axis=-1)[..., None]
    if not values.shape[-1]:
        return np.full(values.shape[:-1], np.nan)
    picks = [np.take_along_axis(ordered, np.maximum(at, 0), axis=-1)[..., 0]
             for at in ((count - 1) // 2, count // 2 - (count == 0))]  # fmt: skip
    return np.where(count[..., 0] > 0, (picks[0] + picks[1]) / 2, np.nan)


def single_scale(made: Fit, cells: Ints, scales: Ints) -> Fit:
    """Return some cells at one scale each. What drifts with all scales of a cell cancels between them."""
    shape = Shape(made.shape.stack[cells], made.shape.operation[cells], made.shape.runs[cells])
    return Fit(
        shape, made.logs[cells, scales][:, None], made.variance[cells], made.freedom[cells],
        made.layout[cells], made.layout_freedom, np.zeros(len(cells)), made.drift_freedom[cells],
        made.planned[cells, scales][:, None],
    )  # fmt: skip


def joined(one: Fit, other: Fit) -> Fit:
    """Return the cells of two sessions, of the first and then of the second."""
    shapes = zip(vars(one.shape).values(), vars(other.shape).values(), strict=True)
    longest = max(one.logs.shape[-1], other.logs.shape[-1])
    logs, planned = (
        np.concatenate([_padded(getattr(side, name), longest, fill) for side in (one, other)])
        for name, fill in (("logs", np.nan), ("planned", False))
    )
    rest = {
        name: np.concatenate([getattr(side, name) for side in (one, other)])
        for name in ("variance", "freedom", "layout", "drift", "drift_freedom")
    }
    shape = Shape(*(np.concatenate([mine, theirs]) for mine, theirs in shapes))
    freedom = np.minimum(one.layout_freedom, other.layout_freedom)
    return Fit(shape=shape, logs=logs, planned=planned, layout_freedom=freedom, **rest)


def _padded(values: Floats, longest: int, fill: float) -> Floats:
    wide = [(0, 0)] * (values.ndim - 1) + [(0, longest - values.shape[-1])]
    return np.pad(values, wide, constant_values=fill)
