"""One system against itself: what a property of the workload costs, and what more processes gain."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, product
from typing import Any

import numpy as np
import pandas as pd

from tiercel.statistics.cells import Cells, studies, without
from tiercel.statistics.decide import verdicts
from tiercel.statistics.model import Ints, contrast, single_scale
from tiercel.statistics.select import FACTORS, SCALE, STACK
from tiercel.statistics.tables import VERDICT_COLUMNS, facts_of, layout_columns, of_contrast

_SAME = ("origin", "site", "study", "engine", "engine_version", "launcher", *STACK)
CONTRAST_COLUMNS = (
    *_SAME, "operation", "factor", "level_a", "level_b", "experiment_a", "workload_a", "experiment_b",
    "workload_b", "metric", "scales", *VERDICT_COLUMNS, "runs",
)  # fmt: skip
SCALING_COLUMNS = (
    *_SAME, "experiment", "workload", "operation", "metric", "over", "smallest", "largest", "growth",
    "efficiency", *VERDICT_COLUMNS, "runs",
)  # fmt: skip


def contrasts(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> pd.DataFrame:
    """Return workload against workload on one stack, where they differ in exactly one factor.

    a is the workload with the factor (random, fsync after each write), b the plain one. The ratio is over
    all scales that both have. All contrasts of one factor and operation are a family. Follow-up rounds do
    not count: they were not asked for these questions.
    """
    found: list[dict[str, Any]] = []
    for cells in studies(_planned(observations), excluded):
        first, second, factors = _pairs(cells)
        if not len(first):
            continue
        there = cells.there
        shared = there[first] & there[second]
        made = contrast(cells.made, first, second, None, shared)
        operations = cells.table["operation"].map(str).to_numpy()[first]
        families = list(zip(factors, operations, strict=True))
        judged = verdicts(made, facts_of(cells, first, second, shared), families)
        for i, verdict in enumerate(judged):
            a, b = int(first[i]), int(second[i])
            at = [int(s) for s in np.flatnonzero(shared[i])]
            words = cells.describe(a, (*_SAME, "operation", "metric"))
            for side, cell in (("a", a), ("b", b)):
                words[f"level_{side}"] = str(cells.columns[factors[i]][cell])
                words |= {
                    f"{k}_{side}": v for k, v in cells.describe(cell, ("experiment", "workload")).items()
                }
            words |= {"factor": factors[i], "scales": len(at), "runs": cells.runs((a, b), at)}
            words["separated"] = _apart(cells, a, b, at)
            found.append(words | layout_columns(cells, a, b) | of_contrast(made, i) | verdict.columns())
    order = list(FACTORS)
    table = pd.DataFrame(found, columns=list(CONTRAST_COLUMNS))
    return table.sort_values("factor", key=lambda f: f.map(order.index), kind="stable", ignore_index=True)


def scaling(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> pd.DataFrame:
    """Return the largest scale against the smallest for each stack and workload.

    `growth` is how many times more processes there are, `efficiency` the gain over the growth. Over nodes
    where these vary, else over the processes of a node.
    """
    found: list[dict[str, Any]] = []
    for cells in studies(_planned(observations), excluded):
        there = cells.there
        ends = [(c, np.flatnonzero(row)) for c, row in enumerate(there)]
        grown = [(c, int(at[0]), int(at[-1])) for c, at in ends if len(at) > 1]
        grown = [(c, s, t) for c, s, t in grown if np.prod(cells.scales[t]) > np.prod(cells.scales[s])]
        if not grown:
            continue
        cell, small, large = (np.array(each, dtype=int) for each in zip(*grown, strict=True))
        both = single_scale(cells.made, np.concatenate([cell, cell]), np.concatenate([large, small]))
        places = np.arange(len(cell))
        made = contrast(both, places, places + len(cell))
        facts = facts_of(cells, cell, cell, np.zeros((len(cell), len(cells.scales)), dtype=bool))
        columns = cells.table[["experiment", "workload", "operation"]].map(str)
        families = [tuple(row) for row in columns.to_numpy()[cell]]
        for i, verdict in enumerate(verdicts(made, facts, families)):
            c, s, t = grown[i]
            least, most = cells.scales[s], cells.scales[t]
            over = int(least[0] == most[0])
            growth = float(np.prod(most)) / max(1.0, float(np.prod(least)))
            words = cells.describe(c, (*_SAME, "experiment", "workload", "operation", "metric"))
            words |= {"over": SCALE[over], "smallest": least[over], "largest": most[over],
                      "growth": growth, "efficiency": verdict.ratio / growth,
                      "runs": cells.runs([c], [t, s]), "separated": False}  # fmt: skip
            found.append(words | layout_columns(cells, c, c) | of_contrast(made, i) | verdict.columns())
    return pd.DataFrame(found, columns=list(SCALING_COLUMNS))


def _planned(observations: pd.DataFrame) -> pd.DataFrame:
    return observations[observations["look"].fillna(0) == 0] if "look" in observations else observations


def _pairs(cells: Cells) -> tuple[Ints, Ints, list[str]]:
    """Return the cells that differ in one factor, and in which. Cells are grouped by all that they share."""
    table = cells.table
    found: list[tuple[int, int, str]] = []
    for factor, plain in FACTORS.items():
        known = table[table[factor].notna()].assign(_access=table["access"].fillna(""))
        if known.empty:
            continue
        known = known.assign(_rest=without(known, factor), _level=known[factor].map(str))
        known = known[
            known.groupby(["operation", *_SAME, "_access", "_rest"], dropna=False)["_level"].transform(
                "nunique"
            )
            > 1
        ]
        keys = known.groupby(["operation", *_SAME, "_access", "_rest"], dropna=False, sort=True)
        ordered = known.assign(_group=keys.ngroup()).sort_values(
            ["_group", "_level", "experiment", "workload"], kind="stable"
        )
        levels = dict(zip(ordered.index, ordered["_level"], strict=True))
        of_group = dict(zip(ordered.index, ordered["_group"], strict=True))
        for _, group in groupby(ordered.index, key=of_group.__getitem__):
            members = list(group)
            at = 0
            for _, block in groupby(members, key=levels.__getitem__):
                ones = list(block)
                at += len(ones)
                for one, other in product(ones, members[at:]):
                    # The plain one is held against; of two that are not plain the first.
                    pair = (one, other) if levels[other] == plain else (other, one)
                    found.append((*pair, factor))
    sides = np.array([each[:2] for each in found], dtype=int).reshape(-1, 2)
    shared = (cells.there[sides[:, 0]] & cells.there[sides[:, 1]]).any(axis=-1)
    return sides[shared, 0], sides[shared, 1], [found[i][2] for i in np.flatnonzero(shared)]


def _apart(cells: Cells, a: int, b: int, at: list[int]) -> bool:
    """Return whether all values of one side are above those of the other, at each scale."""
    pairs = [(cells.measured(a, s), cells.measured(b, s)) for s in at]
    return any(all(len(x) and len(y) and x.min() > y.max() for x, y in each)
               for each in (pairs, [(y, x) for x, y in pairs]))  # fmt: skip
