"""Utilisation and speeds of trainings over their repetitions: for the report's table and for programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tiercel.dl.engine import DLKernel
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.report.data import Results, stack_key
from tiercel.report.sections.told import told
from tiercel.statistics.summary import Summary, summarize
from tiercel.units import format_share

_KEYS = ["experiment", "workload", "stack", "storage", "layer", "engine", "origin", "nodes", "processes",
         "operation"]  # fmt: skip
_SPEEDS = ("samples_per_second", "app_throughput", "system_throughput")


@dataclass(frozen=True)
class Utilisation:
    """A training's repetitions at one scale on one stack: their rows, and what they have in common."""

    key: dict[str, Any]
    rows: pd.DataFrame
    goal: float
    """The mark of AU (0 to 1); NaN where there is none."""

    @property
    def au(self) -> pd.Series[float]:
        """AU of each repetition; empty where nothing is computed, which has none."""
        computes = (self.rows["computation_time"].fillna(0) > 0).all()
        found: pd.Series[float] = (self.rows if computes else self.rows.iloc[:0])["au"]
        return found

    @property
    def epochs(self) -> str:
        return "first" if self.key["operation"] == "train" else "later"

    @property
    def data_scale(self) -> float:
        return float(self.rows["data_scale"].median())

    def speed(self, name: str) -> Iterable[Any]:
        """Return a speed of each repetition; empty where the engine does not say (DLIO), or where computation
        hides all I/O."""
        return self.rows.get(name, ())


def trainings(results: Results) -> pd.DataFrame:
    """Return the observations of trainings that count: no twins, no traced runs."""
    rows = results.observations
    if "au" not in rows:
        return rows.iloc[:0].assign(stack="")
    chosen = rows[rows["operation"].isin(["train", "train-later"]) & (rows["twin"] == "a")]
    chosen = chosen[~chosen["traced"].astype(bool)]
    names = [stack_key(s, n) for s, n in zip(chosen["storage"], chosen["layer"], strict=True)]
    return chosen.assign(stack=names)


def utilisations(rows: pd.DataFrame) -> Iterator[Utilisation]:
    """Yield what repetitions come to, in the order of the rows."""
    for key, group in rows.groupby(_KEYS, sort=False):
        goal = float(group["au_goal"].astype(float).median())
        yield Utilisation(dict(zip(_KEYS, key, strict=True)), group, goal)


def standing(au: Iterable[Any], goal: float) -> str | None:
    """Return whether repetitions pass a mark: ``passes``, ``below``, or ``open`` where the mark lies within
    the median's interval; None without a mark."""
    found = summarize(au)
    if not found.n or math.isnan(goal):
        return None
    if found.low < goal <= found.high:
        return "open"
    return "passes" if found.low >= goal else "below"


def mark_of(au: Iterable[Any], goal: float) -> str:
    """Return the same in words: ``passes 90 %``; empty without a mark."""
    word = standing(au, goal)
    return f"{word} {format_share(goal)}" if word else ""


def idle_keys(results: Results) -> dict[tuple[str, str], list[str]]:
    """Return the keys of workload files that do nothing on dlkernel, by (experiment, workload)."""
    if DLKernel.name not in (*results.study.engines, *results.study.engines_where_found):
        return {}
    found = {
        (name, workload): DLKernel().without_effect(asked)
        for name, experiment in results.study.experiments.items()
        for workload, asked in experiment.all_workloads().items()
        if isinstance(asked, DeepLearningWorkload)
    }
    return {where: keys for where, keys in found.items() if keys}


@told.register("deep-learning")
def numbers(results: Results) -> dict[str, Any] | None:
    """Return utilisation and speeds with their intervals, and keys of the workload files without effect."""
    rows = trainings(results)
    if rows.empty:
        return None
    return {
        "trainings": [_record(one) for one in utilisations(rows)],
        "without_effect": [
            {"experiment": experiment, "workload": workload, "keys": keys}
            for (experiment, workload), keys in idle_keys(results).items()
        ],
    }


def _record(one: Utilisation) -> dict[str, Any]:
    told_of = {name: one.key[name] for name in _KEYS if name not in ("stack", "operation")}
    return {
        **told_of, "epochs": one.epochs, "au": _with_interval(summarize(one.au)), "au_goal": one.goal,
        "mark": standing(one.au, one.goal), "data_scale": one.data_scale,
        **{name: _with_interval(summarize(one.speed(name))) for name in _SPEEDS},
    }  # fmt: skip


def _with_interval(found: Summary) -> dict[str, float | int] | None:
    if not found.n:
        return None
    # One repetition has no interval.
    low, high = (found.low, found.high) if found.n > 1 else (math.nan, math.nan)
    return {"median": found.median, "low": low, "high": high, "n": found.n}
