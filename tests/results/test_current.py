"""Runs of an older engine are kept, and do not count beside those of the newer one."""

from __future__ import annotations

import pandas as pd

from tiercel.results.current import current_runs


def test_a_newer_engine_replaces_the_older_one() -> None:
    same = {"origin": "measured", "experiment": "e", "workload": "w", "storage": "s", "layer": "none",
            "engine": "iokernel", "nodes": 1, "processes_per_node": 2}  # fmt: skip
    rows = [
        {**same, "configuration": "old", "started": 1.0},
        {**same, "configuration": "old", "started": 2.0},
        {**same, "configuration": "new", "started": 3.0},
        {**same, "storage": "t", "configuration": "other", "started": 0.0},  # replaced by nobody
        {**same, "origin": "simulated", "configuration": "sim", "started": 9.0},  # replaces no measured one
    ]
    assert list(current_runs(pd.DataFrame(rows))["configuration"]) == ["new", "other", "sim"]
    assert current_runs(pd.DataFrame(rows[:0])).empty
