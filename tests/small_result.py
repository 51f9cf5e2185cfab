"""A small real result that several tests share: two storages; data, metadata and a training; traced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tiercel.locked import FileLock
from tiercel.programs import program
from tiercel.runs.tracing import preload_library
from tiercel.site.mounts import mount_of, read_mounts

if TYPE_CHECKING:
    from .conftest import Project

SMALL = """
study: small
title: One of each
repetitions: {minimum: 3, maximum: 3}
twins: false
trace: true
timeout: 60s
engines: [iokernel, dlkernel]
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      cold-read: {operation: read, transfer_size: 64KiB, data_per_process: 1MiB, reorder: 1}
  metadata:
    processes_per_node: [2]
    workloads:
      small-files: {operation: metadata, items_per_process: 20}
  training:
    launcher: fork
    processes_per_node: [1]
    workloads:
      epochs:
        operation: deep-learning
        workload: resnet50-vast
        overrides:
          {dataset.num_files_train: 16, reader.batch_size: 4, train.computation_time: 0.001, train.epochs: 2}
"""


def measured_project(folder: Path) -> Project:
    """Return a project in `folder` whose study `small` was evaluated on two folders as storages."""
    from .conftest import CHECKOUT, Project  # noqa: PLC0415 (it imports this file)

    if program("iokernel") is None or preload_library() is None:
        pytest.skip("iokernel or DFTracer is not installed (make setup)")
    folder.mkdir()
    project = Project(folder)
    (folder / "workflows" / "dl-workloads").symlink_to(CHECKOUT / "workflows" / "dl-workloads")
    storages = ""
    for name in ("main", "other"):
        scratch = folder.parent / name
        scratch.mkdir()
        mount = mount_of(scratch, read_mounts())
        assert mount is not None
        keys = f'type: {mount.type}, mount: "{mount.point}", medium: {mount.medium}, scratch: "{scratch}"'
        storages += f"  {name}: {{{keys}}}\n"
    project.site("site: local\nlauncher: auto\nprocesses_per_node: 4\nstorages:\n" + storages)
    project.study("small", SMALL)
    done = project.tiercel("evaluate", "--study", "small")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with results, which no test changes: those that do take a copy. One for all workers."""
    from .conftest import Project  # noqa: PLC0415

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "measured"
    with FileLock(shared / "measured.lock", "another worker still measures", patience=900.0):
        if not (folder / "done").exists():
            folder.mkdir()
            measured_project(folder / "project")
            (folder / "done").touch()
    return Project(folder / "project")
