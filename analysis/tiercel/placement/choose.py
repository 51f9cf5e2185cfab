"""The choice of a system for each file group: expected times, staging and capacity in one linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.placement.estimate import Estimator
from tiercel.placement.features import NAMES
from tiercel.placement.optimise import assign
from tiercel.placement.plan import at_system
from tiercel.placement.spent import LITTLE

#: Files are copied in pieces of this size when they are staged.
_COPY = 2**20
#: Share of the time at home that is not worth moving files for.
TRIFLE = 0.005


def staging_seconds(
    model: Estimator, files: pd.DataFrame, facts: dict[str, Any], groups: pd.Series, home: str
) -> pd.DataFrame:
    """Return seconds to copy each group in and out again: shape (groups, systems)."""
    out = pd.DataFrame(0.0, index=groups.unique(), columns=model.systems)
    sums = {name: facts[name].groupby(groups).sum() for name in ("input", "output")}
    counts = {name: (facts[name] > 0).groupby(groups).sum() for name in ("input", "output")}
    for name in ("input", "output"):
        amount, count = sums[name].reindex(out.index), counts[name].reindex(out.index)
        moving = amount > 0
        if not moving.any():
            continue
        each = (amount / count.clip(lower=1))[moving]
        # Seconds of one byte.
        read = model.data_seconds(_copying(each, "RO").assign(bytes=1.0))
        write = model.data_seconds(_copying(each, "WO").assign(bytes=1.0))
        for system in model.systems:
            source, target = (home, system) if name == "input" else (system, home)
            if system != home:
                out.loc[moving, system] += amount[moving] * (read[source] + write[target])
    return out


def _copying(sizes: pd.Series, history: str) -> pd.DataFrame:
    rows = pd.DataFrame(0.0, index=sizes.index, columns=list(NAMES))
    piece = sizes.clip(upper=_COPY, lower=1)
    rows["transfer_size"] = np.log2(piece)
    rows["accesses_per_open"] = np.log2((sizes / piece).clip(lower=1))
    rows["bytes_per_open"] = rows["transfer_size"] + rows["accesses_per_open"]
    rows[history] = 1.0
    return rows


def _unknown(members: pd.DataFrame, home: str) -> float:
    """Return the share of a bundle's time at home of which nothing is known; what takes no time counts
    nothing."""
    took = np.fmax(members[f"seconds:{home}"].to_numpy(float), members["traced"].to_numpy(float))
    unknown = members["outside"].to_numpy() != ""
    return float(took[unknown].sum() / took.sum()) if took.sum() > 0 else float(unknown.any())


def _too_little(
    cost: npt.NDArray[np.float64], allowed: npt.NDArray[np.bool_], home: int
) -> npt.NDArray[np.bool_]:
    """Return which bundles stay because all of them together would gain less than TRIFLE of the time."""
    best = np.where(allowed, cost, np.inf).min(axis=1)
    gain = np.maximum(cost[:, home] - best, 0.0)
    order = np.argsort(gain)
    found = np.zeros(len(gain), dtype=bool)
    found[order] = np.cumsum(gain[order]) <= TRIFLE * cost[:, home].sum()
    answer: npt.NDArray[np.bool_] = found & (gain > 0)
    return answer


def choose(
    table: pd.DataFrame, systems: list[str], stage: pd.DataFrame, limits: dict[str, float], home: str
) -> float:
    """Set each group's system by the optimiser, and say where capacity, staging or company decided."""
    stage = stage.reindex(table.index)
    for system in systems:
        table[f"staging:{system}"] = stage[system]
    numbers = sorted(table["bundle"].unique())
    cost = np.zeros((len(numbers), len(systems)))
    allowed = np.ones_like(cost, dtype=bool)
    size = np.zeros(len(numbers))
    sure: dict[int, bool] = {}
    for row, number in enumerate(numbers):
        members = table[table["bundle"] == number]
        size[row] = members["size"].sum()
        for column, system in enumerate(systems):
            cost[row, column] = (members[f"seconds:{system}"] + members[f"staging:{system}"]).sum()
            # A group whose better system is not sure stays at home; a bundle moves when its sure members
            # gain.
            if system != home:
                allowed[row, column] = bool(
                    (members["decided"] & (members["best"] != home)).any()
                    and _unknown(members, home) <= LITTLE
                )
        sure[number] = bool(allowed[row].sum() > 1)
    too_little = _too_little(cost, allowed, systems.index(home))
    allowed[too_little] = np.array(systems) == home
    capacity = np.array([limits[s] for s in systems])
    answer = assign(cost, size, capacity, allowed)
    free = assign(cost, size, np.full(len(systems), np.inf), allowed)
    for row, number in enumerate(numbers):
        chosen, wished = systems[answer.system[row]], systems[free.system[row]]
        members = table["bundle"] == number
        took = float(table.loc[members, f"seconds:{home}"].sum())
        alone = table.loc[members, "system"]
        table.loc[members, "system"] = chosen
        for group in alone.index[alone != chosen]:
            if too_little[row]:
                why = "it would gain too little to be worth moving"
            elif wished != chosen:
                why = f"{wished} has no room left"
            elif members.sum() > 1 and chosen != home:
                why = f"kept together with {int(members.sum()) - 1} other groups, which gain more there"
            elif members.sum() > 1 and not sure[number]:
                why = "kept together with groups that must stay"
            else:
                why = "copying in and out costs more than it gains"
            by_itself = f" (alone: {table.loc[group, 'reason']})"
            if float(table.loc[group, f"seconds:{home}"]) <= LITTLE * took:
                by_itself = ""
            table.loc[group, "reason"] = f"on {chosen}: {why}{by_itself}"
    spent = pd.Series(
        at_system(table, "seconds") + at_system(table, "staging"),
        index=table.index,
    )
    at_home = table[f"seconds:{home}"]
    table["saved_seconds"] = at_home - spent
    table["gain"] = 1 - spent / at_home
    return answer.gap
