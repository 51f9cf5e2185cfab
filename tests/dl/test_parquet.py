"""Parquet: what is written is what the workload says, and what is read is what the footers say, by strace."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tiercel.dl.files.load import load_workload

from ..objects import Gateway, needs_gateway
from .kernel import rows, run
from .system_calls import traced
from .test_cli import tiercel
from .test_existing_dataset import written

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

COLUMNS = [
    {"name": "label", "dtype": "int8"}, {"name": "half", "dtype": "float16", "size": 3},
    {"name": "vector", "dtype": "float32", "size": 16}, {"name": "old", "dtype": "list", "size": 2},
    {"name": "word", "dtype": "string"}, {"name": "raw", "dtype": "binary", "size": 5},
    {"name": "flag", "dtype": "bool"},
]  # fmt: skip
#: pyarrow reads this much of a file's end, and the rest of the footer only where it is longer.
FOOTER = 64 * 1024


def dataset(files: int = 6, **more: Any) -> dict[str, Any]:
    return {"format": "parquet", "num_files_train": files, "num_samples_per_file": 50,
            "record_length_bytes": 400, "parquet": {"row_group_size": 20}, **more}  # fmt: skip


def files(folder: Path) -> list[Path]:
    return sorted((folder / "data" / "train").glob("*.parquet"))


def made(folder: Path, **more: Any) -> list[Path]:
    answer = run(folder, 1, dataset=dataset(**more), workflow={"train": False})
    assert answer.returncode == 0, answer.stderr
    return files(folder)


def span(path: Path, group: int, *names: str) -> int:
    """Return the bytes from the first of the named columns to the end of the last."""
    found = pq.read_metadata(path).row_group(group)
    chunks = [found.column(n) for n in range(found.num_columns)]
    chunks = [c for c in chunks if not names or c.path_in_schema.split(".")[0] in names]
    begins = [c.dictionary_page_offset or c.data_page_offset for c in chunks]
    return max(b + c.total_compressed_size for b, c in zip(begins, chunks, strict=True)) - min(begins)


def test_files_have_the_columns_and_row_groups_that_are_stated(tmp_path: Path) -> None:
    first, *_ = made(tmp_path, files=2, parquet={"columns": COLUMNS, "row_group_size": 20})
    table = pq.read_table(first)
    assert table.num_rows == 50
    assert [(field.name, field.type) for field in table.schema] == [
        ("label", pa.int8()), ("half", pa.list_(pa.float16(), 3)), ("vector", pa.list_(pa.float32(), 16)),
        ("old", pa.list_(pa.float32(), 2)), ("word", pa.string()), ("raw", pa.binary()), ("flag", pa.bool_()),
    ]  # fmt: skip
    footer = pq.read_metadata(first)
    assert [footer.row_group(n).num_rows for n in range(3)] == [20, 20, 10]
    assert all(len(value) == 5 for value in table["raw"].to_pylist())
    assert len(set(table["word"].to_pylist())) == 50  # random numbers of 31 bits
    assert set(table["flag"].to_pylist()) == {True, False}
    assert not table["vector"].chunk(0).equals(pq.read_table(files(tmp_path)[1])["vector"].chunk(0))


def test_without_columns_there_is_one_of_all_bytes_of_a_sample(tmp_path: Path) -> None:
    first, *_ = made(
        tmp_path, compression="zstd", parquet={"row_group_size": 20, "generation_batch_size": 15}
    )
    footer = pq.read_metadata(first)
    assert footer.schema.to_arrow_schema().field("data").type == pa.list_(pa.uint8(), 400)
    # What is generated at once ends a row group, as in DLIO: 15, 15, 15, 5.
    assert [footer.row_group(n).num_rows for n in range(4)] == [15, 15, 15, 5]
    assert footer.row_group(0).column(0).compression == "ZSTD"


@needs_strace
@pytest.mark.parametrize("readers", [0, 1, 2])
@pytest.mark.parametrize("columns", [(), ("half", "old")])
def test_every_epoch_reads_footers_and_row_groups(tmp_path: Path, readers: int, columns: tuple[str]) -> None:
    given = dataset(parquet={"columns": COLUMNS, "row_group_size": 20})
    seen = traced(
        tmp_path, 2, dataset=given, train={"epochs": 2, "computation_time": 0.001},
        reader={"batch_size": 7, "read_threads": readers},
        storage={"storage_options": {"columns": list(columns), "prefetch_workers": 3}},
    )  # fmt: skip
    # Each file is smaller than what is read of its end, so that is all of it.
    expected = {str(p.resolve()): p.stat().st_size + sum(span(p, n, *columns) for n in range(3))
                for p in files(tmp_path)}  # fmt: skip
    assert all(p.stat().st_size < FOOTER for p in files(tmp_path))
    shares = []
    for row in rows(tmp_path):
        both = [seen[row["epoch"]][rank] for rank in (0, 1)]
        assert [len(rank.opens) for rank in both] == [3, 3]
        assert both[0].bytes + both[1].bytes == expected
        # One for the footer, and one for each of the three row groups.
        assert set((both[0].opens + both[1].opens).values()) == {4}
        assert (row["opens"], row["bytes"]) == (6 * 4, sum(expected.values()))
        # 150 samples of each process make 21 batches of 7; batches of two readers' rests are among them.
        assert (row["steps"], row["samples"]) == (21, 2 * 21 * 7)
        shares.append(frozenset(both[0].opens))
    assert len(shares) == 2


@needs_strace
@pytest.mark.parametrize(("count", "requests"), [(None, 1), (2, 2)])
def test_s3dlio_joins_row_groups_and_keeps_footers(tmp_path: Path, count: int | None, requests: int) -> None:
    """As MLPerf Storage's reader with s3dlio (parquet_reader_s3dlio.py): eight groups at once, or as many as
    the file says; a footer is read in the first epoch only."""
    options = {"storage_library": "s3dlio", **({"coalesce_rgs": count} if count else {})}
    seen = traced(
        tmp_path, 2, dataset=dataset(parquet={"columns": COLUMNS, "row_group_size": 20}),
        train={"epochs": 2, "computation_time": 0.001}, reader={"batch_size": 7, "read_threads": 2},
        storage={"storage_options": options},
    )  # fmt: skip
    assert len(files(tmp_path)) == 6
    groups = {str(p.resolve()): sum(span(p, n) for n in range(3)) for p in files(tmp_path)}
    for row in rows(tmp_path):
        both = [seen[row["epoch"]][rank] for rank in (0, 1)]
        first = row["epoch"] == 1  # of which a footer is all of such a small file
        assert both[0].bytes + both[1].bytes == {
            path: size + first * Path(path).stat().st_size for path, size in groups.items()
        }
        assert set((both[0].opens + both[1].opens).values()) == {requests + first}
        assert (row["opens"], row["samples"]) == (6 * (requests + first), 2 * 21 * 7)


def test_stated_steps_end_an_epoch_early(tmp_path: Path) -> None:
    answer = run(tmp_path, 1, dataset=dataset(), reader={"batch_size": 10, "read_threads": 1},
                 storage={"storage_options": {"prefetch_window": 1}},
                 train={"epochs": 2, "total_training_steps": 2})  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert [row["samples"] for row in rows(tmp_path)] == [20, 20]
    # Two groups make the four batches that are used or wait, one or two more are on their way: of 18.
    assert all(6 < row["opens"] <= 6 + 8 for row in rows(tmp_path))


def test_what_is_in_memory_is_not_read_again(tmp_path: Path) -> None:
    answer = run(tmp_path, 1, dataset=dataset(), reader={"read_type": "memory"}, train={"epochs": 2})
    assert answer.returncode == 0, answer.stderr
    assert [row["opens"] for row in rows(tmp_path)] == [6 * 4, 0]


def test_fewer_files_than_processes_are_refused(tmp_path: Path) -> None:
    answer = run(tmp_path, 3, dataset=dataset(files=2))
    assert answer.returncode == 2
    assert "2 files are fewer than the 3 processes: each reads whole files" in answer.stderr


def test_what_is_wrong_with_a_file_is_named(tmp_path: Path) -> None:
    every = made(tmp_path)
    original = every[3].read_bytes()

    def said(**parts: Any) -> str:
        answer = run(tmp_path, 1, dataset=dataset(), **parts)
        assert answer.returncode == 2, answer.stderr
        (line,) = answer.stderr.strip().splitlines()
        return line

    every[3].write_bytes(original[:-10])
    assert f"{every[3].name}: not a Parquet file" in said()
    table = pq.read_table(every[0])
    pq.write_table(table.slice(0, 49), every[3], row_group_size=20)
    assert f"{every[3].name}: holds 49 samples where dataset.num_samples_per_file says 50" in said()
    every[3].write_bytes(original)
    columns = {"storage": {"storage_options": {"columns": ["nose"]}}}
    assert "has no column nose (storage.storage_options.columns)" in said(**columns)


def test_bytes_that_changed_since_are_noticed(tmp_path: Path) -> None:
    every = made(tmp_path)
    damaged = bytearray(every[2].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    every[2].write_bytes(damaged)
    answer = run(tmp_path, 1, dataset=dataset())
    assert answer.returncode == 2
    assert every[2].name in answer.stderr


def test_sizes_follow_from_the_columns(tmp_path: Path) -> None:
    text = json.dumps({"framework": "pytorch", "dataset": dataset(parquet={"columns": COLUMNS})})
    found = load_workload(written(tmp_path, text=text))
    # 1 + 3 * 2 + 16 * 4 + 2 * 4 + 12 (a word, about) + 5 + 1
    assert found.dataset.sample_bytes == 97


def test_columns_that_are_not_to_be_read_are_told(tmp_path: Path) -> None:
    """MLPerf Storage's files have the key, and its DLIO of July 2026 reads whole row groups all the same."""
    columns = [{**COLUMNS[0], "read": False}, COLUMNS[1]]
    file = written(tmp_path, text=json.dumps({
        "framework": "pytorch", "workflow": {"train": True},
        "dataset": dataset(parquet={"columns": columns, "row_group_size": 20, "read_mode": "row_group"}),
    }))  # fmt: skip
    checked = tiercel("check", file, "--json")
    outcomes = {row["key"]: (row["value"], row["outcome"]) for row in json.loads(checked.stdout)}
    assert outcomes["dataset.parquet.columns"] == ("2", "carried out")
    assert outcomes["dataset.parquet.columns.read"] == ("false of 1", "no effect")
    answer = tiercel("run", file, "--folder", str(tmp_path / "d"))
    assert answer.returncode == 0, answer.stderr
    # The columns say what a sample is: record_length_bytes, which the file states too, does nothing.
    told = "without effect here: dataset.record_length_bytes, dataset.parquet.columns.read (tiercel dl check"
    assert told in answer.stdout


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dataset.parquet.partition_by": "label"}, "dataset.parquet.partition_by: folders by values"),
        ({"dataset.compression": "lzf"}, "lzf does not go with format: parquet"),
        ({"dataset.record_dims": [2, 3]}, "parquet.columns excludes record_dims"),
        ({"storage.storage_options.storage_library": "direct"}, "direct: nothing here reads Parquet past"),
        ({"reader.odirect": True}, "reader.odirect needs format npy"),
    ],
)
def test_what_is_not_carried_out_is_refused_by_its_name(
    tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    content = {"framework": "pytorch", "dataset": dataset(parquet={"columns": COLUMNS})}
    words = [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    answer = tiercel("check", written(tmp_path, text=json.dumps(content)), *words)
    assert answer.returncode == 2
    assert message in " ".join((answer.stdout + answer.stderr).split())


@needs_gateway
@pytest.mark.parametrize(("library", "requests"), [("minio", 3), ("s3dlio", 1)])
def test_a_row_group_is_one_request_however_large(
    gateway: Gateway, tmp_path: Path, library: str, requests: int
) -> None:
    """Files are read in pieces; of an object a client asks for all of a group, and s3dlio for several."""
    below = f"large-{library}"
    options = ["--data", f"s3://data/{below}/dataset", "--checkpoints", f"s3://data/{below}/checkpoints"]
    given = {"format": "parquet", "num_files_train": 1, "num_samples_per_file": 12,
             "record_length_bytes": 2_000_000, "parquet": {"row_group_size": 4}}  # fmt: skip
    answer = run(tmp_path, 1, *options, env=gateway.environment, dataset=given,
                 reader={"batch_size": 2, "transfer_size": 1_000_000},
                 storage={"storage_options": {"storage_library": library}})  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    (row,) = rows(tmp_path)
    assert row["bytes"] >= 12 * 2_000_000
    # One for the size, one for the footer; then those of groups.
    assert row["requests"] == 2 + requests


@needs_gateway
def test_row_groups_are_asked_for_by_their_ranges(gateway: Gateway, tmp_path: Path) -> None:
    options = ["--data", "s3://data/parquet/dataset", "--checkpoints", "s3://data/parquet/checkpoints"]
    answer = run(tmp_path, 2, *options, env=gateway.environment, dataset=dataset(), train={"epochs": 2},
                 reader={"read_threads": 2, "batch_size": 5})  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    local = tmp_path / "local"
    local.mkdir()
    same = made(local)
    asked = gateway.requests("GetObject", "parquet/dataset/train")
    # Each process looks at the headers of its three files before training; then in each of two epochs there
    # is one request for a file's footer and one for each of its three row groups.
    assert len(asked) == 2 * 3 + 2 * 6 * (1 + 3)
    expected = sum(min(FOOTER, p.stat().st_size) + sum(span(p, n) for n in range(3)) for p in same)
    assert [row["bytes"] for row in rows(tmp_path)] == [expected, expected]
    # A request for the size of each of six files, one for its footer and one for each of its row groups.
    assert [row["requests"] for row in rows(tmp_path)] == [6 * 5, 6 * 5]
