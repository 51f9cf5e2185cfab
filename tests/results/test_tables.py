"""From raw folders to tables and dataset: nothing lost or counted twice, traced and setup kept apart."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr

from tiercel.columns import NUMBER, WORD, Column
from tiercel.engines import Measurement
from tiercel.errors import UserError
from tiercel.results import code, schema
from tiercel.results.dataset import to_dataset, write_dataset
from tiercel.results.measured import measurements_of
from tiercel.results.observations import collect, identity_of, look
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
    with pytest.raises(UserError, match=r"run\.json: not a complete result"):
        collect(results)


def test_a_look_names_the_record_that_is_not_whole_and_has_the_others(
    measured: tuple[Path, list[Run]],
) -> None:
    results, runs = measured
    record = RawStore(results).path(runs[0].id) / RECORD
    record.write_text(record.read_text()[:100])
    found = look(results)
    assert len(found.runs) == len(runs) - 1
    assert len(found.problems) == 1 and str(record) in found.problems[0]
    assert not (results / "runs.parquet").exists()


def test_the_look_a_run_was_added_for_is_one_of_its_columns(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    run = read_json(RawStore(results).path(runs[0].id) / "run.json")
    assert identity_of(run)["look"] == 0
    assert identity_of({**run, "look": 2})["look"] == 2


def test_a_name_that_is_no_text_comes_back_from_a_record(tmp_path: Path) -> None:
    """A file's name is bytes: b"\\xff" is no UTF-8, and stands for itself."""
    name = os.fsdecode(b"data-\xff")
    write_json(tmp_path / "a.json", {"file": name})
    assert read_json(tmp_path / "a.json") == {"file": name}


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
    # Nothing was trained, nor behind a layer: neither is there, as a column of nothing.
    assert not {"au", "samples_per_second", "hit_share"} & set(dataset.variables)


def test_a_table_of_the_dataset_keeps_its_rows_and_knows_both_names_of_a_storage(
    measured: tuple[Path, list[Run]],
) -> None:
    """Two workloads, of which one has a phase_time."""
    observations, _ = collect(measured[0])
    other = observations.assign(workload="timed", phase_time=2.0)
    both = pd.concat([observations.assign(storage_label="ext4 /"), other.assign(storage_label="ext4 /")])
    dataset = to_dataset(both)
    reads = (both["role"] == "measured") & ~both["traced"]
    assert len(dataset.bandwidth.to_dataframe().dropna()) == reads.sum() > 0
    assert float(dataset["phase_time"].sel(workload="e/timed")) == 2.0
    assert np.isnan(dataset["phase_time"].sel(workload="e/w"))
    named = dataset.bandwidth.sel(storage_label="ext4 /")
    assert named.equals(dataset.bandwidth.isel(storage=0))


def test_the_file_of_a_dataset_is_the_one_that_xarray_writes(
    measured: tuple[Path, list[Run]], tmp_path: Path
) -> None:
    observations, _ = collect(measured[0])
    ours, plain = tmp_path / "ours.nc", tmp_path / "plain.nc"
    write_dataset(observations, ours)
    to_dataset(observations).to_netcdf(plain, engine="h5netcdf")
    with xr.open_dataset(ours) as mine, xr.open_dataset(plain) as theirs:
        xr.testing.assert_identical(mine, theirs)
    assert _parts(ours) == _parts(plain)


def _parts(path: Path) -> dict[str, tuple[object, ...]]:
    """Return of each variable its place among the dimensions, by which programs find what belongs to it."""
    with h5py.File(path) as file:
        return {
            name: (
                part.attrs.get("_Netcdf4Dimid"),
                [[file[one].name for one in along] for along in part.attrs.get("DIMENSION_LIST", ())],
                sorted((file[user].name, int(axis)) for user, axis in part.attrs.get("REFERENCE_LIST", ())),
            )
            for name, part in file.items()
        }


def test_the_dataset_of_nothing(measured: tuple[Path, list[Run]]) -> None:
    results, _ = measured
    observations, _ = collect(results)
    dataset = write_dataset(observations[:0], results / "dataset.nc")
    assert dict(xr.open_dataset(results / "dataset.nc").sizes) == dict(dataset.sizes)
    assert set(dataset.sizes.values()) == {0}


def test_a_disk_that_is_full_is_an_error_and_not_the_end_of_the_process(
    measured: tuple[Path, list[Run]],
) -> None:
    """HDF5 that wrote to it itself ended in a segmentation fault."""
    results, _ = measured
    collect(results)
    program = (
        "import resource, sys; from pathlib import Path; import pandas as pd\n"
        "from tiercel.results.dataset import write_dataset\n"
        "table = pd.read_parquet(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try: write_dataset(table, Path(sys.argv[2]))\n"
        "except OSError as error: print(error.filename)\n"
    )
    target = results / "dataset.nc"
    target.unlink(missing_ok=True)
    words = [sys.executable, "-c", program, str(results / "observations.parquet"), str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, str(target), "")
    assert not list(results.glob("*dataset.nc*"))


def test_two_studies_are_no_dataset(measured: tuple[Path, list[Run]]) -> None:
    observations, _ = collect(measured[0])
    other = observations.assign(study="other")
    with pytest.raises(UserError, match="one study at a time"):
        to_dataset(pd.concat([observations, other]))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    columns = [Column("run", WORD, "", ""), Column("rate", NUMBER, "B/s", "")]
    rows = [{"run": f"run {i}", "rate": 1000.0 + i} for i in range(500)]
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


def test_want_of_memory_is_no_damage(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the table again would not help."""

    def read_table(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 342144 failed")

    monkeypatch.setattr(pq, "read_table", read_table)
    with pytest.raises(MemoryError):
        load_table(written, "tiercel collect")
    with pytest.raises(MemoryError):
        known_rows(written, "here")


@pytest.mark.parametrize("what", ["a folder", "another program's table"])
def test_what_is_no_table_of_ours_is_said_in_one_line(written: Path, what: str) -> None:
    written.unlink()
    if what == "a folder":
        written.mkdir()  # Parquet takes a folder for a table of all its files: of none here, without columns
    else:
        pd.DataFrame({"a": [1]}).to_parquet(written)
    with pytest.raises(
        UserError, match=r"t\.parquet: is damaged \(no column run: not a table of tiercel's\)"
    ):
        load_table(written, "tiercel collect")


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


def test_tables_are_not_emptied_where_the_raw_folder_is_gone(measured: tuple[Path, list[Run]]) -> None:
    results, _ = measured
    collect(results)
    before = (results / "observations.parquet").read_bytes()
    (results / "raw").rename(results / "elsewhere")
    with pytest.raises(UserError, match="raw: is gone, and the tables still have 4 runs of it"):
        collect(results)
    (results / "raw").write_text("")
    with pytest.raises(UserError, match="raw: cannot be read: Not a directory"):
        collect(results)
    assert (results / "observations.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda _: [], r"run\.json: not a complete result: no JSON object"),
        (lambda row: {"run": row["run"]}, r"run\.json: not a complete run \(KeyError\('storage'\)\)"),
        (lambda row: row | {"nodes": "two"}, "nodes is 'two', no Int64"),
        (lambda row: row | {"nodes": 10**30}, "nodes is 10{30}, no Int64"),
    ],
)
def test_a_run_whose_row_is_not_what_it_should_be_is_named(
    measured: tuple[Path, list[Run]], change: Callable[[dict[str, object]], object], said: str
) -> None:
    results, runs = measured
    path = RawStore(results).path(runs[1].id) / "run.json"
    path.write_text(json.dumps(change(read_json(path))))
    with pytest.raises(UserError, match=said) as error:
        collect(results)
    assert runs[1].id in str(error.value)


def test_a_pipe_in_a_runs_folder_is_not_waited_for(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    path = RawStore(results).path(runs[1].id) / "context.json"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(UserError, match=r"context\.json: neither a file nor a folder"):
        collect(results)


def test_a_copy_of_a_run_does_not_count_again(measured: tuple[Path, list[Run]]) -> None:
    results, runs = measured
    raw = RawStore(results).folder
    shutil.copytree(raw / runs[0].id, raw / f"{runs[0].id}.bak")
    with pytest.raises(UserError, match="a copy must not count again"):
        collect(results)
