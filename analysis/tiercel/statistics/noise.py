"""The A/A noise floor: how far two samples of the same configuration lie apart.

Twins are the same configuration run twice over, interleaved with all the others. Any ratio between two
systems that such a pair shows too says nothing about the systems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tiercel.statistics.bootstrap import ratio_interval
from tiercel.statistics.select import GROUP, metric_of, usable
from tiercel.statistics.summary import finite

#: What a floor belongs to. Not the scale: only one scale of a workload runs twice over.
KEYS = ("origin", "site", "study", "experiment", "workload", "operation", "storage", "layer", "engine")


@dataclass(frozen=True)
class Floor:
    """Ratios between `low` and `high` are noise. Both contain 1 and are each other's inverse."""

    low: float
    high: float
    n: int
    """Repetitions of the smaller half; 0 where no pair was run."""
    source: str = "own"
    """own; storage or study where it is pooled from other workloads; none."""

    @property
    def known(self) -> bool:
        return self.n > 0


#: No pair was run: nothing can be told from noise.
UNKNOWN = Floor(0.0, math.inf, 0, "none")


def noise_floor(a: Iterable[Any], b: Iterable[Any], seed: int = 0) -> Floor:
    """Return the floor from the values of an A/A pair.

    It is the bootstrap interval of the ratio of medians, widened to contain the ratio, 1, and its own
    inverse: which half is called A is chance, so a comparison and its reverse need the same floor.
    """
    first, second = finite(a), finite(b)
    if not len(first) or not len(second) or np.median(first) <= 0 or np.median(second) <= 0:
        return UNKNOWN
    ratio = float(np.median(first) / np.median(second))
    low, high = ratio_interval([(first, second)], seed=seed)
    high = max(high, ratio, 1.0, 1 / low if low > 0 else math.inf, 1 / ratio)
    return Floor(1 / high, high, min(len(first), len(second)))


def widest(floors: Iterable[Floor], source: str | None = None) -> Floor:
    """Return the floor that contains all known ones; UNKNOWN when there is none."""
    known = [floor for floor in floors if floor.known]
    if not known:
        return UNKNOWN
    worst = max(known, key=lambda floor: floor.high)
    return Floor(worst.low, worst.high, min(floor.n for floor in known), source or worst.source)


def floors(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> pd.DataFrame:
    """Return one row for each storage, layer, engine and operation: its own floor, or a pooled one.

    A configuration without a pair of its own takes the widest floor of its storage in the study
    (source: storage), or else of the whole study (source: study); the widest, because a floor that is
    too narrow turns noise into a claim.
    """
    both = usable(observations, excluded, twins=True)
    rows = []
    for key, group in both.groupby(list(KEYS), dropna=False, sort=True):
        floor = _largest_scale(group)
        rows.append(dict(zip(KEYS, key, strict=True)) | _columns(floor))
    table = pd.DataFrame(rows, columns=[*KEYS, "low", "high", "n", "source"])
    return _pooled(table)


def lookup(table: pd.DataFrame) -> Callable[[Mapping[str, Any]], Floor]:
    """Return a function that finds a configuration's floor in the table that :func:`floors` made."""
    known = {tuple(row[k] for k in KEYS): _floor(row) for row in table.to_dict("records")}
    return lambda words: known.get(tuple(words[k] for k in KEYS), UNKNOWN)


def _largest_scale(group: pd.DataFrame) -> Floor:
    """Return the floor of the pairs in `group`: the widest one where several configurations have a pair."""
    metric = metric_of(group)
    found = []
    for _, one in group.groupby(list(GROUP), dropna=False):
        halves = {twin: half[metric] for twin, half in one.groupby("twin")}
        if "a" in halves and "b" in halves:
            # The twin runs in the minimum rounds only: later repetitions of A are no part of the pair.
            last = one.loc[one["twin"] == "b", "repetition"].max()
            first = one.loc[(one["twin"] == "a") & (one["repetition"] <= last), metric]
            found.append(noise_floor(first, halves["b"]))
    return widest(found, "own")


def _pooled(table: pd.DataFrame) -> pd.DataFrame:
    records = table.to_dict("records")
    for record in records:
        if record["source"] != "none":
            continue
        study = [
            r
            for r in records
            if r["source"] == "own" and all(r[k] == record[k] for k in ("origin", "site", "study"))
        ]
        same = [r for r in study if (r["storage"], r["layer"]) == (record["storage"], record["layer"])]
        pooled = widest(map(_floor, same), "storage")
        if not pooled.known:
            pooled = widest(map(_floor, study), "study")
        record.update(_columns(pooled))
    return pd.DataFrame(records, columns=table.columns)


def _columns(floor: Floor) -> dict[str, object]:
    return {"low": floor.low, "high": floor.high, "n": floor.n, "source": floor.source}


def _floor(row: Mapping[Any, Any]) -> Floor:
    return Floor(float(row["low"]), float(row["high"]), int(row["n"]), str(row["source"]))
