"""Was a storage the same from round to round?

Others use a storage too. Where it is slower for a while, everything that ran on it then is slower, and
nothing on the other storage: one workload at several scales, and all workloads of a study, err together. No
A/A pair shows it (both halves ran in the same round), and neither do the repetitions of one configuration,
since each of them counts as a trial of its own. The rounds do: what all configurations on one storage have in
common in a round, beyond what they have in common on the other one. Its variance over the rounds is held
against the one that configurations which err alone would give it: what is beyond the quantile of F at
`CHANCE` is a change of the storages against each other. Load that comes and goes in minutes is the same in
rounds that follow each other, so rounds do not average it out as repetitions, and five of them tell little of
its size: `carried` says what the mean over the rounds varies by, in variances that the rounds show, and how
well these tell it, where one round has a correlation of `CORRELATION` with the next (an autoregressive
process; degrees of freedom after F. E. Satterthwaite, Biometrics 2, 1946). That is added to the variance of
every difference between the two; and since it is one and the same for all of them, a difference is claimed
only where the change alone does not explain it (`EXPLAINS`), whatever the family
(:mod:`tiercel.statistics.comparison`).

A storage that is busy for longer than the study took looks slow and steady: only another study, on another
day, shows that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.statistics.distributions import f_bound, t_beyond
from tiercel.statistics.rounds import TOGETHER
from tiercel.statistics.select import STACK, metric_of

Floats = npt.NDArray[np.float64]

#: Fewer series than these on a storage do not tell what they have in common.
ENOUGH = 2
#: What is beyond this quantile counts as change. With 0.35, a ratio of 2.0 at 40 % is claimed in less than
#: 80 % of the simulated cases; with 0.02, load makes a third more false claims.
CHANCE = 0.2
#: The correlation of a round with the next, for the longest load that is guarded against.
CORRELATION = 0.8
#: A difference that a change alone gives with this chance is not claimed. At 0.01 a storage that is six times
#: as fast would be undecided because it was slower by 30 % in two of five rounds.
EXPLAINS = 0.025
_LEAST = 0.1


@dataclass(frozen=True)
class Level:
    """What the rounds of a study added to all that ran on one stack."""

    rounds: tuple[int, ...]
    off: Floats
    """For each round, of logarithms of rates."""
    error: float
    """The variance that `off` has where configurations err alone."""
    configurations: int


@dataclass(frozen=True)
class Carried:
    """What rounds that are like each other tell of their mean."""

    variance: float
    """Of the mean over the rounds, in variances that the rounds show (ddof 1)."""
    freedom: float
    """Degrees of freedom of the variance that they show."""


@cache
def carried(rounds: int) -> Carried:
    """Return what so many rounds tell where they have a correlation of `CORRELATION` with the next."""
    steps = np.arange(rounds)
    whole = CORRELATION ** np.abs(steps[:, None] - steps)
    centred = np.eye(rounds) - 1.0 / rounds
    left = centred @ whole @ centred
    seen = float(np.trace(left))
    return Carried(float(whole.mean()) * (rounds - 1) / seen, seen**2 / float((left**2).sum()))


@dataclass(frozen=True)
class Wander:
    """The variance by which the difference between two stacks changed over a study (of logarithms)."""

    variance: float = 0.0
    freedom: float = 1.0
    rounds: int = 0
    """From which it was told."""

    def after(self, more: int) -> Wander:
        """Return what it would be with so many more rounds that change as those did."""
        if self.variance <= 0 or self.rounds < 2:
            return self
        now, then = carried(self.rounds), carried(self.rounds + more)
        return Wander(
            self.variance * then.variance / now.variance,
            self.freedom * then.freedom / now.freedom,
            self.rounds + more,
        )

    def alone(self, difference: float) -> float:
        """Return the chance that it alone gives a difference as large as this one."""
        if self.variance <= 0:
            return 0.0
        return t_beyond(difference / math.sqrt(self.variance), self.freedom)


STEADY = Wander()


def level(logs: Floats, configurations: npt.ArrayLike, rounds: tuple[int, ...] = ()) -> Level | None:
    """Return what rounds have in common, from logarithms: a row for each series, a column for each round, NaN
    where there is none. Series of one configuration ran together, and count as one. None for too few."""
    names = np.asarray(configurations)
    logs = np.where(np.isfinite(logs), logs, np.nan)  # of an infinite rate, too
    known = np.isfinite(logs).sum(axis=1) >= 2
    logs, names = logs[known], names[known]
    groups = list(dict.fromkeys(names.tolist()))
    if len(groups) < ENOUGH:
        return None
    off = logs - np.nanmean(logs, axis=1, keepdims=True)
    spread = np.nanvar(off, axis=1, ddof=1)
    # What is steady tells more, but none so much that the others do not count.
    weights = 1.0 / (spread + max(float(np.median(spread)), 1e-18))
    whole = (weights[:, None] * np.isfinite(off)).sum(axis=0)
    share = np.nan_to_num(weights[:, None] * off) / np.where(whole > 0, whole, 1.0)
    parts = np.array([share[names == name].sum(axis=0) for name in groups])[:, whole > 0]
    if parts.shape[1] < 2:
        return None
    labels = rounds or tuple(range(logs.shape[1]))
    seen = tuple(label for label, weight in zip(labels, whole, strict=True) if weight > 0)
    return Level(seen, parts.sum(axis=0), float(parts.var(axis=1, ddof=1).sum()), len(groups))


def wander(one: Level | None, other: Level | None) -> Wander:
    """Return by how much the difference between two stacks changed from round to round."""
    if one is None or other is None:
        return STEADY
    mine, theirs = (
        dict(zip(one.rounds, one.off, strict=True)),
        dict(zip(other.rounds, other.off, strict=True)),
    )
    apart = np.array([mine[number] - theirs[number] for number in mine if number in theirs])
    error = one.error + other.error
    freedom = len(apart) - 1
    if freedom < 1 or error <= 0:
        return STEADY
    seen = float(apart.var(ddof=1))
    series = one.configurations + other.configurations
    beyond = f_bound(CHANCE, freedom, freedom * series)
    surplus = seen - beyond * error
    if surplus <= 0:
        return STEADY
    told = carried(len(apart))
    # Of what all have in common, each configuration's error holds its share.
    variance = told.variance * surplus / max(1.0 - beyond * 2 / series, _LEAST)
    return Wander(variance, told.freedom, len(apart))


def wanders(
    rows: pd.DataFrame,
) -> Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Wander]:
    """Return a function that says how two stacks (`select.STACK`) of a study changed against each other.

    `rows`: observations as comparisons have them, with both halves of A/A pairs: these ran apart, and count
    as two.
    """
    levels: dict[tuple[Any, ...], Level | None] = {}
    for key, part in rows.groupby([*TOGETHER, *STACK], dropna=False, sort=False):
        levels[tuple(map(str, key))] = _level(part)

    def between(study: Mapping[str, Any], one: Mapping[str, Any], other: Mapping[str, Any]) -> Wander:
        head = [study[name] for name in TOGETHER]
        sides = [levels.get(tuple(map(str, (*head, *(side[n] for n in STACK))))) for side in (one, other)]
        return wander(*sides)

    return between


def _level(part: pd.DataFrame) -> Level | None:
    tables = []
    for _, some in part.groupby("operation", sort=False):
        rate = some[metric_of(some)].astype("float64")
        known = some.assign(log=np.log(rate.where(rate > 0)))[rate > 0]
        tables.append(known.pivot_table("log", ["configuration", "twin", "operation"], "repetition"))
    table = pd.concat([each for each in tables if len(each)]) if any(len(each) for each in tables) else None
    if table is None:
        return None
    table = table.sort_index(axis=1)
    return level(
        table.to_numpy(dtype=np.float64), table.index.map(lambda key: f"{key[0]} {key[1]}"),
        tuple(map(int, table.columns)),
    )  # fmt: skip
