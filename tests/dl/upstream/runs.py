"""What the tests of DLIO share: the recorded run, its workload, and the environments that are there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.running import deep_learning
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.upstream.environment import FOLDERS, DLIOEnvironment, environment_for
from tiercel.engines import Task

RECORDED = Path(__file__).parents[2] / "data" / "dlio"

#: As tests/data/dlio/README.md says.
SETTINGS: dict[str, Any] = {
    "dataset.num_files_train": 24, "dataset.num_files_eval": 8, "workflow.evaluation": True,
    "workflow.checkpoint": True, "model.model_size_bytes": 100000, "model.layer_parameters": [1000, 2000],
    "model.num_layers": 2, "reader.read_threads": 2, "train.epochs": 2, "dataset.record_length_bytes": 16384,
    "checkpoint.steps_between_checkpoints": 5,
}  # fmt: skip


def recorded(folder: Path) -> Path:
    """Copy the recorded run to `folder`, as an engine leaves it, and return it."""
    shutil.copytree(RECORDED / "resnet50-n2", folder / "dlio")
    shutil.copy(RECORDED / "resnet50-n2.evict.json", folder / "evict.json")
    return folder


def task(workload: DeepLearningWorkload, output: Path, processes: int = 2, data: str = "/d") -> Task:
    return Task(workload, 1, processes, Path(data), output, 7, "mpiexec")


def resnet(**more: Any) -> DeepLearningWorkload:
    return deep_learning("resnet50-vast", SETTINGS, **more)


def environment(framework: str) -> DLIOEnvironment:
    """Return the environment of a framework; the test skips where there is none."""
    found = environment_for(framework)
    if found is None:
        command = list(FOLDERS.values())[framework == "pytorch"]
        pytest.skip(f"no environment of DLIO with {framework} (`{command}` makes one)")
    return found
