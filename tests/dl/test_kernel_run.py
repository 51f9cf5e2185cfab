"""Whole runs of dlkernel: what is read, by whom, and what happens when something is wrong."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.spec import spec_of
from tiercel.pagecache import memory_backed

from .kernel import result, rows, run, workload

#: Loader and format: processes as PyTorch's, threads as tf.data's, streams, none.
LOADERS: list[dict[str, Any]] = [
    {"dataset": {"format": "npz"}},
    {"dataset": {"format": "npz"}, "framework_threads": True},
    {"dataset": {"format": "tfrecord", "num_samples_per_file": 3}, "reader": {"transfer_size": 4096}},
    {"dataset": {"format": "npz"}, "reader": {"read_threads": 0}},
    {"dataset": {"format": "tfrecord"}, "reader": {"read_threads": 0}},
]


def parts(case: dict[str, Any]) -> dict[str, Any]:
    found = {k: v for k, v in case.items() if k != "framework_threads"}
    if case.get("framework_threads"):
        found["reader"] = {**found.get("reader", {}), "data_loader": "native_dali"}
    return found


@pytest.mark.parametrize("case", LOADERS)
@pytest.mark.parametrize("processes", [1, 3])
def test_every_loader_reads_all_samples_once(tmp_path: Path, case: dict[str, Any], processes: int) -> None:
    answer = run(tmp_path, processes, **parts(case))
    assert answer.returncode == 0, answer.stderr
    (row,) = rows(tmp_path)
    per_file = case.get("dataset", {}).get("num_samples_per_file", 1)
    samples = 12 * per_file
    # 12 or 36 samples, batches of two, 1 or 3 processes: every sample belongs to a whole batch.
    assert row["samples"] == samples
    assert row["steps"] == samples // 2 // processes
    assert row["opens"] == 12
    files = sum(p.stat().st_size for p in (tmp_path / "data" / "train").iterdir())
    # Libraries read headers twice: what is read is the samples, and of a file two blocks more than it has at
    # most, which is less than all of it once more.
    assert samples * 10_000 <= row["bytes"] <= files + 24 * 4096 < 2 * files


def test_summary_has_dlios_keys(tmp_path: Path) -> None:
    run(tmp_path, 2, train={"epochs": 2}, output={"metric": {"exclude_start_steps": 0}})
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["num_accelerators"] == 2
    assert summary["epochs"] == 2
    metric = summary["metric"]
    assert len(metric["train_au_percentage"]) == len(metric["train_throughput_samples_per_second"]) == 2
    assert metric["train_au_meet_expectation"] in ("success", "fail")
    assert 0 < metric["train_au_mean_percentage"] <= 100
    for rank in (0, 1):
        output = json.loads((tmp_path / "out" / f"{rank}_output.json").read_text())
        assert len(output["1"]["load"]["block1"]) == len(output["2"]["compute"]["block1"]) == 3
    assert set(json.loads((tmp_path / "out" / "per_epoch_stats.json").read_text())) == {"1", "2"}


def test_computation_does_not_use_the_processor(tmp_path: Path) -> None:
    run(tmp_path, 1, train={"computation_time": 0.1})
    (row,) = rows(tmp_path)
    assert row["seconds"] >= 0.6  # six steps
    assert row["cpu"] < 0.5 * row["seconds"]


def test_the_dataset_is_the_same_for_any_number_of_processes(tmp_path: Path) -> None:
    digests = []
    for processes in (1, 3):
        folder = tmp_path / str(processes)
        run(folder, processes, dataset={"format": "tfrecord", "record_length_bytes_stdev": 3000})
        files = sorted((folder / "data" / "train").iterdir())
        digests.append([(p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in files])
    assert digests[0] == digests[1]
    assert len({d for _, d in digests[0]}) == 12


def test_generation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    run(tmp_path, 1)
    train = tmp_path / "data" / "train"
    files = sorted(train.iterdir())
    whole = files[3].read_bytes()
    files[3].rename(f"{files[3]}.part")  # as if killed before it had its name
    kept = files[5].stat().st_mtime_ns
    answer = run(tmp_path, 2)
    assert answer.returncode == 0, answer.stderr
    assert result(tmp_path)["generated"] == {**result(tmp_path)["generated"], "files": 1, "kept": 11}
    assert files[3].read_bytes() == whole
    assert files[5].stat().st_mtime_ns == kept


def test_the_first_epoch_is_cold_and_the_second_is_seen_to_be_warm(tmp_path: Path) -> None:
    run(tmp_path, 2, train={"epochs": 2})
    first, second = rows(tmp_path)
    if memory_backed(str(tmp_path)):
        assert first["memory_backed"]
    else:
        assert first["resident_fraction"] == 0
        assert second["resident_fraction"] == 1
    assert first["resident_method"] in ("cachestat", "mincore")


def test_every_epoch_may_be_cold(tmp_path: Path) -> None:
    if memory_backed(str(tmp_path)):
        pytest.skip("the temporary folder is memory")
    run(tmp_path, 1, "--cold", "every", train={"epochs": 2})
    assert [r["resident_fraction"] for r in rows(tmp_path)] == [0, 0]


def test_what_is_in_memory_is_read_once(tmp_path: Path) -> None:
    parts = {"dataset": {"format": "csv", "num_files_train": 1, "num_samples_per_file": 12},
             "reader": {"read_type": "memory", "file_access": "shared"}, "train": {"epochs": 3}}  # fmt: skip
    answer = run(tmp_path, 2, **parts)
    assert answer.returncode == 0, answer.stderr
    first, *later = rows(tmp_path)
    # Each of the two processes reads the whole file (and once more, by its end).
    assert first["bytes"] == 2 * next((tmp_path / "data" / "train").iterdir()).stat().st_size
    assert [r["bytes"] for r in later] == [0, 0]


def test_evaluation_and_checkpoints(tmp_path: Path) -> None:
    answer = run(
        tmp_path, 2, dataset={"num_files_eval": 4}, workflow={"evaluation": True, "checkpoint": True},
        train={"epochs": 2}, checkpoint={"num_checkpoints_read": 1, "steps_between_checkpoints": 2},
        evaluation={"eval_time": 0.001, "epochs_between_evals": 2},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    (evaluated,) = rows(tmp_path, "eval")  # after epoch 1, then every second
    assert evaluated["samples"] == 4
    # Three steps an epoch, a checkpoint after the second.
    writes = rows(tmp_path, "checkpoint-write")
    assert [(r["epoch"], r["step"]) for r in writes] == [(1, 2), (2, 2)]
    assert {r["bytes"] for r in writes} == {1024 + 1024 + 4096 + 65536 + 4 * 1024**2}
    (read,) = rows(tmp_path, "checkpoint-read")
    assert read["resident_fraction"] == 0 or read["memory_backed"]


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("more ranks than samples", {"dataset": {"num_files_train": 3}}, 4, "3 samples in 3 files are too few"),
    ("batch too large", {"reader": {"batch_size": 13}}, 1, "reader.batch_size: 13"),
]


@pytest.mark.parametrize(("name", "given", "processes", "telling"), WRONG, ids=[w[0] for w in WRONG])
def test_a_wrong_workload_is_one_line(
    tmp_path: Path, name: str, given: dict[str, Any], processes: int, telling: str
) -> None:
    answer = run(tmp_path, processes, **given)
    assert answer.returncode == 2
    assert telling in answer.stderr
    assert "Traceback" not in answer.stderr


def only_reading(**more: Any) -> dict[str, Any]:
    return {"workflow": {"generate_data": False, "train": True}, **more}


def test_a_missing_dataset_is_named(tmp_path: Path) -> None:
    answer = run(tmp_path, 2, **only_reading())
    assert answer.returncode == 2
    assert f"{tmp_path / 'data' / 'train'}: no such folder" in answer.stderr


def test_a_dataset_with_a_file_too_few_is_named(tmp_path: Path) -> None:
    run(tmp_path, 1)
    sorted((tmp_path / "data" / "train").iterdir())[0].unlink()
    answer = run(tmp_path, 2, **only_reading())
    assert answer.returncode == 2
    assert "11 files where dataset.num_files_train says 12" in answer.stderr


def test_a_dataset_of_other_parameters_is_named(tmp_path: Path) -> None:
    run(tmp_path, 1)
    answer = run(tmp_path, 2, **only_reading(dataset={"record_length_bytes": 20_000}))
    assert answer.returncode == 2
    assert "a dataset of other parameters" in answer.stderr
    answer = run(tmp_path, 1, dataset={"record_length_bytes": 20_000})
    assert answer.returncode == 2
    assert "holds another dataset" in answer.stderr


@pytest.mark.parametrize("name", ["npz", "hdf5", "tfrecord"])
def test_foreign_files_of_another_size_are_named(tmp_path: Path, name: str) -> None:
    run(tmp_path, 1, dataset={"format": name})
    (tmp_path / "data" / "dataset.json").unlink()  # now nobody knows who made them
    assert run(tmp_path, 1, **only_reading(dataset={"format": name})).returncode == 0
    answer = run(tmp_path, 2, **only_reading(dataset={"format": name, "record_length_bytes": 40_000}))
    assert answer.returncode == 2
    assert "/train/img_00_of_12" in answer.stderr or "/train/img_01_of_12" in answer.stderr
    answer = run(tmp_path, 2, **only_reading(dataset={"format": name, "num_samples_per_file": 2}))
    assert answer.returncode == 2


def test_an_empty_file_is_named_before_training(tmp_path: Path) -> None:
    run(tmp_path, 1)
    path = sorted((tmp_path / "data" / "train").iterdir())[7]
    path.write_bytes(b"")
    answer = run(tmp_path, 3, **only_reading())
    assert answer.returncode == 2
    assert f"{path}: is empty" in answer.stderr


@pytest.mark.parametrize("case", LOADERS)
def test_a_corrupt_sample_stops_all_processes(tmp_path: Path, case: dict[str, Any]) -> None:
    run(tmp_path, 1, **parts(case))
    path = sorted((tmp_path / "data" / "train").iterdir())[7]
    data = bytearray(path.read_bytes())
    data[5000:5004] = bytes(b ^ 0xFF for b in data[5000:5004])
    path.write_bytes(bytes(data))
    given = {**parts(case), "workflow": {"generate_data": False, "train": True}}
    answer = run(tmp_path, 3, **given)  # hangs: the time limit of run() ends it
    assert answer.returncode == 2
    lines = [line for line in answer.stderr.splitlines() if line]
    assert len(lines) == 1, answer.stderr
    assert str(path) in lines[0]
    assert "checksum" in lines[0]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    limit = ["bash", "-c", 'ulimit -f 5; exec "$@"', "limit"]  # files of 5 KiB at most
    argv = [sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec_of(workload())),
            "--data", str(tmp_path / "data"), "--output", str(tmp_path / "out"),
            "--processes", "2"]  # fmt: skip
    answer = subprocess.run([*limit, *argv], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode != 0
    assert "cannot be" in answer.stderr
    assert "img_" in answer.stderr
    assert not list((tmp_path / "data").rglob("*.part"))


def test_a_killed_reader_is_noticed(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tiercel.dl.kernel",
            "--spec", json.dumps(spec_of(workload(train={"computation_time": 5}))),
            "--data", str(tmp_path / "data"), "--output", str(tmp_path / "out"),
            "--processes", "1"]  # fmt: skip
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    deadline, workers = time.monotonic() + 30, []
    while len(workers) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        workers = children.read_text().split() if children.exists() else []
    assert len(workers) == 2
    time.sleep(0.2)
    for worker in workers:
        os.kill(int(worker), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "reader worker" in said
    assert "died" in said


def test_a_format_without_its_library_is_named(tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys; real = importlib.util.find_spec;"
        "importlib.util.find_spec = lambda n, *a: None if n == 'h5py' else real(n, *a);"
        "import runpy; runpy.run_module('tiercel.dl.kernel', run_name='__main__')"
    )
    text = json.dumps(spec_of(workload(dataset={"format": "hdf5"})))
    argv = [
        sys.executable,
        "-c",
        code,
        "--spec",
        text,
        "--data",
        str(tmp_path / "d"),
        "--output",
        str(tmp_path),
    ]
    answer = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode == 2
    assert "dataset.format: hdf5 needs h5py, which is not installed" in answer.stderr


def test_collective_access_without_mpi_is_refused(tmp_path: Path) -> None:
    given = {"dataset": {"format": "hdf5", "num_files_train": 1, "num_samples_per_file": 8},
             "reader": {"file_access": "collective", "read_threads": 0}}  # fmt: skip
    answer = run(tmp_path, 2, **given)
    assert answer.returncode == 2
    assert "reader.file_access: collective needs" in answer.stderr


@pytest.mark.parametrize("key", ["num_files_train", "num_samples_per_file"])
def test_samples_whose_order_fits_into_no_memory_are_refused(tmp_path: Path, key: str) -> None:
    """Samples made in memory need no disk, whose room would have said it; the machine was filled."""
    answer = run(tmp_path, 2, dataset={"format": "synthetic", key: 2**40}, train={"total_training_steps": 2})
    assert answer.returncode == 2
    assert "dataset.num_files_train, dataset.num_samples_per_file: the order" in answer.stderr


def test_it_starts_without_numpy_and_the_like() -> None:
    code = (
        "import sys, tiercel.dl.kernel.__main__;"
        "print([m for m in ('numpy', 'h5py', 'pydantic', 'yaml', 'PIL', 'mpi4py') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
