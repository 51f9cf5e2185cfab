"""One system against itself: what a property of the workload costs, and what more processes gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from tiercel.statistics import placements
from tiercel.statistics.comparison import VERDICT_COLUMNS, Comparison, compare_placed, judge
from tiercel.statistics.kinds import Key, Kind, changed, kind, table
from tiercel.statistics.noise import Floor
from tiercel.statistics.rounds import met, planned, unflattened
from tiercel.statistics.select import FACTORS, STACK, metric_of, scales
from tiercel.statistics.wander import STEADY, Wander

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
    all scales that both have. All contrasts of one factor and operation are a family for Hochberg's
    correction.
    """
    excluded = tuple(excluded)
    spread_of = placements.lookup(
        placements.spreads(observations, excluded) if spread_table is None else spread_table
    )
    found: list[_Contrast] = []
    for factor in FACTORS:
        rows = planned(observations, excluded, factor)
        rows = rows[rows[factor].notna()]
        rows = rows.assign(access=rows["access"].fillna(""), _level=rows[factor].map(str))
        same = ["operation", *_SAME, "access", "features"]
        for key, group in rows.groupby(same, dropna=False, sort=True):
            words = dict(zip(("operation", *_SAME), key, strict=False)) | {"factor": factor}
            parts = [p for _, p in group.groupby(["_level", "experiment", "workload"], sort=True)]
            for one, other in combinations(parts, 2):
                each = _contrast(words, one, other, spread_of)
                if each:
                    found.append(each)
    made = [
        (each.words, _placed(each.pairs, each.words["metric"], each.spread, change))
        for each, change in zip(found, _changes(found), strict=True)
    ]
    return _judged(made, ("factor", "operation"), CONTRAST_COLUMNS)


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
        a, b = met(by_scale[largest], by_scale[smallest])
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


@dataclass(frozen=True)
class _Contrast:
    """Two workloads on one stack, at the scales that both have."""

    words: dict[str, Any]
    pairs: list[tuple[pd.DataFrame, pd.DataFrame]]
    spread: Floor


def _changes(found: Sequence[_Contrast]) -> list[Wander]:
    """Return by how much the two workloads of each contrast changed against each other over the study.

    What slows down a whole stack slows down both. What others do hits one kind of I/O, at all of its scales
    (:mod:`tiercel.statistics.kinds`): that is tested over all contrasts on a stack.
    """
    stacks: dict[tuple[Any, ...], dict[Key, Kind]] = {}
    keys: list[tuple[tuple[Any, ...], Key]] = []
    for each in found:
        words = each.words
        stack = tuple(str(words[name]) for name in _SAME)
        pair = tuple(str(words[f"{name}_{side}"]) for name in ("experiment", "workload") for side in "ab")
        key = (pair, str(words["operation"]), str(words["factor"]))
        keys.append((stack, key))
        sides = [table(pd.concat([pair[side] for pair in each.pairs])) for side in (0, 1)]
        made = kind(*(side.to_numpy(dtype=float) for side in sides[0].align(sides[1], join="inner")))
        if made is not None:
            stacks.setdefault(stack, {})[key] = made
    by_stack = {stack: changed(kinds) for stack, kinds in stacks.items()}
    return [by_stack.get(stack, {}).get(key, STEADY) for stack, key in keys]


def _contrast(
    words: dict[str, Any],
    one: pd.DataFrame,
    other: pd.DataFrame,
    spread_of: Callable[[Mapping[str, Any]], Floor],
) -> _Contrast | None:
    """Return two workloads by the order of their levels; None for equal ones, no common scale."""
    levels = [side["_level"].iloc[0] for side in (one, other)]
    if levels[0] == levels[1]:
        return None
    # The plain one is held against; of two that are not plain (fsync at the end, or of each write) the first.
    a, b = (one, other) if levels[1] == FACTORS[words["factor"]] else (other, one)
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
    pairs = [met(at_a[scale], at_b[scale]) for scale in shared]
    runs = [run for pair in pairs for side in pair for run in side["run"]]
    told = words | sides | {"metric": metric, "scales": len(shared), "runs": runs}
    return _Contrast(told, pairs, spread)


def _placed(
    pairs: list[tuple[pd.DataFrame, pd.DataFrame]], metric: str, spread: Floor, change: Wander = STEADY
) -> Comparison:
    measured = [(unflattened(a, metric), unflattened(b, metric)) for a, b in pairs]
    return compare_placed([(a[metric], b[metric]) for a, b in pairs], spread, measured, change)


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
