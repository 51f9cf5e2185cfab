"""A year of Cori: Lustre against DataWarp, measured by others. TIERCEL_SHARED_DATA names the folder that
holds it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tiercel.placement.dataset import numbers_of
from tiercel.placement.score import best_of, differ, score

NAME = "tokio-cori/cori-summaries_2017-02-14-2018-02-15.csv.gz"
FOLDER = os.environ.get("TIERCEL_SHARED_DATA", "")
pytestmark = pytest.mark.skipif(
    not FOLDER or not (Path(FOLDER) / NAME).exists(),
    reason=f"set TIERCEL_SHARED_DATA to the folder with {NAME} (NERSC/tokio-abcutils)",
)


def halves() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the datasets of the first and the second half of the year: one row for each benchmark."""
    jobs = pd.read_csv(Path(FOLDER) / NAME, low_memory=False)
    written = jobs["darshan_tot_bytes_written_posix"] > jobs["darshan_tot_bytes_read_posix"]
    place = jobs["darshan_biggest_write_fs"].where(written, jobs["darshan_biggest_read_fs"]).astype(str)
    jobs["system"] = np.where(
        place.str.contains("bb|datawarp|/var/opt/cray/dws", case=False), "datawarp", "lustre"
    )
    program = jobs["darshan_app"].str.split("/").str[-2:].str.join("/")
    files = (jobs["darshan_ave_opens_posix"] / jobs["darshan_nprocs"]).round(1).astype(str)
    jobs["key"] = (
        program
        + " "
        + np.where(written, "write", "read")
        + " "
        + jobs["darshan_nprocs"].astype(str)
        + " "
        + files
    )
    jobs = jobs[jobs["darshan_agg_perf_by_slowest_posix"] > 0]
    middle = (
        jobs["_datetime_start"].median()
        if jobs["_datetime_start"].dtype != object
        else sorted(jobs["_datetime_start"])[len(jobs) // 2]
    )
    found = []
    for part in (jobs[jobs["_datetime_start"] < middle], jobs[jobs["_datetime_start"] >= middle]):
        groups = part.groupby(["key", "system"])["darshan_agg_perf_by_slowest_posix"]
        logs = groups.apply(lambda v: np.log2(v.to_numpy(dtype=float))).unstack("system")
        found.append(logs[logs.map(lambda v: isinstance(v, np.ndarray) and len(v) >= 5).all(axis=1)])
    both = found[0].index.intersection(found[1].index)
    tables = []
    for logs in found:
        table = pd.concat([numbers_of(logs.loc[both, s], s) for s in logs.columns], axis=1)
        table.attrs["systems"] = list(logs.columns)
        tables.append(table)
    return tables[0], tables[1]


def test_what_was_best_in_the_first_half_of_the_year_is_so_in_the_second() -> None:
    first, second = halves()
    assert set(first.attrs["systems"]) == {"datawarp", "lustre"}
    assert len(first) >= 5
    found = score(second, best_of(first), differ(first) & differ(second))
    assert found.differing >= 3
    # 11 of the 13 benchmarks that differ keep their best system over the year; the other two differ little.
    assert found.accuracy_where_differ >= 0.8
    assert found.regret_where_differ <= 0.02
