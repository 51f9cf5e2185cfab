"""Makes the dataset of a workload with dlkernel, and nothing else: on one node, or on all nodes of a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.children import ending, killed_with_parent
from tiercel.dl.engine import has_mpi4py
from tiercel.dl.files.keys import refusals_on_objects
from tiercel.dl.files.spec import dataset_spec_of
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.errors import UserError
from tiercel.launchers import Launcher, resolve
from tiercel.s3.endpoint import Location
from tiercel.site.model import Site


@dataclass(frozen=True)
class Crew:
    """Who makes a dataset: so many nodes with so many processes each, started by a launcher."""

    launcher: Launcher
    nodes: int
    processes: int


def crew(nodes: int | None, processes: int, site: Site | None) -> Crew:
    """Return who makes a dataset: `nodes` are those of the user's job, which a launcher reaches.

    Raises UserError where the job has several nodes and nobody says how many are meant, or where nothing
    starts processes on them.
    """
    job = _nodes_of_job()
    if nodes is None and job > 1:
        raise UserError(
            f"this job has {job} nodes: --nodes {job} makes the dataset on all of them, --nodes 1 on this one"
        )
    if nodes in (None, 1):
        return Crew(resolve("fork"), 1, processes)
    assert nodes is not None
    if site is None and not job:
        raise UserError(
            f"--nodes {nodes}: this is no job of Slurm: --site names the site whose launcher it is"
        )
    if job and nodes > job:
        raise UserError(f"--nodes {nodes}: this job has {job}")
    launcher = resolve(site.launcher, site.launcher_options) if site else resolve("srun")
    if not launcher.several_nodes:
        raise UserError(f"--nodes {nodes}: launcher {launcher.name} starts nothing on other nodes")
    if missing := launcher.missing():
        raise UserError(f"--nodes {nodes}: launcher {launcher.name}: {missing}")
    if not has_mpi4py():
        raise UserError(f"--nodes {nodes}: several nodes need mpi4py, which is not installed")
    return Crew(launcher, nodes, processes)


def _nodes_of_job() -> int:
    """Return the nodes of the Slurm job that this process is in, 0 where it is in none."""
    stated = os.environ.get("SLURM_JOB_NUM_NODES", "")
    return int(stated) if stated.isdigit() else 0


def generate_only(
    workload: DeepLearningWorkload, folder: Path | Location, output: Path, who: Crew
) -> dict[str, Any]:
    """Make the dataset in `folder`; return files, bytes, kept (there already), seconds, and files of each
    host.

    Raises UserError for whatever dlkernel says is wrong.
    """
    found, scale = workload.resolved(who.nodes, who.processes)
    if found.dataset.format == "synthetic":
        raise UserError(f"workload {workload.workload}: its samples are made in memory: there is no dataset")
    if isinstance(folder, Location) and (refused := refusals_on_objects(found)):
        raise UserError(f"workload {workload.workload}: {'; '.join(f'{k}: {r}' for k, r in refused.items())}")
    spec = dataset_spec_of(found, scale)
    argv = [
        sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec), "--data", str(folder),
        "--output", str(output),
        *(["--mpi"] if who.nodes > 1 else ["--processes", str(who.processes)]),
        *(["--endpoint", json.dumps(folder.endpoint.as_dict())] if isinstance(folder, Location) else []),
    ]  # fmt: skip
    if who.nodes > 1:
        argv = who.launcher.command(argv, who.nodes, who.processes)
    answer = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        preexec_fn=killed_with_parent, env={**os.environ, **who.launcher.environment()},
    )  # fmt: skip
    if answer.returncode:
        lines = answer.stderr.strip().splitlines() or [f"dlkernel {ending(answer.returncode)}"]
        # A launcher adds words of its own to those of the process that failed.
        raise UserError(next((line for line in lines if line.startswith("dlkernel: ")), lines[-1]))
    made: dict[str, Any] = json.loads((output / "dlkernel.json").read_text())["generated"]
    return made
