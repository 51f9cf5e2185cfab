"""What the traced program itself spent in calls on its files: what an expectation is held against.

An expectation that is far from what the trace measured on the same system is of something else: what was read
lay in memory, the tracer slowed each call down, or the system is not what it was when it was measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tiercel.placement.features import owners_of
from tiercel.traces import IOFrame
from tiercel.units import format_latency

#: An expectation within this factor of what the trace measured stands as it is.
FACTOR = 3.0
#: Beyond this factor it is of something else, and nothing is decided on it.
HOPELESS = 50.0
#: Share of a group's time below which a part of it decides nothing.
LITTLE = 0.1
#: Calls that reach no storage, but for locks, which have flags: their time is the tracer's.
_IDLE = "^(lseek|lseek64|fcntl|fcntl64|fstat|fstat64|__fxstat|__fxstat64)$"
#: A call that takes longer than this was no idle one.
_MOST_IDLE_S = 2e-4


def spent_on(frame: IOFrame, files: pd.DataFrame) -> pd.DataFrame | None:
    """Return seconds of each file (index as `files`) in reads, writes, opens and closes (`data`), in
    synchronisations (`sync`) and in all other calls (`metadata`); None when the trace has no durations.

    Without what the tracer adds to each call, known from calls that do nothing, and side by side as the
    program did them: the sums of its processes over how many were at work.
    """
    idle = frame.query(
        "SELECT median(duration) AS each FROM events WHERE api = 'posix' AND duration > 0 "
        f"AND flags IS NULL AND regexp_matches(function, '{_IDLE}')"
    )["each"].iloc[0]
    own = 0.0 if pd.isna(idle) else min(float(idle), _MOST_IDLE_S)
    table = frame.query(
        "SELECT file, api, CASE WHEN kind IN ('read', 'write') THEN 'data' WHEN kind = 'sync' THEN 'sync' "
        "WHEN regexp_matches(function, 'open|creat|close') THEN 'data' ELSE 'metadata' END AS part, "
        f"sum(greatest(duration - {own!r}, 0)) AS seconds, "
        "coalesce(sum(size) FILTER (kind IN ('read', 'write')), 0)::DOUBLE AS bytes FROM events "
        "WHERE file IS NOT NULL AND api IN ('posix', 'stdio', 'mpiio', 'hdf5') "
        "AND kind IN ('read', 'write', 'sync', 'metadata') GROUP BY ALL"
    )
    if table.empty or not (table["seconds"] > 0).any():
        return None
    # Calls of a library contain the system calls that they cause: those alone count, where there are some.
    below = set(table.loc[(table["api"] == "posix") & (table["bytes"] > 0), "file"])
    table = table[(table["api"] == "posix") | ~table["file"].isin(below)]
    sums = table.groupby([pd.Series(owners_of(table["file"], files.index), table.index), "part"])["seconds"]
    found = sums.sum().unstack("part").reindex(index=files.index, columns=["data", "sync", "metadata"])
    return found.fillna(0.0).div(files["processes"].astype(float), axis=0)


def hold(table: pd.DataFrame, spent: pd.DataFrame, systems: list[str], home: str) -> None:
    """Hold the expected times of each group against `spent` (index: group) on its `home`, and correct them.

    `table` has `data:S` and `sync:S` for each system S. Where the trace took more than FACTOR times as long,
    the times on all systems grow alike, which keeps what was learnt, their ratio: no gain comes from it but
    that of the larger time. Where it took less than a FACTORth, it did not reach the storage (it was cached),
    so the time is the trace's everywhere and gains nothing. Sets `held` (what was done, in words) and
    `refused` (why nothing may be decided), and `traced` and `before` (s: by the trace, and expected first).
    """
    for name in ("held", "refused"):
        table[name] = ""
    table["before"] = table[f"data:{home}"] + table[f"sync:{home}"]
    table["traced"] = spent.reindex(table.index).sum(axis=1, min_count=1)
    for number, took in spent.iterrows():
        group = str(number)
        row: Any = table.loc[group]
        whole = max(float(row["before"]), float(took.sum()))
        words = []
        for part, name in (("data", "reads and writes"), ("sync", "synchronisations")):
            expected, measured = float(row[f"{part}:{home}"]), float(took[part])
            if max(expected, measured) <= LITTLE * whole:
                continue
            said = f"{name} took {format_latency(measured)} in the trace, {format_latency(expected)} expected"
            columns = [f"{part}:{s}" for s in systems]
            if measured > HOPELESS * expected:
                table.loc[group, "refused"] = said
            elif measured > FACTOR * expected:
                table.loc[group, columns] = row[columns].astype(float) * (measured / expected)
                words.append(f"{said}: scaled")
            elif measured < expected / FACTOR:
                table.loc[group, columns] = measured
                words.append(f"{said}: they gain nothing")
        if float(took["metadata"]) > whole / 2:
            table.loc[group, "refused"] = (
                f"{format_latency(float(took['metadata']))} of {format_latency(float(took.sum()))} in the "
                "trace are in metadata calls, which are not expected here"
            )
        table.loc[group, "held"] = "; ".join(words)


def under_home(names: pd.Index, mounts: dict[str, str], home: str) -> np.ndarray:
    """Return which files lie on `home`, by the longest of `mounts` (path of each system) that holds them."""
    found = []
    for name in names:
        on = [s for s, mount in mounts.items() if str(name).startswith(mount.rstrip("/") + "/")]
        longest = max((len(mounts[s].rstrip("/")) for s in on), default=-1)
        found.append(home in [s for s in on if len(mounts[s].rstrip("/")) == longest])
    return np.array(found, dtype=bool)
