"""Slurm, through Snakemake's Slurm executor (checked with its version 2.8 and Slurm 22.05)."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tiercel.errors import UserError
from tiercel.schedulers.base import Job, Request, Scheduler, account, schedulers
from tiercel.schedulers.slurm_executor import mend

#: Reasons for which jobs wait their turn; with any other one somebody must change something.
_TURN = {"None", "Priority", "Resources", "Licenses", "BeginTime", "Reservation", "Prolog", "Cleaning"}
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "SUSPENDED", "REQUEUE_HOLD", "SPECIAL_EXIT"}


@schedulers.register("slurm")
class Slurm(Scheduler):
    name = "slurm"
    programs = ("sbatch", "squeue", "scancel", "srun")

    def resources(self, request: Request) -> dict[str, int | str]:
        settings = request.settings
        # Whole nodes: a neighbour on the same node would be measured too.
        extra = ["--exclusive", *settings.options]
        if licences := request.each("licence"):
            extra.append(f"--licenses={','.join(licences)}")
        found: dict[str, int | str] = {
            "nodes": request.nodes,
            # The executor refuses an MPI job of one task; runs take what they need of these by srun.
            "tasks_per_node": max(2, request.site.processes_per_node),
            "runtime": request.minutes,
            # No --mem from the executor (else Snakemake's default of 1,000 MB): see environment().
            "mem_mb": 0,
            "mpi": "srun",  # the executor then starts the batch itself, without an srun around it
            "slurm_extra": " ".join(shlex.quote(word) for word in extra),
        }
        if settings.partition:
            found["slurm_partition"] = settings.partition
        if settings.account:
            found["slurm_account"] = account(settings)
        return found

    def environment(self) -> Mapping[str, str]:
        """All memory of the nodes (sbatch --mem=0): `--exclusive` gives cores alone, and with
        ConstrainRAMSpace the page cache would be held to the partition's default.

        As a variable, because the executor keeps `--mem` to itself and leaves a zero out.
        """
        return {"SBATCH_MEM_PER_NODE": "0"}

    def prepare(self) -> None:
        # Snakemake imports its plugins when it starts; a site's own scripts (Frontera) do without this one.
        if plugin := sys.modules.get("snakemake_executor_plugin_slurm"):
            mend(plugin)

    def left_behind(self, site: str, folder: Path) -> list[Job]:
        # The executor names jobs <prefix>_<uuid of its run>, a site's own script <prefix>: the site's name.
        found = []
        for line in _squeue("--me", "--format=%i|%T|%j|%r|%Z").splitlines():
            number, state, name, reason, where = line.split("|", 4)
            ours = name == f"tiercel-{site}" or name.startswith(f"tiercel-{site}_")
            if ours and where == str(folder):
                waits = state in _WAITING
                said = reason if waits and reason != "None" else ""
                found.append(Job(number, not waits, said, waits and reason not in _TURN))
        return found

    def cancel(self, jobs: Sequence[Job], folder: Path) -> None:
        subprocess.run(["scancel", *(job.id for job in jobs)], capture_output=True, timeout=60, check=False)

    def how_to_cancel(self, jobs: Sequence[Job]) -> str:
        return " ".join(["scancel", *(job.id for job in jobs)])


def _squeue(*options: str) -> str:
    command = ["squeue", "--noheader", *options]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"scheduler slurm: squeue does not answer: {error}") from None
    if answer.returncode:
        said = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise UserError(f"scheduler slurm: squeue does not answer: {said}")
    return answer.stdout
