"""What the writer of events does with columns that a reader leaves out."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tiercel.traces.store import NoLayer, ParquetWriter


def test_layers_that_a_reader_leaves_out_are_told_by_the_calls(tmp_path: Path) -> None:
    writer = ParquetWriter(tmp_path / "events.parquet")
    names = ["read", "fread", "MPI_File_write", "H5Dread", "step", "grob"]
    kinds = ["read", "read", "write", "read", "compute", "read"]
    apis = [None, None, None, None, None, "posix"]
    writer.write({"time": [0.0] * 6, "function": names, "kind": kinds, "api": apis})
    writer.write({})  # nothing to write
    writer.close()
    found = pq.read_table(tmp_path / "events.parquet")["api"].to_pylist()
    assert found == ["posix", "stdio", "mpiio", "hdf5", None, "posix"]


@pytest.mark.parametrize("columns", [{"function": ["grob"]}, {}], ids=["another name", "no name"])
def test_a_call_of_no_layer_is_refused(columns: dict[str, list[str]], tmp_path: Path) -> None:
    writer = ParquetWriter(tmp_path / "events.parquet")
    with pytest.raises(NoLayer, match="of kind write says no api"):
        writer.write({"time": [0.0], "kind": ["write"], **columns})
