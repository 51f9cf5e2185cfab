"""HDF5 as an interface: in a sweep's features, in those of a traced file, and where a sweep lacks it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tiercel.placement.dataset import sweep_of, vectors
from tiercel.placement.features import files_of, whole_files
from tiercel.placement.model import PlacementModel
from tiercel.placement.nearest import _apart, _far
from tiercel.traces import IOFrame
from tiercel.traces.store import ParquetWriter

from .synthetic import observations, saved


def of_two_interfaces() -> pd.DataFrame:
    """A sweep of POSIX, and the same as HDF5: by forked processes and by MPI."""
    rows = observations(size=100, repetitions=2)
    forked = rows.assign(api="hdf5", workload=rows["workload"] + "-h5")
    by_mpi = forked.assign(workload=rows["workload"] + "-h5mpi", launcher="mpiexec")
    return pd.concat([rows, forked, by_mpi], ignore_index=True)


def test_a_sweep_tells_hdf5_and_whether_mpi_io_is_below_it() -> None:
    table, _ = sweep_of(of_two_interfaces())
    kinds = vectors(table)[["hdf5", "mpiio"]].groupby(
        table["workload"].str.extract(r"-(h5\w*)$")[0].fillna("")
    )
    assert kinds.first().T.to_dict() == {
        "": {"hdf5": 0.0, "mpiio": 0.0},
        "h5": {"hdf5": 1.0, "mpiio": 0.0},
        "h5mpi": {"hdf5": 1.0, "mpiio": 1.0},
    }


def traced(folder: Path, below: bool) -> IOFrame:
    """16 writes of 1 MiB of one file through HDF5, as Recorder tells them; `below` with what they cause."""
    calls = [("H5Fcreate", "hdf5", "metadata", None)]
    calls += [("MPI_File_open", "mpiio", "metadata", None)] if below else []
    for _ in range(16):
        calls.append(("H5Dwrite", "hdf5", "write", 1 << 20))
        if below:
            calls += [
                ("MPI_File_write_at_all", "mpiio", "write", 1 << 20),
                ("pwrite", "posix", "write", 1 << 20),
            ]
    writer = ParquetWriter(folder / "events.parquet")
    offsets = np.cumsum([size if api == "posix" else 0 for _, api, _, size in calls]) - (1 << 20)
    writer.write(
        {
            "time": [0.001 * i for i in range(len(calls))], "duration": [0.0005] * len(calls),
            "rank": [0] * len(calls), "file": ["/s/out.h5"] * len(calls),
            "function": [c[0] for c in calls], "api": [c[1] for c in calls], "kind": [c[2] for c in calls],
            "size": [c[3] for c in calls],
            "offset": [int(o) if c[1] == "posix" else None for c, o in zip(calls, offsets, strict=True)],
        }
    )  # fmt: skip
    writer.close()
    return IOFrame.from_parquet(folder / "events.parquet")


@pytest.mark.parametrize("below", [True, False])
def test_a_file_behind_hdf5_keeps_it_as_its_interface(tmp_path: Path, below: bool) -> None:
    row = whole_files(files_of(traced(tmp_path, below))).loc["/s/out.h5"]
    assert (row["hdf5"], row["mpiio"], row["collective"]) == (1.0, float(below), float(below))
    assert (2 ** row["transfer_size"], 2 ** row["accesses_per_open"]) == (1 << 20, 16)


def test_without_hdf5_in_the_sweep_a_file_behind_it_is_what_reaches_the_storage(tmp_path: Path) -> None:
    _, table = saved(tmp_path)
    model = PlacementModel.train(table)
    asked = vectors(table).iloc[:5].assign(hdf5=1.0)
    assert model.outside(asked) == [""] * 5
    learnt = model.throughput_model
    assert np.allclose(learnt.predict(asked), learnt.predict(asked.assign(hdf5=0.0)))


def test_a_measurement_without_hdf5_serves_a_file_behind_it_and_not_the_other_way_round(
    tmp_path: Path,
) -> None:
    _, table = saved(tmp_path)
    plain = vectors(table).iloc[0]
    key = pd.concat([plain, pd.Series({"reads": plain[["RO", "RAW", "RAR"]].sum() > 0})])
    plain["fsync"] = key["fsync"] = 0.0
    behind, own = plain.to_dict() | {"hdf5": 1.0}, key.copy()
    own["hdf5"] = 1.0
    assert _far(behind, key) == [] and "through HDF5" in _apart(behind, key)
    assert _far(plain.to_dict(), own) == ["no HDF5"]
    assert _far(behind, own) == [] and "through HDF5" not in _apart(behind, own)
