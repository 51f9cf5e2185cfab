"""What loader settings do for a real training: figure 13 of the DLIO paper (000).

The search (`optimise`) runs dlkernel, which emulates. Here a small network is trained on the same cold files,
read by the format's own library in an environment of DLIO; what counts is the time that it waits for data.
"""

from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree

from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.upstream.environment import environment_for
from tiercel.dl.verify.programs import Setting, Training, untraced
from tiercel.dl.workload import DLWorkload
from tiercel.errors import RunFailed, UserError
from tiercel.pagecache import evict


def framework_of(found: DLWorkload) -> str:
    """Return the framework that a real training of this workload runs, with its version.

    UserError where none reads its format, or none is installed.
    """
    reason = Training().missing(found)
    environment = environment_for(found.framework)
    if reason or environment is None:
        raise UserError(f"--real: {reason}")
    return f"{found.framework} {environment.tensorflow or environment.torch}"


def waited(workload: DeepLearningWorkload, dataset: Path, output: Path, processes: int) -> float:
    """Train for one epoch on the files of `dataset`, cold, and return the seconds that it waited for them."""
    found, _ = workload.resolved(1, processes)
    found = found.model_copy(update={"train": found.train.model_copy(update={"epochs": 1})})
    evict(path for path in dataset.rglob("*") if path.is_file())
    rmtree(output, ignore_errors=True)
    try:
        untraced(Training(), Setting(workload, found, dataset.parent, processes, made=dataset), output)
    except RunFailed as failure:
        raise UserError(f"--real: {failure}") from None
    return float(json.loads((output / "training.json").read_text())["wait_seconds"])
