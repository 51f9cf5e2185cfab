"""What tracing itself cost: the traced run's rate against the untraced repetitions of its configuration.

A run may have several measured phases (create, stat, remove...) with rates of their own. The traced run's
phases are taken as a fixed amount of work; what an untraced repetition would have needed for it follows from
its rates, phase by phase. So one ratio covers all phases, also where a time limit made the amounts differ.

The traced run is a single one. The interval is therefore that of a single run: from the slowest to the
fastest untraced repetition; one more of n untraced runs lies outside with probability 2 / (n + 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tiercel.results.validity import FLAGS
from tiercel.statistics.select import flag_list, metric_of
from tiercel.traced.schema import COST

NOTHING: Mapping[str, Any] = {column.name: None for column in COST}
_INVALID = frozenset(code for code, flag in FLAGS.items() if flag.severity == "invalid")


def cost_of(run: str, configuration: str, observations: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of ``schema.COST``, null where the observations do not hold both sides."""
    rows = observations[
        (observations["configuration"] == configuration)
        & (observations["role"] == "measured")
        & (observations["origin"] == "measured")
    ]
    # A repetition that did not do what was asked for is no measure of what tracing cost.
    valid = np.array([not _INVALID & set(flag_list(flags)) for flags in rows["flags"]], dtype=bool)
    traced = rows[rows["run"] == run].set_index("phase")
    others = rows[valid & ~rows["traced"].astype(bool)]
    if traced.empty:
        return dict(NOTHING)
    metrics = {phase: metric_of(traced.loc[[phase]]) for phase in traced.index}
    seconds = pd.to_numeric(traced["total_time"]).astype(float)
    metric = metrics[seconds.idxmax()] if seconds.notna().any() else ""
    phases = [
        p for p in traced.index
        if metrics[p] == metric and seconds[p] > 0 and _number(traced.at[p, metric]) > 0
    ]  # fmt: skip
    if not phases:
        return dict(NOTHING)
    weights = seconds[phases].to_numpy()
    rates = np.array([_number(traced.at[p, metric]) for p in phases])
    work = float((weights * rates).sum())
    found = []
    for _, repetition in others.groupby("run"):
        theirs = repetition.set_index("phase")[metric].reindex(phases).map(_number).to_numpy(dtype=float)
        if (theirs > 0).all():
            found.append(work / float((weights * rates / theirs).sum()))
    answer = {**NOTHING, "rate_metric": metric, "traced_rate": work / float(weights.sum())}
    if found:
        untraced = np.array(found)
        ratios = untraced / answer["traced_rate"]
        answer |= {
            "untraced_rate": float(np.median(untraced)), "untraced_runs": len(found),
            "cost": float(np.median(ratios)), "cost_low": float(ratios.min()),
            "cost_high": float(ratios.max()), "cost_coverage": (len(found) - 1) / (len(found) + 1),
        }  # fmt: skip
    return answer


def _number(value: Any) -> float:
    return float(value) if pd.notna(value) else float("nan")
