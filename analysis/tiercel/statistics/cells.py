"""Observations of one study as arrays: what :mod:`tiercel.statistics.model` is applied to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.statistics.model import Fit, Floats, Ints, Shape, fit, stack_drift
from tiercel.statistics.select import FEATURE_NAMES, METRICS, SAME, SCALE, STACK, metric_for, usable

#: The parts of a study that ran together.
TOGETHER = ("origin", "site", "study")
_CELL = (*SAME, "features", *STACK)
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """Every operation of every workload on every stack of one study."""

    table: pd.DataFrame
    """A row for each cell: the columns of the workload and the stack, `metric`, `group` (the workload)."""
    scales: list[tuple[int, int]]
    made: Fit
    values: Floats
    """Rates as measured: cell, scale, replicate, round."""
    zero: Mask
    """A rate is not above zero: cell, scale."""
    amount: Ints
    """Equal for equal work of a process: cell, scale."""
    amounts: dict[tuple[int, int], float]
    began: Floats
    """Of the first and the last run: two, cell, scale. NaN where nobody recorded it."""
    run: dict[tuple[int, int], list[str]]

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of `table`: a value of an array costs a hundredth of one of a table."""
        return {str(name): self.table[name].to_numpy() for name in self.table}

    def describe(self, cell: int, names: Iterable[str]) -> dict[str, Any]:
        """Return a cell's values of these columns."""
        return {name: self.columns[name][cell] for name in names}

    @cached_property
    def stacks(self) -> Ints:
        return self.made.shape.stack

    def drift(self, first: Ints, second: Ints) -> list[Floats]:
        """Return the variance of each pair by round drift between its stacks, and its freedom."""
        found = np.zeros((2, len(first)))
        found[1] = 1.0
        pairs = np.stack([self.stacks[first], self.stacks[second]])
        for one, other in np.unique(pairs, axis=1).T:
            mine = (pairs[0] == one) & (pairs[1] == other)
            found[:, mine] = np.array(stack_drift(self.made, int(one), int(other)))[:, None]
        return list(found)

    def measured(self, cell: int, scale: int) -> Floats:
        """Return the rates of replicate A at a scale."""
        values = self.values[cell, scale, 0]
        found: Floats = values[np.isfinite(values)]
        return found

    @cached_property
    def there(self) -> Mask:
        """Where replicate A has rates: cell, scale."""
        return np.asarray(np.isfinite(self.made.logs[:, :, 0]).any(axis=-1))

    def runs(self, cells: Iterable[int], scales: Iterable[int]) -> list[str]:
        cells = list(cells)
        return [run for scale in scales for cell in cells for run in self.run.get((cell, scale), [])]


def studies(observations: pd.DataFrame, excluded: Iterable[str] = ()) -> Iterator[Cells]:
    """Yield the cells of each study in the table. Rows with an `excluded` flag do not count."""
    rows = usable(observations, excluded, twins=True, features=True)
    for _, part in rows.groupby(list(TOGETHER), dropna=False, sort=True):
        yield cells_of(part)


def cells_of(rows: pd.DataFrame) -> Cells:
    """Return the cells of one study's rows (`select.usable` with replicates)."""
    rows = _newest(rows.reset_index(drop=True))
    rows["_cell"] = rows.groupby(list(_CELL), dropna=False, sort=True).ngroup()
    table = rows.drop_duplicates("_cell").sort_values("_cell").reset_index(drop=True)
    table["group"] = table.groupby([*SAME, "features"], dropna=False, sort=True).ngroup()
    group = table["group"].to_numpy()[rows["_cell"].to_numpy()]
    table["metric"] = _metrics(table, rows, group)
    metric = table["metric"].to_numpy()[rows["_cell"].to_numpy()]
    value = np.select([metric == name for name in METRICS], [rows[name] for name in METRICS], math.nan)
    value = value.astype(float)
    scale, scales = pd.factorize(pd.MultiIndex.from_frame(rows[list(SCALE)]), sort=True)
    cell, second = rows["_cell"].to_numpy(), (rows["twin"] == "b").to_numpy().astype(int)
    counted = rows.groupby(["_cell", *SCALE, "twin"], dropna=False).cumcount()
    at = rows["repetition"].where(rows["repetition"].notna() & (rows["origin"] != "imported"), counted)
    labels, place = np.unique(at.to_numpy(dtype=float), return_inverse=True)
    shape = (len(table), len(scales), 2, len(labels))
    values = np.full(shape, math.nan)
    values[cell, scale, second, place] = np.where(np.isfinite(value), value, math.nan)
    planned = np.ones((shape[0], shape[1], shape[3]), dtype=bool)
    planned[cell, scale, place] &= rows["look"].to_numpy(dtype=float) == 0
    zero = np.zeros(shape[:2], dtype=bool)
    np.logical_or.at(zero, (cell, scale), (value <= 0) & (second == 0))
    amount, size = np.zeros(shape[:2], dtype=np.int64), {}
    amount[cell, scale] = pd.factorize(_work(rows))[0]
    done = rows["bytes_per_process"].where(rows["bytes_per_process"].notna(), rows["items_per_process"])
    for c, s, most in zip(cell, scale, pd.to_numeric(done, errors="coerce"), strict=True):
        size[int(c), int(s)] = float(most)
    began = np.full((2, *shape[:2]), math.nan)
    first = rows[(rows["twin"] == "a") & (rows["origin"] == "measured")]
    spans = first.assign(_scale=scale[first.index]).groupby(["_cell", "_scale"])["began"].agg(["min", "max"])
    if len(spans):
        where = spans.index.get_level_values(0).to_numpy(), spans.index.get_level_values(1).to_numpy()
        began[:, where[0], where[1]] = spans.to_numpy(dtype=float).T
    run: dict[tuple[int, int], list[str]] = {}
    of_a = second == 0
    for c, s, name in zip(cell[of_a], scale[of_a], rows["run"].to_numpy()[of_a], strict=True):
        run.setdefault((int(c), int(s)), []).append(name)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(values > 0, np.log(np.where(values > 0, values, 1.0)), math.nan)
    stack, operation, runs = (
        table.groupby(list(names), dropna=False, sort=True).ngroup().to_numpy().astype(np.int64)
        for names in (STACK, ("operation",), [k for k in _CELL if k != "operation"])
    )
    shape_of = Shape(stack, operation, runs)
    known = [(int(n), int(p)) for n, p in scales]
    return Cells(table, known, fit(logs, shape_of, planned), values, zero, amount, size, began, run)


def _newest(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, of several configurations under one name, the rows of the one that ran last."""
    key = [*_CELL, *SCALE]
    several = rows.groupby(key, dropna=False)["configuration"].transform("nunique") > 1
    if not several.any():
        return rows
    last = rows.groupby([*key, "configuration"], dropna=False)["began"].transform("max").fillna(0)
    newest = last == last.groupby([rows[k].astype(str) for k in key]).transform("max")
    return rows[~several | newest].reset_index(drop=True)


def _metrics(table: pd.DataFrame, rows: pd.DataFrame, group: Ints) -> list[str]:
    """Return each cell's metric (`select.metric_of`), the same for all stacks of a workload."""
    has = {}
    for name in METRICS:
        found = np.zeros(int(group.max()) + 1, dtype=bool)
        np.logical_or.at(found, group, rows[name].notna().to_numpy())
        has[name] = found
    of_cell = zip(table["operation"].map(str), table["group"], strict=True)
    return [metric_for(operation, {name for name in METRICS if has[name][g]}) for operation, g in of_cell]


def _work(rows: pd.DataFrame) -> pd.Series[str]:
    """Return a word that is equal for equal work of a process, or for the time that a study aims at."""
    work = rows["bytes_per_process"].map(str) + "|" + rows["items_per_process"].map(str)
    return work.where(rows["phase_time"].isna(), "t" + rows["phase_time"].map(str))


def without(table: pd.DataFrame, factor: str) -> pd.Series[str]:
    """Return the features of each cell but for one."""
    present = [table[name].map(str) for name in FEATURE_NAMES if name != factor]
    words = ["|".join(row) for row in zip(*present, strict=True)]
    return pd.Series(words, index=table.index, dtype="str")
