"""Was one kind of I/O the same from round to round?

What others do hits one kind of I/O at a time: somebody's job keeps the metadata server busy, or fills a cache
that only small reads use. Then one workload is slower on one storage for some rounds, at all of its scales,
and all others go on as before. What a whole storage has in common (:mod:`tiercel.statistics.wander`) shows
little of it, A/A pairs show nothing (both halves ran in the same round), and each scale counts as a trial of
its own.

Scales that err alone cancel out in their mean: over the rounds it varies by the variance of one of them, over
their number. That the difference between two storages varies more than so is tested over all workloads
together, and over those of each operation (F test: a single workload has too few rounds), each in units of
its own noise. Then each has, by that share and its own noise, a variance that its scales have in common; it
is added to that of the difference as a storage's own change is, not divided by the rounds, since what comes
and goes in minutes is the same in rounds that follow each other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.statistics.distributions import f_above
from tiercel.statistics.rounds import TOGETHER
from tiercel.statistics.select import SAME, STACK, metric_of, scales
from tiercel.statistics.wander import STEADY, Wander, carried

Floats = npt.NDArray[np.float64]
#: Chance of seeing a change where there is none: then claims are held back that could have been made. At 0.4
#: % a ratio of 2.0 at 40 % is claimed in 1.5 % more of the simulated cases, and where one run in ten is slow
#: and each kind of I/O has its load, 7 % of the studies make a false claim and not 4.
ALPHA = 0.015
Key = tuple[Hashable, str, str]
"""A workload, whose operations ran together and count as one; an operation of it; and its features."""


@dataclass(frozen=True)
class Kind:
    """How a workload (one operation of it) on two stacks varied over the rounds; of logarithms."""

    together: float
    """Variance of the difference between the two of their means over the scales..."""
    rounds: float
    """... and its degrees of freedom."""
    alone: float
    """The variance which that has where scales err alone..."""
    errors: float
    """... and its degrees of freedom."""

    @property
    def whole(self) -> float:
        """Sum of squares: the unit in which workloads are put together."""
        return self.together * self.rounds + self.alone * self.errors


def kind(one: Floats, other: Floats) -> Kind | None:
    """Return how two stacks varied, from logarithms of rates: a row for each scale (the same on both), a
    column for each round. Rounds with a NaN do not count; None for less than two scales or two rounds."""
    both = np.stack([one, other])
    both = both[:, :, np.isfinite(both).all(axis=(0, 1))]
    count, rounds = both.shape[1:]
    if count < 2 or rounds < 2:
        return None
    off = both - both.mean(axis=2, keepdims=True)
    level = off.mean(axis=1)
    errors = (rounds - 1) * (count - 1)
    alone = float(((off - level[:, None]) ** 2).sum()) / errors / count
    return Kind(float(((level[0] - level[1]) ** 2).sum()) / (rounds - 1), rounds - 1, alone, 2 * errors)


def changed(kinds: Mapping[Key, Kind]) -> dict[Key, Wander]:
    """Return by how much two stacks changed against each other, for each kind of I/O."""
    found = _surplus(kinds)
    for operation in dict.fromkeys(key[1] for key in kinds):
        for key, each in _surplus({key: k for key, k in kinds.items() if key[1] == operation}).items():
            found[key] = max(found[key], each, key=lambda w: w.variance)
    return found


def _surplus(kinds: Mapping[Key, Kind]) -> dict[Key, Wander]:
    """Return the variance of each by what its scales have in common, tested over all of them."""
    known = {key: each for key, each in kinds.items() if each.whole > 0}
    names = [workload for workload, *_ in known]
    together = alone = rounds = errors = 0.0
    for (workload, *_), each in known.items():
        weight = 1 / names.count(workload)
        together += weight * each.together * each.rounds / each.whole
        alone += weight * each.alone * each.errors / each.whole
        rounds += weight * each.rounds
        errors += weight * each.errors
    ratio = together * errors / max(alone * rounds, 1e-9) if known else 0.0
    if ratio <= 1 or f_above(ratio, rounds, errors) >= ALPHA:
        return dict.fromkeys(kinds, STEADY)
    return {
        key: Wander(
            (ratio - 1) * each.whole / (ratio * each.rounds + each.errors)
            * carried(int(each.rounds) + 1).variance,
            each.rounds + each.errors,
            int(each.rounds) + 1,
        )
        for key, each in kinds.items()
    }  # fmt: skip


def kinds_changed(
    rows: pd.DataFrame,
) -> Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Wander]:
    """Return a function that says how two stacks (`select.STACK`) changed in one workload and operation (the
    columns `select.SAME` and `features`). `rows`: as :func:`tiercel.statistics.wander.wanders` has them."""
    tables: dict[tuple[str, ...], dict[tuple[str, ...], pd.DataFrame]] = {}
    for key, part in rows.groupby([*_KEYS, *STACK], dropna=False, sort=False):
        words = tuple(map(str, key))
        tables.setdefault(words[len(_KEYS) :], {})[words[: len(_KEYS)]] = table(part)
    made: dict[tuple[object, ...], dict[Key, Wander]] = {}

    def between(words: Mapping[str, Any], one: Mapping[str, Any], other: Mapping[str, Any]) -> Wander:
        study = tuple(str(words[name]) for name in TOGETHER)
        mine, theirs = (tuple(str(side[name]) for name in STACK) for side in (one, other))
        if (study, mine, theirs) not in made:
            made[study, mine, theirs] = changed(_kinds(study, tables.get(mine, {}), tables.get(theirs, {})))
        return made[study, mine, theirs].get(_parted(tuple(str(words[name]) for name in _KEYS)), STEADY)

    return between


_KEYS = (*SAME, "features")
_OPERATION = _KEYS.index("operation")


def _parted(words: tuple[str, ...]) -> Key:
    return (*words[:_OPERATION], *words[_OPERATION + 1 : -1]), words[_OPERATION], words[-1]


def _kinds(
    study: tuple[str, ...],
    mine: Mapping[tuple[str, ...], pd.DataFrame],
    theirs: Mapping[tuple[str, ...], pd.DataFrame],
) -> dict[Key, Kind]:
    found = {}
    for words, one in mine.items():
        other = theirs.get(words)
        if other is None or tuple(words[_KEYS.index(name)] for name in TOGETHER) != study:
            continue
        each = kind(*(side.to_numpy(dtype=np.float64) for side in one.align(other, join="inner")))
        if each is not None:
            found[_parted(words)] = each
    return found


def table(part: pd.DataFrame) -> pd.DataFrame:
    """Return logarithms of rates: a row for each scale, a column for each round."""
    metric = metric_of(part)
    at = {}
    for scale, some in scales(part).items():
        rate = some.set_index("repetition")[metric].astype("float64")
        at[scale] = rate.where(rate > 0).transform(np.log).groupby(level=0).mean()
    return pd.DataFrame(at).T
