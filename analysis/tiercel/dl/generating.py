"""Makes the dataset of a workload with dlkernel, and nothing else: on one node, or on all nodes of a job."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
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
from tiercel.units import format_duration

#: Seconds after which processes of several nodes must have met. A start of MPI that fails waits for ever.
START_LIMIT_S = 300.0
#: Seconds that a launcher has to end its processes when it is told to.
_GRACE_S = 10.0


@dataclass(frozen=True)
class Crew:
    """Who makes a dataset: so many nodes with so many processes each, started by a launcher."""

    launcher: Launcher
    nodes: int
    processes: int
    start_limit: float = START_LIMIT_S
    """Seconds in which those of several nodes must have met."""


def crew(nodes: int | None, processes: int, site: Site | None, start_limit: float = START_LIMIT_S) -> Crew:
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
    return Crew(launcher, nodes, processes, start_limit)


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
        *(["--mpi", "--say-started"] if who.nodes > 1 else ["--processes", str(who.processes)]),
        *(["--endpoint", json.dumps(folder.endpoint.as_dict())] if isinstance(folder, Location) else []),
    ]  # fmt: skip
    if who.nodes > 1:
        argv = who.launcher.command(argv, who.nodes, who.processes)
    code, said = _carried_out(argv, who)
    if code:
        lines = said.strip().splitlines() or [f"dlkernel {ending(code)}"]
        # A launcher adds words of its own to those of the process that failed.
        raise UserError(next((line for line in lines if line.startswith("dlkernel: ")), lines[-1]))
    made: dict[str, Any] = json.loads((output / "dlkernel.json").read_text())["generated"]
    return made


def _carried_out(argv: list[str], who: Crew) -> tuple[int, str]:
    """Run the processes; return the exit code and what they said of errors.

    Raises UserError where they never meet.
    """
    with TemporaryFile("w+", errors="replace") as said:  # no pipe: a launcher that says much must not wait
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True,
            preexec_fn=killed_with_parent,  # noqa: PLW1509
            env={**os.environ, **who.launcher.environment()},
        )  # fmt: skip
        try:
            # Once they have met, one that dies ends the others; making a dataset takes as long as it takes.
            assert process.stdout is not None
            if who.nodes > 1 and not select.select([process.stdout], [], [], who.start_limit)[0]:
                raise UserError(
                    f"{who.nodes * who.processes} processes on {who.nodes} nodes have not met after "
                    f"{format_duration(who.start_limit)}: MPI does not start there; other launcher_options "
                    "(Slurm: --mpi=pmi2, --mpi=pmix) of a --site may help, --nodes 1 goes without it"
                )
            process.communicate()
        finally:
            _end(process)
        said.seek(0)
        return process.returncode, said.read()


def _end(process: subprocess.Popen[str]) -> None:
    """End a launcher that still runs, with its processes."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
