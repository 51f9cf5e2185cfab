"""Jobs that compete for several servers of the layer fairshare, as in section 5.6 of paper 001 (ThemisIO).

    lambda-500ms:
      operation: sharing-servers
      servers: 2
      exchange: 500ms                # lambda
      jobs:
        - {name: both, size: 16, processes: 4, servers: [0, 1], seconds: 6s}
        - {name: first, size: 8, processes: 2, servers: [0], seconds: 6s}
        - {name: second, size: 8, processes: 2, servers: [1], seconds: 6s}

The experiment starts the servers itself, on the storage, so it needs no layer in the stack. They tell
each other what their jobs used every `exchange` (the paper's lambda); 0 leaves that out.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tiercel.quantities import Duration
from tiercel.sharing.workload import CompetingJob, ContestWorkload
from tiercel.study.workloads.base import workload_kinds


class SpreadJob(CompetingJob):
    """A job, and the servers that its files lie on; its processes are dealt out over them."""

    servers: list[int] = Field(min_length=1, description="how many")

    @model_validator(mode="after")
    def _dealt(self) -> SpreadJob:
        if len(set(self.servers)) < len(self.servers) or min(self.servers) < 0:
            raise ValueError("servers: numbers from 0 on, each once")
        if self.processes < len(self.servers):
            raise ValueError("processes: at least one for each of the job's servers")
        return self


@workload_kinds.register("sharing-servers")
class SharingServersWorkload(ContestWorkload):
    """Jobs on several servers."""

    operation: Literal["sharing-servers"]
    jobs: list[SpreadJob] = Field(min_length=2, description="that compete")
    servers: int = Field(default=2, ge=2, le=16, description="how many")
    policy: str = Field(default="size-fair", description="a policy of the layer fairshare")
    exchange: Duration = Field(
        default=0.5, ge=0, description="lambda: time between the servers' job tables; 0: none"
    )
    interval: Duration = Field(default=0.05, ge=0.01, description="throughput is counted in these")

    @model_validator(mode="after")
    def _numbered(self) -> SharingServersWorkload:
        if any(server >= self.servers for job in self.jobs for server in job.servers):
            raise ValueError(f"jobs: servers are numbered from 0 to {self.servers - 1}")
        return self
