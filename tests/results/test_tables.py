"""From raw folders to tables and dataset: nothing lost or counted twice, traced and setup kept apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xarray as xr

from tiercel.columns import NUMBER, WORD, Column
from tiercel.engines import Measurement
from tiercel.errors import UserError
from tiercel.results import code, schema
from tiercel.results.dataset import to_dataset, write_dataset
from tiercel.results.measured import measurements_of
from tiercel.results.observations import collect
from tiercel.results.raw import RECORD, RawRun, RawStore, read_json, write_json
from tiercel.results.table import known_rows, load_table, write_table
from tiercel.results.validity import TOO_FEW
from tiercel.runs.execute import Equipment, execute
from tiercel.study.plan import Run

NewRun = Callable[..., Run]
NewEquipment = Callable[..., Equipment]


@pytest.fixture
def measured(new_run: NewRun, equipment: NewEquipment, tmp_path: Path) -> tuple[Path, list[Run]]:
    """Three repetitions of a cold read and one traced run, carried out."""
    first = new_run(operation="read", reorder=1)
    runs = [replace(first, repetition=r) for r in range(3)] + [replace(first, traced=True)]
    tools = equipment()
    for run in runs:
        assert execute(run, tools).reason == ""
    return tools.store.folder.parent, runs


def test_the_tables(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    observations, table = collect(results)
    assert sorted(table["run"]) == sorted(r.id for r in runs)
    assert len(observations) == 8  # each run wrote (setup) and read (measured)
    assert list(observations.columns) == [c.name for c in schema.OBSERVATIONS]
    assert observations.groupby(["role", "traced"]).size().to_dict() == {
        ("measured", False): 3, ("measured", True): 1, ("setup", False): 3, ("setup", True): 1,
    }  # fmt: skip
    assert set(observations["origin"]) == {"measured"}
    assert (observations["bytes_moved"] == 2 * 1024**2).all()
    assert not any(TOO_FEW in flags for flags in observations["flags"])


def test_units_are_in_the_file(measured: tuple[Path, list[Run]]) -> None:
    results, _ = measured
    collect(results)
    field = pq.read_schema(results / "observations.parquet").field("bandwidth")
    assert field.metadata[b"unit"] == b"B/s"


def test_collecting_again_changes_nothing_and_parses_nothing(
    measured: tuple[Path, list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, _ = measured
    first, _ = collect(results)

    def never(*_: object) -> None:
        raise AssertionError("parsed again")

    monkeypatch.setattr("tiercel.results.observations.measurements_of", never)
    second, _ = collect(results)
    pd.testing.assert_frame_equal(first, second)


def test_a_changed_adapter_reads_the_runs_of_its_engine_anew(
    measured: tuple[Path, list[Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, runs = measured
    collect(results)
    read = []

    def seen(raw: RawRun) -> list[Measurement]:
        read.append(raw.run["run"])
        return measurements_of(raw)

    monkeypatch.setattr("tiercel.results.observations.measurements_of", seen)
    of_engine = code.of_engine
    monkeypatch.setattr(code, "of_engine", lambda name: "other" if name == "fio" else of_engine(name))
    collect(results)
    assert read == []
    monkeypatch.setattr(code, "of_engine", lambda name: "other" if name == "iokernel" else of_engine(name))
    collect(results)
    assert read == sorted(run.id for run in runs)
    # A class that an adapter takes from a package counts by the file that it is in.
    assert of_engine("iokernel") != of_engine("fio") != of_engine("dlkernel")
    assert "tiercel.study.workloads.data" in code._closure("tiercel.engines.iokernel", code._CORE)


def test_new_runs_are_added_and_retried_ones_replaced(
    measured: tuple[Path, list[Run]], equipment: NewEquipment
) -> None:
    results, runs = measured
    before, _ = collect(results)
    tools = equipment()
    execute(replace(runs[0], repetition=3), tools)
    added, table = collect(results)
    assert len(added) == len(before) + 2 and len(table) == 5
    tools.store.set_aside(runs[0].id)
    execute(runs[0], tools)
    replaced, table = collect(results)
    assert len(replaced) == len(added)
    assert table.set_index("run").loc[runs[0].id, "attempts"] == 2
    old = before[(before["run"] == runs[0].id) & (before["role"] == "measured")]["began"].iloc[0]
    new = replaced[(replaced["run"] == runs[0].id) & (replaced["role"] == "measured")]["began"].iloc[0]
    assert new > old


def test_a_torn_table_is_made_anew(measured: tuple[Path, list[Run]]) -> None:
    results, _ = measured
    first, _ = collect(results)
    path = results / "observations.parquet"
    path.write_bytes(path.read_bytes()[:100])
    second, _ = collect(results)
    pd.testing.assert_frame_equal(first, second)


def test_too_few_repetitions_are_flagged(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    for run in runs[1:3]:
        RawStore(results).set_aside(run.id)
    observations, _ = collect(results)
    untraced = observations[~observations["traced"]]
    assert all(TOO_FEW in flags for flags in untraced["flags"])


def test_a_failed_run_has_a_row_and_no_number(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    record = RawStore(results).path(runs[0].id) / RECORD
    write_json(record, {**read_json(record), "status": "failed", "reason": "killed by SIGKILL"})
    observations, table = collect(results)
    assert runs[0].id not in set(observations["run"])
    assert table.set_index("run").loc[runs[0].id, "reason"] == "killed by SIGKILL"


def test_a_record_that_is_not_whole_names_the_file(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    (RawStore(results).path(runs[0].id) / "run.json").write_text("{")
    with pytest.raises(UserError, match=r"run\.json: not a whole result"):
        collect(results)


def test_the_dataset(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    observations, _ = collect(results)
    write_dataset(observations, results / "dataset.nc")
    dataset = xr.open_dataset(results / "dataset.nc")
    assert dict(dataset.sizes) == {
        "origin": 1, "storage": 1, "layer": 1, "engine": 1, "workload": 1, "nodes": 1,
        "processes_per_node": 1, "operation": 1, "twin": 1, "repetition": 3,
    }  # fmt: skip
    reads = observations[(observations["role"] == "measured") & ~observations["traced"]]
    expected = reads.sort_values("repetition")["bandwidth"].to_numpy(dtype=float)
    found = dataset["bandwidth"].sel(operation="read").squeeze().values
    np.testing.assert_array_equal(found, expected)
    assert dataset["bandwidth"].attrs["units"] == "B/s"
    assert dataset["transfer_size"].item() == 65536
    assert str(dataset["workload"].item()) == "e/w"
    assert dataset.attrs["site"] == runs[0].configuration.site


def test_two_studies_are_no_dataset(measured: tuple[Path, list[Run]]) -> None:
    observations, _ = collect(measured[0])
    other = observations.assign(study="other")
    with pytest.raises(UserError, match="one study at a time"):
        to_dataset(pd.concat([observations, other]))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    columns = [Column("name", WORD, "", ""), Column("rate", NUMBER, "B/s", "")]
    rows = [{"name": f"run {i}", "rate": 1000.0 + i} for i in range(500)]
    write_table(path, rows, columns, "here")
    return path


def test_a_table_comes_back_as_it_was(written: Path) -> None:
    table = load_table(written, "tiercel collect")
    assert list(table["rate"]) == [1000.0 + i for i in range(500)]
    assert known_rows(written, "here") is not None


@pytest.mark.parametrize("damage", ["cut", "empty", "zeros", "text"])
def test_a_damaged_table_is_said_in_one_line(written: Path, damage: str) -> None:
    data = written.read_bytes()
    written.write_bytes(
        {"cut": data[:-100], "empty": b"", "zeros": bytes(len(data)), "text": b"no table"}[damage]
    )
    with pytest.raises(UserError, match=r"t\.parquet: is damaged .*`tiercel collect` makes it again") as said:
        load_table(written, "tiercel collect")
    assert "\n" not in str(said.value)
    assert known_rows(written, "here") is None  # so that collecting makes it again


def test_a_flipped_bit_is_no_other_number(written: Path) -> None:
    data = written.read_bytes()
    pages = pq.ParquetFile(written).metadata.row_group(0)
    spans = [pages.column(i) for i in range(2)]
    for span in spans:
        at = span.data_page_offset + span.total_compressed_size // 2
        flipped = bytearray(data)
        flipped[at] ^= 4
        written.write_bytes(flipped)
        with pytest.raises(UserError, match="is damaged"):
            load_table(written, "tiercel collect")
