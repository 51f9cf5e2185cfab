"""sharing: jobs that compete (fairshare-load of native/fairshare), started together and measured together."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.errors import RunFailed
from tiercel.programs import program
from tiercel.study.workloads import SharingWorkload, Workload

RESULT = "sharing.json"


@engines.register("sharing")
class Sharing(Engine):
    name = "sharing"
    needs_mpi = False

    def find(self) -> Installation | None:
        path = program("fairshare-load")
        return Installation(self.name, "1", {"load": path}) if path else None

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, SharingWorkload):
            return "the engine sharing runs competing jobs only (operation: sharing)"
        return "competing jobs are started on one node" if nodes > 1 else None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        assert isinstance(task.workload, SharingWorkload)
        document = task.workload.model_dump_json()
        argv = (
            sys.executable, "-m", "tiercel.sharing.experiment", str(installation.programs["load"]),
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
            raise RunFailed(f"{RESULT} is not a whole result: {error}") from None
        rows.append(
            Measurement(
                operation="all-jobs",
                phase=len(rows),
                bandwidth=total["bytes_per_second"] or None,
                operation_rate=total["operations_per_second"],
                total_time=total["seconds"],
                seconds_to_share=total["seconds_to_share"],
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
        share=job["share"],
        entitled_share=job["entitled"],
        share_deviation=job["deviation"],
        slowdown=job["slowdown"],
    )
