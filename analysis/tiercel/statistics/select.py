"""Which observations enter a number, and which of their columns is the number."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import pandas as pd

from tiercel.results.schema import AMOUNTS, FEATURES

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
    "look": 0,
    "role": "measured",
    "traced": False,
    "nodes": 0,
    "processes_per_node": 0,
    "processes": 0,
}

#: How much data or how many items is no feature here.
FEATURE_NAMES = tuple(column.name for column in FEATURES if column.name not in AMOUNTS)

#: Properties of a workload whose cost is asked for, and the level that the others are held against.
FACTORS = {"pattern": "sequential", "fsync": "none", "layout": "file-per-process", "direct": "False"}

#: Columns that may say how good a row is.
METRICS = ("bandwidth", "operation_rate", "samples_per_second")

#: Columns that any of the functions here needs. The others only slow down every selection of rows.
_NEEDED = tuple(
    dict.fromkeys(
        (*SAME, *GROUP, *STACK, *SCALE, *AMOUNTS, "phase_time", *FACTORS, "processes", "medium",
         "title", "storage_label", "run", "repetition", "twin", "look", "access", "began", "bandwidth",
         "operation_rate", "samples_per_second", "latency_p50", "latency_p99",
         "behind_share", "flags")
    )
)  # fmt: skip
_NUMBERS = (
    "began",
    "bandwidth",
    "operation_rate",
    "samples_per_second",
    "latency_p50",
    "latency_p99",
    "repetition",
    "look",
    "phase_time",
)
_DATA = ("read", "write")
#: What jobs that compete got, each and together.
_JOBS = ("job-", "all-jobs")
TRAINING = ("train", "train-later", "evaluate")


def usable(
    observations: pd.DataFrame,
    excluded: Iterable[str] = (),
    *,
    twins: bool = False,
    features: bool = False,
) -> pd.DataFrame:
    """Return what counts: measured phases of untraced runs, without rows that carry an `excluded` flag.

    The second halves of A/A pairs are left out unless `twins`. Only the columns that the statistics need are
    returned, and `features`: a word that is equal for equal workload features (and the features, if wanted).
    """
    for name, absent in (
        ("look", 0),
        ("phase_time", np.nan),
        ("behind_share", np.nan),
    ):  # a table of numbers from elsewhere
        if name not in observations:
            observations = observations.assign(**{name: absent})
    observations = observations.fillna({k: v for k, v in _MISSING.items() if k in observations})
    keep = (observations["role"] == "measured") & ~observations["traced"].astype(bool)
    if not twins:
        keep &= observations["twin"] == "a"
    banned = set(excluded)
    if banned:
        keep &= ~observations["flags"].map(lambda flags: bool(banned & set(flag_list(flags))))
    kept = observations[keep.astype(bool)]
    names = dict.fromkeys((*_NEEDED, *(FEATURE_NAMES if features else ())))
    chosen = kept[list(names)].assign(features=feature_key(kept))
    # Plain objects and numbers: selections from them are several times faster than from pandas' own types.
    plain = dict.fromkeys(_NUMBERS, "float64") | dict.fromkeys((*SCALE, "processes"), "int64")
    return chosen.astype({name: plain.get(str(name), "object") for name in chosen})


def flag_list(flags: object) -> list[str]:
    """Return the codes in a cell of the flags column; Parquet gives arrays, and nothing for none."""
    if isinstance(flags, list | tuple | np.ndarray):
        return [str(flag) for flag in flags]
    return []


def metric_of(group: pd.DataFrame) -> str:
    """Return the column that says how good a row is: bandwidth of data and of what has no rate, samples a
    second of training, operations per second else.

    Jobs that compete have both where a server counts them, and on plain storage bandwidth alone.
    """
    return metric_for(
        str(group["operation"].iloc[0]), {name for name in METRICS if bool(group[name].notna().any())}
    )


def metric_for(operation: str, known: Collection[str]) -> str:
    """Return the metric (`metric_of`) of an operation; `known` are the columns that have any value."""
    if operation in TRAINING and "samples_per_second" in known:
        return "samples_per_second"
    if (is_data(operation) or "operation_rate" not in known) and "bandwidth" in known:
        return "bandwidth"
    return "operation_rate"


def is_data(operation: str) -> bool:
    """Return whether an operation moves data, so that its bandwidth counts."""
    return operation in _DATA or operation.startswith(_JOBS)


def feature_key(observations: pd.DataFrame) -> pd.Series[str]:
    """Return one word for each row that is equal for equal workload features.

    A study that was edited leaves rows of the old workload under the same name: they differ here.
    """
    present = [observations[name] for name in FEATURE_NAMES]
    words = ["|".join(map(str, row)) for row in zip(*present, strict=True)]
    return pd.Series(words, index=observations.index, dtype="str")


def newest(part: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the configuration that ran last: an older one under the same name is superseded."""
    if part["configuration"].nunique() < 2:
        return part
    latest = part.groupby("configuration")["began"].max().fillna(0).idxmax()
    return part[part["configuration"] == latest]


def same_amount(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """Return whether each process did as much in both; or as much as takes the same time, where a study
    aims at one."""
    if all(part["phase_time"].notna().all() for part in (a, b)):
        return bool(a["phase_time"].iloc[0] == b["phase_time"].iloc[0])
    return all(str(a[name].iloc[0]) == str(b[name].iloc[0]) for name in AMOUNTS)


def scales(part: pd.DataFrame) -> dict[tuple[int, int], pd.DataFrame]:
    """Return the newest rows at each (nodes, processes per node), in ascending order."""
    found = {}
    for _, rows in part.groupby(list(SCALE), sort=True):
        nodes, processes = (int(rows[name].iloc[0]) for name in SCALE)
        found[nodes, processes] = newest(rows)
    return found
