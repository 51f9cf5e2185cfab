"""Upstream DLIO itself, small, where its environments are (make dlio, make dlio-torch)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.generating import crew, generate_only
from tiercel.dl.running import deep_learning, run_once
from tiercel.dl.upstream.engine import DLIO
from tiercel.engines import Task
from tiercel.launchers import resolve
from tiercel.traces import open_trace

from .runs import SETTINGS, environment

#: A step of 0.1 ms: what is checked is what is done, not how fast.
QUICK: dict[str, Any] = {"train.computation_time": 0.0001, "reader.read_threads": 1}


@pytest.mark.mpi
def test_pytorch_with_evaluation_and_checkpoints(tmp_path: Path) -> None:
    environment("pytorch")
    (tmp_path / "out").mkdir()
    (tmp_path / "da ta").mkdir()
    workload = deep_learning("resnet50-vast", {**SETTINGS, **QUICK})
    ran = run_once(workload, "dlio", tmp_path / "da ta", tmp_path / "out", processes=2, trace=True)
    assert ran.of("train").metrics["samples"] == 24
    assert ran.of("evaluate").metrics["samples"] == 16
    assert ran.of("checkpoint-write").operations == 4
    frame = open_trace(tmp_path / "out" / "trace", cache=tmp_path / "cache")
    read = frame.query(
        "SELECT count(DISTINCT file) AS files, count(DISTINCT rank) AS ranks FROM events "
        "WHERE kind = 'read' AND size > 0 AND file LIKE '%/train/%'"
    ).iloc[0]
    assert (read["files"], read["ranks"]) == (24, 2)


@pytest.mark.mpi
def test_a_rank_that_fails_ends_the_others(tmp_path: Path) -> None:
    """DLIO alone leaves them in a barrier for ever."""
    environment("pytorch")
    workload = deep_learning("resnet50-vast", {"dataset.num_files_train": 8, **QUICK})
    (tmp_path / "made").mkdir()
    generate_only(workload, tmp_path / "dataset", tmp_path / "made", crew(1, 2, None))
    sorted((tmp_path / "dataset" / "train").glob("*.jpeg"))[0].write_bytes(b"no picture")
    found, _ = workload.resolved(1, 2)
    step = DLIO().step(Task(workload, 1, 2, tmp_path, tmp_path, 1, "mpiexec"), found)
    command = resolve("mpiexec").command(list(step.argv), 1, 2)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "UnidentifiedImageError" in ended.stdout + ended.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    "format",
    ["npz", "png", "csv", *(pytest.param(format, marks=pytest.mark.nightly) for format in ("hdf5", "npy"))],
)
def test_pytorch_formats(tmp_path: Path, format: str) -> None:
    environment("pytorch")
    (tmp_path / "out").mkdir()
    settings = {"dataset.num_files_train": 8, "dataset.format": format, "dataset.record_length_bytes": 4096}
    ran = run_once(
        deep_learning("resnet50-vast", {**settings, **QUICK}), "dlio", tmp_path, tmp_path / "out", 2
    )
    assert ran.of("train").metrics["samples"] == 8


@pytest.mark.mpi
def test_tensorflow_tfrecord(tmp_path: Path) -> None:
    environment("tensorflow")
    (tmp_path / "out").mkdir()
    settings = {"dataset.num_files_train": 8, "dataset.record_length_bytes": 65536, "train.epochs": 2}
    ran = run_once(
        deep_learning("cosmoflow-vast", {**settings, **QUICK}), "dlio", tmp_path, tmp_path / "out", 2
    )
    assert ran.of("train").metrics["samples"] == 8
    assert ran.of("train-later").metrics["samples"] == 8
