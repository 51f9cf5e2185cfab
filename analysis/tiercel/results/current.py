"""Which of the recorded runs still count: a changed engine, layer or workload replaces what went before."""

from __future__ import annotations

import pandas as pd

#: Of one name, origin included: a simulated run never replaces a measured one.
_SUPERSEDES = [
    "origin", "experiment", "workload", "storage", "layer", "engine", "nodes", "processes_per_node",
]  # fmt: skip


def current_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of one study without those that a later configuration of the same name replaced."""
    if runs.empty:
        return runs
    last = runs.groupby([*_SUPERSEDES, "configuration"], dropna=False)["started"].max().reset_index()
    last = last.sort_values("started").drop_duplicates(_SUPERSEDES, keep="last")
    return runs[runs["configuration"].isin(set(last["configuration"]))]
