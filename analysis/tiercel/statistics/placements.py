"""How much two placements of one configuration differ, beyond what its repetitions do.

The model, for the logarithm of a rate: that of the configuration, plus what this placement of it adds (where
its files came to lie, its place in the order of runs: variance t), plus what this repetition adds (variance
s, its own for each configuration). It is the two-level model of T. Kalibera and R. Jones ("Rigorous
benchmarking in reasonable time", ISMM 2013), with placements where they have executions.

A/A pairs are two placements of one configuration. The difference d of their means has the variance
2 t + s / n + s / n, so that pairs tell t, each a little. They are pooled: over the pairs of the same workload
and operation, these with all of their storage, these with all of the study, each level shrunk towards the
next as if that one were `PRIOR` pairs. Of a storage and a study, 2 t is the value at which the sum of d² over
their variances is the median of chi square with as many degrees of freedom as there are pairs (of a single
pair, a lower quantile, which gives more).

PRIOR and FREEDOM are chosen by simulation (`python -m benchmarks.decisions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tiercel.statistics.distributions import chi2_bound
from tiercel.statistics.noise import KEYS, UNKNOWN, Floor
from tiercel.statistics.rounds import flattened
from tiercel.statistics.select import GROUP, metric_of, usable
from tiercel.statistics.summary import finite

#: As many pairs the next wider level counts for.
PRIOR = 8.0
#: The quantile of chi square that the pairs are taken to show: too small as often as too large.
LEVEL = 0.5
#: The same of a single pair, which shows nothing of how much pairs differ: with LEVEL, one in ten studies of
#: eight workloads and one pair made a false claim (placements 10 % apart).
LEVEL_OF_ONE = 0.125
#: Degrees of freedom of a variance between placements, however many pairs there are: kinds of I/O differ in
#: it, and one estimate for all has tails beyond the normal ones (8: as where every second kind has none).
FREEDOM = 8
#: Half of the width, in standard deviations, of what 95 % of all ratios lie in.
WIDTH = 1.959964


@dataclass(frozen=True)
class Pair:
    """An A/A pair: the difference of the mean logarithms of its halves, and the variance that its repetitions
    give that."""

    difference: float
    variance: float
    n: int
    """Repetitions of the smaller half."""


def pair_of(a: Iterable[Any], b: Iterable[Any]) -> Pair | None:
    """Return what two halves of an A/A pair tell; None where they have no variance or no logarithm."""
    first, second = finite(a), finite(b)
    n = min(len(first), len(second))
    if n < 2 or min(first.min(), second.min()) <= 0:
        return None
    x, y = np.log(first), np.log(second)
    variance = float(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
    return Pair(float(x.mean() - y.mean()), variance, n)


def component(pairs: Sequence[Pair]) -> float:
    """Return 2 t, the variance between two placements, from pairs (0: repetitions explain all)."""
    if not pairs:
        return math.nan
    squares = np.array([pair.difference**2 for pair in pairs])
    variances = np.array([max(pair.variance, 1e-18) for pair in pairs])
    target = _quantile(len(pairs))

    def surplus(between: float) -> float:
        return float((squares / (between + variances)).sum()) - target

    if surplus(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(squares.sum()) / target + 1e-18
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    return high


@cache
def _quantile(pairs: int) -> float:
    return chi2_bound(1 - (LEVEL if pairs > 1 else LEVEL_OF_ONE), pairs)


def spreads(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> pd.DataFrame:
    """Return one row for each storage, layer, engine and operation: the ratios between which 95 % of those
    of two placements lie (`low`, `high`), the degrees of freedom of its variance (`n`), and of what pairs it
    is (`source`).

    `source`: own, storage or study, the narrowest level that has a pair; none: no pair was run, and nothing
    can be told from noise.
    """
    rows = flattened(usable(observations, excluded, twins=True))
    found: list[dict[str, Any]] = []
    for key, group in rows.groupby(list(KEYS), dropna=False, sort=True):
        found.append(dict(zip(KEYS, key, strict=True)) | {"pairs": list(_pairs(group))})
    table = [
        row | {"low": s.low, "high": s.high, "n": s.n, "source": s.source}
        for row, s in zip(found, shrunk(found), strict=True)
    ]
    return pd.DataFrame(table, columns=[*KEYS, "low", "high", "n", "source"])


def shrunk(rows: Sequence[Mapping[str, Any]]) -> list[Floor]:
    """Return the spread of each row (columns of `spreads`, and `pairs`), shrunk towards its storage's, and
    this towards its study's."""
    studies: dict[Any, list[Pair]] = {}
    storages: dict[Any, list[Pair]] = {}
    for row in rows:
        study, storage = _levels(row)
        studies.setdefault(study, []).extend(row["pairs"])
        storages.setdefault(storage, []).extend(row["pairs"])
    parts = {name: component(pairs) for name, pairs in (studies | storages).items()}
    found = []
    for row in rows:
        study, storage = _levels(row)
        if not studies[study]:
            found.append(UNKNOWN)
            continue
        of_storage = _toward(len(storages[storage]), parts[storage], parts[study])
        # One pair tells little, but without a bias: what it shows beyond its repetitions, negative too.
        own = [pair.difference**2 - pair.variance for pair in row["pairs"]]
        square = max(_toward(len(own), sum(own) / max(len(own), 1), of_storage), 0.0)
        high = math.exp(WIDTH * math.sqrt(square))
        source = "own" if own else "storage" if storages[storage] else "study"
        found.append(Floor(1 / high, high, min(len(studies[study]), FREEDOM), source))
    return found


def _toward(pairs: int, own: float, wider: float) -> float:
    """Return what `pairs` pairs show, shrunk towards the next wider level."""
    return wider if not pairs else (pairs * own + PRIOR * wider) / (pairs + PRIOR)


def _levels(row: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    study = tuple(row[name] for name in ("origin", "site", "study"))
    return study, (*study, row["storage"], row["layer"])


def lookup(table: pd.DataFrame) -> Callable[[Mapping[str, Any]], Floor]:
    """Return a function that finds a configuration's spread in the table that :func:`spreads` made."""
    known = {
        tuple(row[k] for k in KEYS): Floor(row["low"], row["high"], int(row["n"]), row["source"])
        for row in table.to_dict("records")
    }
    return lambda words: known.get(tuple(words[k] for k in KEYS), UNKNOWN)


def between(spread: Floor) -> float:
    """Return the variance of the logarithm of the ratio of two placements that a spread stands for."""
    return (math.log(spread.high) / WIDTH) ** 2


def together(one: Floor, other: Floor) -> Floor:
    """Return the spread of a ratio of two configurations, each of which has its own."""
    if not (one.known and other.known):
        return UNKNOWN
    high = math.exp(WIDTH * math.sqrt((between(one) + between(other)) / 2))
    first = min((one, other), key=lambda spread: spread.n)
    return Floor(1 / high, high, first.n, first.source)


def _pairs(group: pd.DataFrame) -> Iterable[Pair]:
    metric = metric_of(group)
    for _, one in group.groupby(list(GROUP), dropna=False):
        halves = dict(list(one.groupby("twin")))
        if "a" in halves and "b" in halves:
            # The twin runs in the minimum rounds only: later repetitions of A are no part of the pair.
            last = halves["b"]["repetition"].max()
            a = halves["a"]
            pair = pair_of(a.loc[a["repetition"] <= last, metric], halves["b"][metric])
            if pair is not None:
                yield pair
