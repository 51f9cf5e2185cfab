"""The life of a file as one number: how many a second go through all phases of a metadata workload.

A workload of many small files has a rate for each operation, and a storage may be ahead in one and behind in
another. What a program waits for is the sum: of each run, one file's share of the time of all its phases on
files (create, stat, read, rename, remove...; not those on directories). One value a run, so intervals, noise
floors and tests are made of it as of any other number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from tiercel.statistics.select import flag_list

#: The operation of the rows that are made here.
LIFE = "file-life"
_OF_FILES = "file-"
_WORKLOAD = ("origin", "experiment", "workload", "engine")


def lives(observations: pd.DataFrame) -> pd.DataFrame:
    """Return one row of operation LIFE for each run with several measured phases on files.

    Its operation_rate is one over the sum of the phases' seconds for one file. A run that lacks a phase which
    others of its workload have gives none, nor does one with a rate of zero. Flags are those of all phases.
    """
    phases = observations[
        (observations["role"] == "measured") & observations["operation"].str.startswith(_OF_FILES)
    ]
    if phases.empty:
        return observations.iloc[:0]
    wanted = phases.groupby(list(_WORKLOAD), dropna=False)["operation"].agg(frozenset)
    rows = [
        row for key, run in phases.groupby([*_WORKLOAD, "run"], dropna=False, sort=False)
        if (row := _life(run, wanted.loc[cast(Any, key)[:-1]])) is not None
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=observations.columns).astype(observations.dtypes.to_dict())


def _life(run: pd.DataFrame, wanted: frozenset[str]) -> Mapping[str, Any] | None:
    rates = run["operation_rate"].to_numpy(dtype=float)
    if len(wanted) < 2 or set(run["operation"]) != wanted or not (np.isfinite(rates) & (rates > 0)).all():
        return None
    row: dict[str, Any] = {str(k): v for k, v in run.iloc[0].items()}
    seconds = float((1 / rates).sum())
    nothing = {name: np.nan for name in row if name.startswith("latency_") or name == "bandwidth"}
    flags = list(dict.fromkeys(flag for cell in run["flags"] for flag in flag_list(cell)))
    return row | nothing | {"operation": LIFE, "operation_rate": 1 / seconds, "flags": flags}
