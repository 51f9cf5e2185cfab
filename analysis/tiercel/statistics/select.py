"""Which observations enter a number, and which of their columns is the number."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from tiercel.results.schema import FEATURES

#: What rows of one sample share: the configuration and the operation. The origin is always among them:
#: measured, imported and simulated numbers never enter one aggregate.
GROUP = ("origin", "configuration", "operation")

#: What two systems that are compared must share, beside the workload's features and the scale.
SAME = (
    "origin",
    "site",
    "study",
    "experiment",
    "workload",
    "operation",
    "engine",
    "engine_version",
    "launcher",
)
SCALE = ("nodes", "processes_per_node")
STACK = ("storage", "layer")

#: What imported rows may lack; 0 nodes or processes means unknown.
_MISSING = {
    **dict.fromkeys((*SAME, "configuration", "storage", "storage_label", "title", "run"), ""),
    "layer": "none",
    "twin": "a",
    "role": "measured",
    "traced": False,
    "nodes": 0,
    "processes_per_node": 0,
    "processes": 0,
}

_DATA = ("read", "write")
_FEATURES = [column.name for column in FEATURES]


def usable(observations: pd.DataFrame, excluded: Iterable[str] = (), *, twins: bool = False) -> pd.DataFrame:
    """Return what counts: measured phases of untraced runs, without rows that carry an `excluded` flag.

    The second halves of A/A pairs are left out unless `twins`.
    """
    observations = observations.fillna({k: v for k, v in _MISSING.items() if k in observations})
    keep = (observations["role"] == "measured") & ~observations["traced"].astype(bool)
    if not twins:
        keep &= observations["twin"] == "a"
    banned = set(excluded)
    if banned:
        keep &= ~observations["flags"].map(lambda flags: bool(banned & set(flag_list(flags))))
    return observations[keep.astype(bool)]


def flag_list(flags: object) -> list[str]:
    """Return the codes in a cell of the flags column; Parquet gives arrays, and nothing for none."""
    if isinstance(flags, list | tuple | np.ndarray):
        return [str(flag) for flag in flags]
    return []


def metric_of(group: pd.DataFrame) -> str:
    """Return the column that says how good a sample is: bandwidth for data, operations per second else."""
    operation = str(group["operation"].iloc[0])
    if operation in _DATA and bool(group["bandwidth"].notna().any()):
        return "bandwidth"
    return "operation_rate"


def feature_key(observations: pd.DataFrame) -> pd.Series[str]:
    """Return one word for each row that is equal for equal workload features.

    A study that was edited leaves rows of the old workload under the same name: they differ here.
    """
    present = [name for name in _FEATURES if name in observations]
    if not present:
        return pd.Series("", index=observations.index, dtype="str")
    return observations[present].astype("str").agg("|".join, axis=1)
