"""Studies that train on a dataset that is there: it is used, checked before, and left as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest

from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.errors import UserError

from ..conftest import Project
from ..objects import ENVIRONMENT, Gateway

FILE = """
model: {name: small}
framework: pytorch
workflow: {generate_data: false, train: true}
dataset: {format: npz, num_files_train: 12, record_length_bytes: 10000, keep_files: false}
reader: {batch_size: 2, read_threads: 1}
train: {epochs: 2, computation_time: 0.001}
"""
STUDY = """
study: there
title: A dataset that is there
engines: [dlkernel]
repetitions: {minimum: 2, maximum: 2, target: 0.9}
timeout: 60s
experiments:
  training:
    stacks: [%s]
    processes_per_node: [2]
    workloads:
      small: {operation: deep-learning, workload: %s, data_folder: %s, %s}
"""


def study(project: Project, folder: str, on: str = "main", more: str = "cold: first") -> Path:
    file = project.root / "small.yaml"
    file.write_text(FILE)
    project.study("there", dedent(STUDY) % (on, file, folder, more))
    return file


def generated(file: Path, folder: str, env: dict[str, str] | None = None) -> None:
    argv = [sys.executable, "-m", "tiercel", "dl", "generate", str(file), "--folder", folder]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr


def content(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of each file: they change where one is made anew."""
    files = [p for p in folder.rglob("*") if p.is_file()]
    return {str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}


@pytest.mark.parametrize("absolute", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_all_runs_train_on_it_and_leave_it(new_project, tmp_path: Path, absolute: bool) -> None:  # type: ignore[no-untyped-def]
    project = new_project()
    place = tmp_path / ("project/kept" if absolute else "scratch/sets/small")
    file = study(project, str(place) if absolute else "sets/small")
    generated(file, str(place))
    before = content(place)
    assert len(before) == 13  # 12 files of samples, and what says what they are
    done = project.tiercel("evaluate", "--study", "there")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    assert set(rows["operation"]) == {"train", "train-later"}
    assert (rows["samples"] == 12).all()
    # An NPZ of a sample of 100 x 100 bytes has a little more than that around it; all epochs read all of it.
    assert (rows["bytes_moved"] >= 12 * 10_000).all()
    assert content(place) == before


def test_a_wrong_one_is_named_before_training(new_project, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    project = new_project()
    place = tmp_path / "scratch" / "small"
    file = study(project, "small")
    refused = project.tiercel("evaluate", "--study", "there")
    assert refused.returncode == 2
    assert f"there: training.small: data_folder: {place}: no such folder" in " ".join(refused.stderr.split())
    generated(file, str(place))
    first = sorted((place / "train").iterdir())[0]
    first.write_bytes(first.read_bytes()[:-100])
    project.tiercel("evaluate", "--study", "there")
    records = [json.loads(p.read_text()) for p in project.results.rglob("raw/**/record.json")]
    assert records
    assert {r["status"] for r in records} == {"failed"}
    # Not the whole path: pytest's folders have the user's name, which records have not.
    assert all(f"/small/train/{first.name}: " in r["reason"] for r in records)


def test_a_folder_of_another_file_system_is_not_measured_as_this_one(new_project) -> None:  # type: ignore[no-untyped-def]
    project = new_project()
    if Path("/dev/shm").stat().st_dev == project.root.stat().st_dev:
        pytest.skip("no second file system")
    study(project, "/dev/shm")
    refused = project.tiercel("evaluate", "--study", "there")
    assert refused.returncode == 2
    assert "data_folder: /dev/shm: lies on /dev/shm, not on" in " ".join(refused.stderr.split())


@pytest.mark.nightly
def test_objects_that_are_there(new_project, gateway: Gateway) -> None:  # type: ignore[no-untyped-def]
    project = new_project()
    site = project.root / "site-configs" / "local" / "site.yaml"
    own = f"  objects: {{type: s3, bucket: data, endpoint: '{gateway.url}', scratch: there}}\n"
    site.write_text(f"{site.read_text().rstrip()}\n{own}")
    file = study(project, "sets/small", on="objects")
    generated(file, "s3://data/there/sets/small", gateway.environment)
    before, puts = gateway.objects("there"), len(gateway.requests("PutObject", "there/sets"))
    done = project.tiercel("evaluate", "--study", "there", env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    assert set(rows["operation"]) == {"train", "train-later"}
    assert gateway.objects("there") == before
    assert len(gateway.requests("PutObject", "there/sets")) == puts


@pytest.mark.parametrize(
    ("keys", "telling"),
    [
        ({"data_folder": "../x"}, "without .."),
        ({"data_folder": ""}, "must name a folder"),
        ({"data_folder": "x", "grow_with": "nodes"}, "data_folder excludes grow_with: nodes"),
        ({"data_folder": "x", "overrides": {"dataset.format": "synthetic"}}, "reads no dataset"),
    ],
)
def test_what_cannot_be_there_is_refused(tmp_path: Path, keys: dict[str, object], telling: str) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(FILE)
    with pytest.raises((ValueError, UserError), match=telling):
        DeepLearningWorkload.model_validate({"operation": "deep-learning", "workload": str(file), **keys})


def test_runs_without_it_keep_their_names(tmp_path: Path) -> None:
    """Results that were measured before the key was there go on."""
    from tiercel.study.plan import Configuration  # noqa: PLC0415

    from ..single_run import stack_on  # noqa: PLC0415

    file = tmp_path / "small.yaml"
    file.write_text(FILE)

    def identity(**keys: object) -> dict[str, object]:
        workload = DeepLearningWorkload.model_validate(
            {"operation": "deep-learning", "workload": str(file), **keys}
        )
        found: dict[str, object] = Configuration(
            site="s", study="t", experiment="e", name="w", workload=workload, stack=stack_on(tmp_path / "d"),
            engine="dlkernel", engine_version="1", launcher="fork", nodes=1, processes_per_node=1, seed=1,
        ).identity()["workload"]  # fmt: skip
        return found

    assert "data_folder" not in identity()
    assert identity(data_folder="x")["data_folder"] == "x"
