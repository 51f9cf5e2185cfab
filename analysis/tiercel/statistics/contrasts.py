"""One system against itself: what a property of the workload costs, and what more processes gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

import pandas as pd

from tiercel.statistics import placements
from tiercel.statistics.comparison import VERDICT_COLUMNS, Comparison, compare_placed, judge
from tiercel.statistics.noise import Floor
from tiercel.statistics.rounds import planned, unflattened
from tiercel.statistics.select import FACTORS, STACK, metric_of, scales

_SAME = ("origin", "site", "study", "engine", "engine_version", "launcher", *STACK)
CONTRAST_COLUMNS = (
    *_SAME,
    "operation",
    "factor",
    "level_a",
    "level_b",
    "experiment_a",
    "workload_a",
    "experiment_b",
    "workload_b",
    "metric",
    "scales",
    *VERDICT_COLUMNS,
    "runs",
)
SCALING_COLUMNS = (
    *_SAME,
    "experiment",
    "workload",
    "operation",
    "metric",
    "over",
    "smallest",
    "largest",
    "growth",
    "efficiency",
    *VERDICT_COLUMNS,
    "runs",
)


def contrasts(
    observations: pd.DataFrame, excluded: Iterable[str] = (), spread_table: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return workload against workload on one stack, where they differ in exactly one factor.

    a is the workload with the factor (random, fsync after each write), b the plain one. The ratio is over
    all scales that both have. All contrasts of one factor and operation are a family for Holm's correction.
    """
    excluded = tuple(excluded)
    spread_of = placements.lookup(
        placements.spreads(observations, excluded) if spread_table is None else spread_table
    )
    found: list[tuple[dict[str, Any], Comparison]] = []
    for factor in FACTORS:
        rows = planned(observations, excluded, factor)
        rows = rows.assign(access=rows["access"].fillna(""), _level=rows[factor].map(str))
        same = ["operation", *_SAME, "access", "features"]
        for key, group in rows.groupby(same, dropna=False, sort=True):
            words = dict(zip(("operation", *_SAME), key, strict=False)) | {"factor": factor}
            parts = [p for _, p in group.groupby(["_level", "experiment", "workload"], sort=True)]
            for one, other in combinations(parts, 2):
                row = _contrast(words, one, other, spread_of)
                if row:
                    found.append(row)
    return _judged(found, ("factor", "operation"), CONTRAST_COLUMNS)


def scaling(
    observations: pd.DataFrame, excluded: Iterable[str] = (), spread_table: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the largest scale against the smallest for each stack and workload.

    `growth` is how many times more processes there are, `efficiency` the gain over the growth. Over nodes
    where these vary, else over the processes of a node.
    """
    excluded = tuple(excluded)
    rows = planned(observations, excluded)
    spread_of = placements.lookup(
        placements.spreads(observations, excluded) if spread_table is None else spread_table
    )
    found: list[tuple[dict[str, Any], Comparison]] = []
    keys = ["experiment", "workload", "operation", *_SAME]
    for key, group in rows.groupby(keys, dropna=False, sort=True):
        words: dict[str, Any] = dict(zip(keys, key, strict=True))
        over = "nodes" if group["nodes"].nunique() > 1 else "processes_per_node"
        by_scale = scales(group)
        smallest, largest = next(iter(by_scale)), list(by_scale)[-1]
        growth = largest[0] * largest[1] / max(1, smallest[0] * smallest[1])
        if growth <= 1:
            continue
        metric = metric_of(group)
        a, b = by_scale[largest], by_scale[smallest]
        made = _placed([(a, b)], metric, spread_of(words))
        position = 0 if over == "nodes" else 1
        words |= {
            "metric": metric,
            "over": over,
            "smallest": smallest[position],
            "largest": largest[position],
            "growth": growth,
            "efficiency": made.ratio / growth,
            "runs": [*a["run"], *b["run"]],
        }
        found.append((words, made))
    return _judged(found, ("experiment", "workload", "operation"), SCALING_COLUMNS)


def _contrast(
    words: dict[str, Any],
    one: pd.DataFrame,
    other: pd.DataFrame,
    spread_of: Callable[[Mapping[str, Any]], Floor],
) -> tuple[dict[str, Any], Comparison] | None:
    levels = {str(one["_level"].iloc[0]), str(other["_level"].iloc[0])}
    if len(levels) < 2 or "<NA>" in levels or "nan" in levels or "None" in levels:
        return None
    plain = FACTORS[words["factor"]]
    a, b = (other, one) if one["_level"].iloc[0] == plain else (one, other)
    if words["factor"] == "fsync" and plain not in levels:
        a, b = (one, other) if one["_level"].iloc[0] == "write" else (other, one)
    at_a, at_b = scales(a), scales(b)
    shared = [scale for scale in at_a if scale in at_b]
    if not shared:
        return None
    metric = metric_of(a)
    sides = {
        f"{name}_{side}": part[column].iloc[0]
        for name, column in (("level", "_level"), ("experiment", "experiment"), ("workload", "workload"))
        for side, part in (("a", a), ("b", b))
    }
    spread = placements.together(
        *(
            spread_of(words | {name: part[name].iloc[0] for name in ("experiment", "workload")})
            for part in (a, b)
        )
    )
    pairs = [(at_a[scale], at_b[scale]) for scale in shared]
    made = _placed(pairs, metric, spread)
    runs = [run for pair in pairs for side in pair for run in side["run"]]
    return words | sides | {"metric": metric, "scales": len(shared), "runs": runs}, made


def _placed(pairs: list[tuple[pd.DataFrame, pd.DataFrame]], metric: str, spread: Floor) -> Comparison:
    measured = [(unflattened(a, metric), unflattened(b, metric)) for a, b in pairs]
    return compare_placed([(a[metric], b[metric]) for a, b in pairs], spread, measured)


def _judged(
    found: list[tuple[dict[str, Any], Comparison]], family: tuple[str, ...], columns: tuple[str, ...]
) -> pd.DataFrame:
    """Return the table with verdicts corrected within each family: the rows that share these columns."""
    families: dict[tuple[Any, ...], list[int]] = {}
    for i, (words, _) in enumerate(found):
        families.setdefault(tuple(words[name] for name in family), []).append(i)
    rows: list[dict[str, Any]] = [{}] * len(found)
    for members in families.values():
        for i, made in zip(members, judge([found[i][1] for i in members]), strict=True):
            rows[i] = found[i][0] | made.columns()
    return pd.DataFrame(rows, columns=list(columns))
