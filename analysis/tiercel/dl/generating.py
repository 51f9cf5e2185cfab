"""Makes the dataset of a workload with dlkernel, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tiercel.children import ending, killed_with_parent
from tiercel.dl.files.keys import refusals_on_objects
from tiercel.dl.files.spec import dataset_spec_of
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.errors import UserError
from tiercel.s3.endpoint import Location


def generate_only(
    workload: DeepLearningWorkload, folder: Path | Location, output: Path, processes: int
) -> dict[str, Any]:
    """Make the dataset in `folder`; return files, bytes, kept (there already) and seconds.

    Raises UserError for whatever dlkernel says is wrong.
    """
    found, scale = workload.resolved(1, processes)
    if found.dataset.format == "synthetic":
        raise UserError(f"workload {workload.workload}: its samples are made in memory: there is no dataset")
    if isinstance(folder, Location) and (refused := refusals_on_objects(found)):
        raise UserError(f"workload {workload.workload}: {'; '.join(f'{k}: {r}' for k, r in refused.items())}")
    spec = dataset_spec_of(found, scale)
    argv = [
        sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec), "--data", str(folder),
        "--output", str(output), "--processes", str(processes),
        *(["--endpoint", json.dumps(folder.endpoint.as_dict())] if isinstance(folder, Location) else []),
    ]  # fmt: skip
    answer = subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=killed_with_parent)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or [f"dlkernel {ending(answer.returncode)}"]
        raise UserError(lines[-1])
    made: dict[str, Any] = json.loads((output / "dlkernel.json").read_text())["generated"]
    return made
