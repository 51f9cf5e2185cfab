"""Tables of summaries and comparisons, made from observations.

Every function takes the whole table of observations and leaves out what must not be counted:
phases that only prepare, traced runs, and (but for the noise floor) the twins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from tiercel.statistics import placements
from tiercel.statistics.comparison import (
    ALPHA,
    VERDICT_COLUMNS,
    Comparison,
    compare_placed,
    compare_scales,
    judge,
)
from tiercel.statistics.effort import repetitions_needed
from tiercel.statistics.kinds import kinds_changed
from tiercel.statistics.looks import share
from tiercel.statistics.noise import Floor, floors, lookup, widest
from tiercel.statistics.ranking import same
from tiercel.statistics.rounds import compared, later, met, unflattened
from tiercel.statistics.select import (
    GROUP,
    SAME,
    SCALE,
    STACK,
    flag_list,
    metric_of,
    newest,
    same_amount,
    scales,
    usable,
)
from tiercel.statistics.summary import finite, summarize
from tiercel.statistics.verdict import MARGIN
from tiercel.statistics.wander import Wander, wanders

#: Engines of tiercel itself; the others are upstream programs.
EMBEDDED = ("iokernel", "dlkernel")

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
    "needed",
    "margin",
    "runs",
)
AGREEMENT_COLUMNS = (
    "origin",
    "site",
    "study",
    "experiment",
    "workload",
    "operation",
    *STACK,
    *SCALE,
    "engine_a",
    "engine_b",
    "metric",
    "median_a",
    "median_b",
    "n_a",
    "n_b",
    "ratio",
    "low",
    "high",
    "p_value",
    "floor_low",
    "floor_high",
    "within_floor",
)


def summary_table(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each configuration and operation.

    `flags` maps each code to the share of the rows that carry it; `outliers` lists the values beyond
    Tukey's fences (1.5 times the interquartile range), which are in all the numbers all the same.
    """
    rows = []
    for key, group in usable(observations).groupby(list(GROUP), dropna=False, sort=False):
        metric = metric_of(group)
        s = summarize(group[metric])
        first = group.iloc[0]
        rows.append(
            dict(zip(GROUP, key, strict=True))
            | {name: first[name] for name in _DESCRIBES}
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
                "operation_rate": summarize(group["operation_rate"]).median,
                "latency_p50": summarize(group["latency_p50"]).median,
                "latency_p99": summarize(group["latency_p99"]).median,
                "behind_share": summarize(group["behind_share"]).median,
                "flags": shares(group["flags"]),
                "outliers": outliers(group[metric]),
                "values": finite(group[metric]).tolist(),
                "runs": list(group["run"]),
            }
        )
    table = pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
    order = ["origin", "experiment", "workload", "operation", *SCALE, "storage", "layer", "engine"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def shares(flags: pd.Series[Any]) -> dict[str, float]:
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
class _Row:
    """A comparison and the columns that say what was compared."""

    words: dict[str, Any]
    comparison: Comparison
    needed: int | None = None
    """How many more repetitions on each side, at each scale, would decide it; None where they would not."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What is compared, the same at every look."""
        return tuple(
            str(v) for name, v in self.words.items() if not name.startswith("median") and name != "runs"
        )

    def decided(self, then: Comparison, since: Comparison | None) -> _Row:
        """Return the row with what an earlier look claimed.

        Undecided where all rounds together, or by the rank test those `since`, lie on the other side:
        something has changed between.
        """
        opposite = since is not None and since.p_value < ALPHA and (since.ratio > 1) != (then.ratio > 1)
        if opposite or (self.comparison.ratio > 1) != (then.ratio > 1):
            reason = f"an earlier look claimed {then.verdict}, and what was measured since says the opposite"
            return _Row(self.words, replace(self.comparison, verdict="undecided", reason=reason))
        kept = replace(self.comparison, verdict=then.verdict, reason="", p_corrected=then.p_corrected)
        return _Row(self.words, kept)

    def columns(self, margin: float) -> dict[str, Any]:
        needed = math.nan if self.needed is None else float(self.needed)
        return self.words | self.comparison.columns(margin) | {"needed": needed, "margin": margin}


def comparisons(
    observations: pd.DataFrame,
    excluded: Iterable[str] = (),
    spread_table: pd.DataFrame | None = None,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Return stack against stack for each workload and operation: storages, and layers on a storage.

    Rows of scope `scale` compare at one scale; rows of scope `all` over all scales that both stacks
    have (only where there are several). For Hochberg's correction all answers of a study by one engine are a
    family: those over all scales, with those of workloads that have a single one; the scales of the others
    are a second family. A study that was measured further is judged at each look by what was there then.
    `needed`: how many more repetitions on each side, at each scale, would decide an answer (NaN: it is
    decided, or they would not). Observations with an `excluded` flag do not count; `spread_table` saves
    making the spreads (:mod:`tiercel.statistics.placements`) again. Within `margin` two are the same
    (`ranking.same`).
    """
    excluded = tuple(excluded)
    rows = compared(observations, excluded, twins=True)
    spread_of = placements.lookup(
        placements.spreads(observations, excluded) if spread_table is None else spread_table
    )
    claimed: dict[tuple[Any, ...], tuple[int, Comparison]] = {}
    found: list[_Row] = []
    looks = sorted({0, *map(int, rows["look"])})
    for look in looks:
        then = rows, spread_of
        if look != looks[-1]:  # what rounds had in common, too, is what was seen of it then
            measured = observations[observations["look"].fillna(0) <= look]
            then = (
                compared(measured, excluded, twins=True),
                placements.lookup(placements.spreads(measured, excluded)),
            )
        found = _at_look(*then, look, margin)
        for row in found:
            if row.comparison.verdict != "undecided":
                claimed.setdefault(row.key, (look, row.comparison))
    # What one look claimed stays claimed, with the p that it had then.
    since = {
        (look, row.key): row.comparison
        for look in {look for look, _ in claimed.values()} - {looks[-1]}
        for row in _at_look(rows[rows["look"] > look], spread_of, looks[-1], margin)
    }

    def final(row: _Row) -> _Row:
        if row.key not in claimed:
            return row
        look, then = claimed[row.key]
        return row.decided(then, since.get((look, row.key)))

    table = [final(row).columns(margin) for row in found]
    return pd.DataFrame(table, columns=list(COMPARISON_COLUMNS))


def _at_look(
    rows: pd.DataFrame, spread_of: Callable[[Mapping[str, Any]], Floor], look: int, margin: float
) -> list[_Row]:
    """Return the comparisons of all that was measured up to one look, judged by what it may claim."""
    found: list[_Row] = []
    # The halves of A/A pairs ran in the same round: what it did to a storage shows in both.
    firsts = rows[rows["twin"] == "a"]
    changes = wanders(rows), kinds_changed(firsts)
    rows = firsts
    families: dict[tuple[Any, ...], list[int]] = {}

    def note(row: _Row, *family: Any) -> None:
        families.setdefault(family, []).append(len(found))
        found.append(row)

    for key, group in rows.groupby([*SAME, "features"], dropna=False, sort=True):
        words = dict(zip(SAME, key, strict=False))
        of = words | {"features": key[-1]}
        study = tuple(words[name] for name in ("origin", "site", "study", "engine"))
        for one, other in _pairs(group):
            at_scales = _paired_scales(one, other)
            if not at_scales:
                continue
            spread = placements.together(*(spread_of(words | _stack(side)) for side in (one, other)))
            # Both see a change of the whole storage: the larger one, not their sum.
            changed = max(
                (change(of, _stack(one), _stack(other)) for change in changes), key=lambda w: w.variance
            )
            names = words | _sides(one, other) | {"metric": metric_of(group)}
            several = len(at_scales) > 1
            for scale, a, b in at_scales:
                at: dict[str, Any] = dict(zip(SCALE, scale, strict=True)) | {"scope": "scale"}
                note(
                    _compared(names | at, [(a, b)], spread, changed), *study, "a part" if several else "whole"
                )
            if several:
                at = {"nodes": pd.NA, "processes_per_node": pd.NA, "scope": "all"}
                note(
                    _compared(names | at, [(a, b) for _, a, b in at_scales], spread, changed), *study, "whole"
                )
    for family, members in families.items():
        judged = judge([found[i].comparison for i in members], share(look))
        left = [
            made.verdict == "undecided" and not same(made.columns() | {"margin": margin}) for made in judged
        ]
        for place, made, undecided in zip(members, judged, left, strict=True):
            needed = None
            if undecided and family[-1] == "whole" and not made.later:
                needed = repetitions_needed(made.parts, sum(left), share(look + 1), margin)
            found[place] = _Row(found[place].words, made, needed)
    return found


def agreement(
    observations: pd.DataFrame, excluded: Iterable[str] = (), floor_table: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the embedded engine against each upstream engine, on the same workload, scale and stack.

    `within_floor`: the ratio itself lies in the A/A noise floor of the two engines.
    """
    excluded = tuple(excluded)
    rows = usable(observations, excluded)
    names = set(rows["engine"].astype(str))
    if not names & set(EMBEDDED) or not names - set(EMBEDDED):
        return pd.DataFrame([], columns=list(AGREEMENT_COLUMNS))
    floor_of = lookup(floors(observations, excluded) if floor_table is None else floor_table)
    same = ["origin", "site", "study", "experiment", "workload", "operation", *STACK, *SCALE]
    found = []
    for key, group in rows.groupby([*same, "features"], dropna=False, sort=True):
        words = dict(zip(same, key, strict=False))
        engines = {str(name): newest(part) for name, part in group.groupby("engine")}
        for a in sorted(set(engines) & set(EMBEDDED)):
            for b in sorted(set(engines) - set(EMBEDDED)):
                floor = widest(floor_of(words | {"engine": engine}) for engine in (a, b))
                pair = (engines[a], engines[b])
                metric = metric_of(group)
                values = (pair[0][metric], pair[1][metric])
                row = words | {"metric": metric} | _medians([pair], [values])
                row |= compare_scales([values], floor).columns() | {"engine_a": a, "engine_b": b}
                row["within_floor"] = floor.known and bool(floor.low <= row["ratio"] <= floor.high)
                found.append(row)
    return pd.DataFrame(found, columns=list(AGREEMENT_COLUMNS))


def _pairs(group: pd.DataFrame) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Return the pairs of stacks that differ in the storage or in the layer, not in both."""
    stacks = [part for _, part in group.groupby(list(STACK), dropna=False, sort=True)]
    return [
        (a, b)
        for a, b in combinations(stacks, 2)
        if (a["storage"].iloc[0] == b["storage"].iloc[0]) != (a["layer"].iloc[0] == b["layer"].iloc[0])
    ]


def _stack(part: pd.DataFrame) -> dict[str, object]:
    return {name: part[name].iloc[0] for name in STACK}


def _sides(a: pd.DataFrame, b: pd.DataFrame) -> dict[str, object]:
    return {f"{name}_{side}": part[name].iloc[0] for name in STACK for side, part in (("a", a), ("b", b))}


def _paired_scales(
    a: pd.DataFrame, b: pd.DataFrame
) -> list[tuple[tuple[int, int], pd.DataFrame, pd.DataFrame]]:
    mine, theirs = scales(a), scales(b)
    both = [
        (key, *met(mine[key], theirs[key])) for key in mine
        if key in theirs and same_amount(mine[key], theirs[key])
    ]  # fmt: skip
    # Of a study that goes on, or after failures, each side may have rounds that the other lacks alone.
    return [(key, one, other) for key, one, other in both if len(one) and len(other)]


def _compared(
    words: dict[str, Any], strata: list[tuple[pd.DataFrame, pd.DataFrame]], spread: Floor, changed: Wander
) -> _Row:
    metric = words["metric"]
    words = words | amounts(strata)
    measured = [(unflattened(a, metric), unflattened(b, metric)) for a, b in strata]
    made = compare_placed([(a[metric], b[metric]) for a, b in strata], spread, measured, changed)
    made = replace(made, later=max(later(a, b) for a, b in strata))
    return _Row(words | _medians(strata, measured), made)


def amounts(strata: list[tuple[pd.DataFrame, pd.DataFrame]]) -> dict[str, float]:
    """Return how much each process did on both sides of a comparison (B, or items), where that differs at
    some scale; of several scales at the first of these. NaN where both did the same."""
    for pair in strata:
        done = [(part["bytes_per_process"].iloc[0], part["items_per_process"].iloc[0]) for part in pair]
        if str(done[0]) != str(done[1]):
            a, b = (
                float(size) if pd.notna(size) else float(items) if pd.notna(items) else math.nan
                for size, items in done
            )
            return {"amount_a": a, "amount_b": b}
    return {"amount_a": math.nan, "amount_b": math.nan}


def _medians(
    strata: list[tuple[pd.DataFrame, pd.DataFrame]], measured: Sequence[tuple[Iterable[Any], Iterable[Any]]]
) -> dict[str, Any]:
    """Return the medians of a comparison at one scale, and the runs of any."""
    a, b = (summarize(side).median for side in measured[0]) if len(strata) == 1 else (np.nan, np.nan)
    return {
        "median_a": a,
        "median_b": b,
        "runs": [run for pair in strata for side in pair for run in side["run"]],
    }
