"""Tables of summaries and comparisons, made from observations.

Every function takes the whole table of observations and leaves out what must not be counted:
phases that only prepare, traced runs, and (but for the noise floor) the twins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tiercel.statistics.cells import Cells, studies
from tiercel.statistics.decide import Facts, share, verdicts
from tiercel.statistics.model import ALPHA, FREEDOM, Contrast, Ints, contrast
from tiercel.statistics.select import GROUP, METRICS, SAME, SCALE, STACK, flag_list, metric_for, usable
from tiercel.statistics.summary import finite, summarize
from tiercel.statistics.verdict import MARGIN, Outcome, Rule, Verdict

#: Engines of tiercel itself; the others are upstream programs.
EMBEDDED = ("iokernel", "dlkernel")

#: Columns that every table of comparisons has.
VERDICT_COLUMNS = (
    "n_a", "n_b", "ratio", "low", "high", "p_value", "p_corrected", "outcome", "rule", "family", "detectable",
    "extent", "needed", "margin", "verdict", "reason", "floor_low", "floor_high", "floor_source", "separated",
    "farthest",
)  # fmt: skip
#: What a layout variance belongs to. Not the scale: only one scale of a workload has a replicate.
LAYOUT_KEYS = ("origin", "site", "study", "experiment", "workload", "operation", "storage", "layer", "engine")
_WIDTH = 1.959964

_DESCRIBES = (
    "site",
    "study",
    "experiment",
    "workload",
    "title",
    "storage",
    "storage_label",
    "layer",
    "engine",
    "engine_version",
    "launcher",
    "nodes",
    "processes_per_node",
    "processes",
    "medium",
    "fsync",
)
SUMMARY_COLUMNS = (
    *GROUP,
    *_DESCRIBES,
    "metric",
    "n",
    "median",
    "low",
    "high",
    "coverage",
    "mean",
    "sd",
    "cv",
    "minimum",
    "maximum",
    "operation_rate",
    "latency_p50",
    "latency_p99",
    "behind_share",
    "flags",
    "outliers",
    "values",
    "runs",
)
COMPARISON_COLUMNS = (
    *SAME,
    "scope",
    *SCALE,
    "storage_a",
    "layer_a",
    "storage_b",
    "layer_b",
    "metric",
    "median_a",
    "median_b",
    "amount_a",
    "amount_b",
    *VERDICT_COLUMNS,
    "runs",
)
AGREEMENT_COLUMNS = (
    "origin", "site", "study", "experiment", "workload", "operation", *STACK, *SCALE, "engine_a", "engine_b",
    "metric", "median_a", "median_b", *VERDICT_COLUMNS, "within_floor",
)  # fmt: skip


def summary_table(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each configuration and operation.

    `flags` maps each code to the share of the rows that carry it; `outliers` lists the values beyond
    Tukey's fences (1.5 times the interquartile range), which are in all the numbers all the same.
    """
    used = usable(observations)
    columns = {str(name): used[name].to_numpy() for name in used}
    known = {name: used[name].notna().to_numpy() for name in METRICS}
    rows = []
    for at in _groups(used, GROUP):
        metric = metric_for(
            str(columns["operation"][at[0]]), {name for name in METRICS if known[name][at].any()}
        )
        s = summarize(columns[metric][at])
        rows.append(
            {name: columns[name][at[0]] for name in (*GROUP, *_DESCRIBES)}
            | {
                "metric": metric,
                "n": s.n,
                "median": s.median,
                "low": s.low,
                "high": s.high,
                "coverage": s.coverage,
                "mean": s.mean,
                "sd": s.sd,
                "cv": s.cv,
                "minimum": s.minimum,
                "maximum": s.maximum,
                **{
                    name: summarize(columns[name][at]).median
                    for name in ("operation_rate", "latency_p50", "latency_p99", "behind_share")
                },
                "flags": shares(columns["flags"][at]),
                "outliers": outliers(columns[metric][at]),
                "values": finite(columns[metric][at]).tolist(),
                "runs": list(columns["run"][at]),
            }
        )
    table = pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
    order = ["origin", "experiment", "workload", "operation", *SCALE, "storage", "layer", "engine"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def _groups(rows: pd.DataFrame, names: Iterable[str]) -> list[Ints]:
    """Return the places of each group's rows, the groups in the order of their first rows."""
    number = rows.groupby(list(names), dropna=False, sort=False).ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []


def shares(flags: Iterable[Any]) -> dict[str, float]:
    """Return each code with the share of rows that carry it."""
    lists = [set(flag_list(cell)) for cell in flags]
    codes = sorted(set().union(*lists))
    return {code: sum(code in found for found in lists) / len(lists) for code in codes}


def outliers(values: Iterable[float | None]) -> list[float]:
    """Return values beyond Tukey's fences; none below four values, where quartiles mean little."""
    x = finite(values)
    if len(x) < 4:
        return []
    q1, q3 = np.quantile(x, [0.25, 0.75])
    reach = 1.5 * (q3 - q1)
    return [float(v) for v in x if v < q1 - reach or v > q3 + reach]


@dataclass(frozen=True)
class _Pairs:
    """Pairs of cells, and which scales of each pair are compared."""

    first: Ints
    second: Ints
    scales: Any
    whole: list[bool]
    """Whether a pair is over all scales that both have."""
    several: list[bool]


def comparisons(
    observations: pd.DataFrame, excluded: Iterable[str] = (), margin: float = MARGIN
) -> pd.DataFrame:
    """Return stack against stack for each workload and operation: storages, and layers on a storage.

    Rows of scope `scale` compare at one scale; rows of scope `all` over all scales that both stacks have
    (only where there are several). All answers of a study by one engine are a family; the single scales of
    workloads that have several are another. A study with follow-up rounds is judged after each of them, and
    what one of them claimed stays claimed, unless later rounds show the opposite. Observations with an
    `excluded` flag do not count. Within `margin` two are the same.
    """
    excluded = tuple(excluded)
    seen = usable(observations, excluded, twins=True)["look"]
    follow_ups = sorted({0, *map(int, seen)})
    claimed: dict[tuple[Any, ...], tuple[int, Verdict]] = {}
    rows: list[tuple[dict[str, Any], Verdict]] = []
    for number in follow_ups:
        then = observations
        if number != follow_ups[-1]:
            then = observations[observations["look"].fillna(0) <= number]
        rows = _compared(then, excluded, number, margin)
        for words, verdict in rows:
            if verdict.outcome in (Outcome.BETTER, Outcome.WORSE):
                claimed.setdefault(_key(words), (number, verdict))
    since = {
        (number, _key(words)): (words, verdict)
        for number in {number for number, _ in claimed.values()} - {follow_ups[-1]}
        for words, verdict in _compared(observations[observations["look"] > number], excluded, number, margin)
    }
    table = [words | _final(words, verdict, claimed, since).columns() for words, verdict in rows]
    return pd.DataFrame(table, columns=list(COMPARISON_COLUMNS))


def _final(
    words: dict[str, Any],
    verdict: Verdict,
    claimed: dict[tuple[Any, ...], tuple[int, Verdict]],
    since: dict[tuple[int, tuple[Any, ...]], tuple[dict[str, Any], Verdict]],
) -> Verdict:
    """Return the verdict with what an earlier round claimed: it stays if all rounds together still show it,
    and if the later ones do not show the opposite."""
    key = _key(words)
    if key not in claimed:
        return verdict
    number, then = claimed[key]
    later = since.get((number, key))
    opposite = later and later[0]["p_value"] < ALPHA and (later[1].ratio > 1) != (then.ratio > 1)
    shown = verdict.low > 1 if then.ratio > 1 else verdict.high < 1
    if opposite or not shown:
        return verdict.became(Outcome.NOT_DECIDED, Rule.CONTRADICTED)
    return verdict.became(then.outcome, then.rule, then.p)


def _key(words: dict[str, Any]) -> tuple[Any, ...]:
    """Return what is compared, the same at every follow-up."""
    return tuple(str(words[name]) for name in (*SAME, "scope", *SCALE, *_SIDES, "metric"))


_SIDES = tuple(f"{name}_{side}" for name in STACK for side in "ab")


def _compared(
    observations: pd.DataFrame, excluded: tuple[str, ...], follow_up: int, margin: float
) -> list[tuple[dict[str, Any], Verdict]]:
    """Return the comparisons of all that was measured up to a follow-up, judged by what it may claim."""
    rows: list[tuple[dict[str, Any], Verdict]] = []
    for cells in studies(observations, excluded):
        pairs = _pairs(cells)
        if not len(pairs.first):
            continue
        made = contrast(
            cells.made, pairs.first, pairs.second, cells.drift(pairs.first, pairs.second), pairs.scales
        )
        engines = cells.table["engine"].map(str).to_numpy()[pairs.first]
        families = [
            (engine, whole or not several)
            for engine, whole, several in zip(engines, pairs.whole, pairs.several, strict=True)
        ]
        facts = facts_of(cells, pairs.first, pairs.second, pairs.scales)
        found = verdicts(made, facts, families, share(follow_up), margin)
        rows += [(_words(cells, pairs, made, i), verdict) for i, verdict in enumerate(found)]
    return rows


def _pairs(cells: Cells) -> _Pairs:
    """Return the pairs of stacks of each workload that differ in the storage or in the layer, not in both:
    over all scales with equal work on both, and at each of these."""
    first, second, scales, whole, several = [], [], [], [], []
    stack = cells.table[list(STACK)].map(str).to_numpy()
    there = cells.there | cells.zero
    for _, group in cells.table.groupby("group", sort=True):
        for a, b in combinations(group.index, 2):
            if (stack[a, 0] == stack[b, 0]) == (stack[a, 1] == stack[b, 1]):
                continue
            shared = there[a] & there[b] & (cells.amount[a] == cells.amount[b])
            single = [np.eye(len(shared), dtype=bool)[i] for i in np.flatnonzero(shared)]
            every = [*single, shared] if len(single) > 1 else single
            for i, mask in enumerate(every):
                first.append(a)
                second.append(b)
                scales.append(mask)
                whole.append(i == len(single))
                several.append(len(single) > 1)
    mask = np.array(scales).reshape(len(first), len(cells.scales))
    return _Pairs(np.array(first, dtype=int), np.array(second, dtype=int), mask, whole, several)


def facts_of(cells: Cells, first: Ints, second: Ints, scales: Any) -> Facts:
    """Return what is known of pairs of cells besides their rates."""
    zero = ((cells.zero[first] | cells.zero[second]) & scales).any(axis=-1)
    counts = np.isfinite(cells.values[:, :, 0]).sum(axis=-1)
    begin, end = cells.began
    # Only a stack that came to the study later has rounds of its own, under the same numbers.
    gap = np.fmax(begin[second] - end[first], begin[first] - end[second])
    turns = np.minimum(counts[first], counts[second]) >= 2
    later = np.where(scales & turns, np.nan_to_num(gap, nan=0.0), 0.0)
    return Facts(zero.astype(float), np.maximum(later.max(axis=-1, initial=0.0), 0.0))


def _words(cells: Cells, pairs: _Pairs, made: Contrast, i: int) -> dict[str, Any]:
    """Return the columns of a comparison that its verdict does not have."""
    a, b = int(pairs.first[i]), int(pairs.second[i])
    at = [int(s) for s in np.flatnonzero(pairs.scales[i])]
    one = not pairs.whole[i]
    words: dict[str, Any] = cells.describe(a, SAME)
    words |= {
        f"{name}_{side}": cells.columns[name][cell]
        for name in STACK
        for side, cell in zip("ab", (a, b), strict=True)
    }
    words |= {"scope": "scale" if one else "all", "metric": cells.columns["metric"][a]}
    words |= dict(zip(SCALE, cells.scales[at[0]] if one else (pd.NA, pd.NA), strict=True))
    medians = [
        float(np.median(v)) if one and len(v) else math.nan
        for v in (cells.measured(c, at[0]) for c in (a, b))
    ]
    words |= {"median_a": medians[0], "median_b": medians[1]}
    words |= _amounts(cells, a, b, at)
    sides = [[cells.measured(c, s) for s in at] for c in (a, b)]
    words["separated"] = _separated(sides[0], sides[1]) or _separated(sides[1], sides[0])
    words["runs"] = cells.runs((a, b), at)
    return words | layout_columns(cells, a, b) | of_contrast(made, i)


def of_contrast(made: Contrast, i: int) -> dict[str, Any]:
    """Return columns that say more of a contrast than its verdict."""
    return {"p_value": float(made.p[i]), "farthest": float(np.exp(made.farthest[i]))}


def layout_columns(cells: Cells, a: int, b: int) -> dict[str, Any]:
    """Return between which ratios 95 % of those of two layout sessions lie."""
    both = float(cells.made.layout[a] + cells.made.layout[b])
    high = math.exp(_WIDTH * math.sqrt(both)) if math.isfinite(both) else math.inf
    source = "none" if math.isinf(high) else _source(cells, a)
    return {"floor_low": 1 / high, "floor_high": high, "floor_source": source}


def _source(cells: Cells, cell: int) -> str:
    """Return which replicate pairs a cell's layout variance is of, at the narrowest: own, storage, study."""
    logs = cells.made.logs
    pairs = (np.isfinite(logs[:, :, 0] - logs[:, :, 1]).sum(axis=-1) >= 2).any(axis=-1)
    if pairs[cell]:
        return "own"
    if pairs[cells.stacks == cells.stacks[cell]].any():
        return "storage"
    return "study" if pairs.any() else "none"


def _separated(ones: list[Any], others: list[Any]) -> bool:
    """Return whether every value of one side is above every value of the other, at each scale."""
    return all(len(a) and len(b) and a.min() > b.max() for a, b in zip(ones, others, strict=True))


def _amounts(cells: Cells, a: int, b: int, at: list[int]) -> dict[str, float]:
    """Return how much each process did on both sides, at the first scale where that differs; else NaN."""
    for scale in at:
        done = cells.amounts.get((a, scale), math.nan), cells.amounts.get((b, scale), math.nan)
        if done[0] != done[1] and not all(map(math.isnan, done)):
            return {"amount_a": done[0], "amount_b": done[1]}
    return {"amount_a": math.nan, "amount_b": math.nan}


def layouts(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> pd.DataFrame:
    """Return one row for each storage, layer, engine and operation: the ratios between which 95 % of those of
    two layout sessions lie (`low`, `high`), the freedom of that variance (`n`), and of what pairs it is.

    `source`: own, storage or study, the narrowest level that has a pair; none: no replicate was measured.
    """
    found: list[dict[str, Any]] = []
    for cells in studies(observations, excluded):
        known = int(min(cells.made.layout_freedom.max(initial=0.0), FREEDOM))
        for cell in range(len(cells.table)):
            made = layout_columns(cells, cell, cell)
            words = {name.removeprefix("floor_"): value for name, value in made.items()}
            found.append(cells.describe(cell, LAYOUT_KEYS) | words | {"n": known})
    table = pd.DataFrame(found, columns=[*LAYOUT_KEYS, "low", "high", "n", "source"])
    return table.drop_duplicates(list(LAYOUT_KEYS), ignore_index=True)


def agreement(
    observations: pd.DataFrame, excluded: Iterable[str] = (), margin: float = MARGIN
) -> pd.DataFrame:
    """Return the embedded engine against each upstream engine, on the same workload, scale and stack.

    They agree if the whole interval of the ratio lies within the margin (an equivalence test).
    """
    found: list[dict[str, Any]] = []
    for cells in studies(observations, excluded):
        names = [n for n in SAME if n not in ("engine", "engine_version", "launcher")]
        keys = cells.table.groupby([*names, "features", *STACK], dropna=False, sort=True)
        engine = cells.table["engine"].map(str).to_numpy()
        there = cells.there
        trio = [
            (a, b, s) for _, group in keys for a in group.index if engine[a] in EMBEDDED
            for b in group.index if engine[b] not in EMBEDDED for s in np.flatnonzero(there[a] & there[b])
        ]  # fmt: skip
        if not trio:
            continue
        first, second, at = (np.array(each, dtype=int) for each in zip(*trio, strict=True))
        scales = np.eye(len(cells.scales), dtype=bool)[at]
        made = contrast(cells.made, first, second, None, scales)
        judged = verdicts(made, facts_of(cells, first, second, scales), [0] * len(trio), 1.0, margin)
        for i, ((a, b, s), verdict) in enumerate(zip(trio, judged, strict=True)):
            medians = {
                f"median_{side}": summarize(cells.measured(c, int(s))).median
                for side, c in (("a", a), ("b", b))
            }
            found.append(
                cells.describe(a, [*names, *STACK, "metric"])
                | dict(zip(SCALE, cells.scales[s], strict=True))
                | {"engine_a": engine[a], "engine_b": engine[b]} | medians
                | layout_columns(cells, a, b) | of_contrast(made, i) | verdict.columns()
                | {"within_floor": verdict.outcome is Outcome.SAME, "separated": False}
            )  # fmt: skip
    return pd.DataFrame(found, columns=list(AGREEMENT_COLUMNS))
