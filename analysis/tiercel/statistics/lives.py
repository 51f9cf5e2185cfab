"""The life of a file as one number: how many a second go through all phases of a metadata workload.

A workload of many small files has a rate for each operation, and a storage may be ahead in one and behind in
another. What a program waits for is the sum: of each run, one file's share of the time of all its phases on
files (create, stat, read, rename, remove...; not those on directories). One value a run, so intervals, noise
floors and tests are made of it as of any other number.
"""

from __future__ import annotations

from typing import Any

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
    of_run, of_workload = [*_WORKLOAD, "run"], list(_WORKLOAD)
    rates = phases["operation_rate"].astype("float64")
    phases = phases.assign(seconds=(1 / rates).where(rates > 0))
    runs = phases.groupby(of_run, dropna=False, sort=False)
    wanted = phases.groupby(of_workload, dropna=False)["operation"].transform("nunique")
    # One row of each phase that its workload has, and a rate in each.
    whole = (wanted > 1) & (runs["operation"].transform("nunique") == wanted)
    whole &= (runs["seconds"].transform("size") == wanted) & (runs["seconds"].transform("count") == wanted)
    phases = phases.assign(operation_rate=1 / runs["seconds"].transform("sum"))[whole]
    if phases.empty:
        return observations.iloc[:0]
    flags: dict[tuple[Any, ...], list[str]] = {}
    for key, cell in zip(zip(*(phases[k] for k in of_run), strict=True), phases["flags"], strict=True):
        found = flags.setdefault(key, [])
        found += [flag for flag in flag_list(cell) if flag not in found]
    made = phases.drop_duplicates(of_run)
    names = [str(name) for name in made]
    nothing = {name: np.nan for name in names if name.startswith("latency_") or name == "bandwidth"}
    of_each = [flags[key] for key in zip(*(made[k] for k in of_run), strict=True)]
    made = made.assign(**nothing, operation=LIFE, flags=pd.Series(of_each, index=made.index, dtype=object))
    return made[list(observations.columns)].astype(observations.dtypes.to_dict())
