"""Sharing: jobs that compete for one storage, as in section 5 of the ThemisIO paper (paper 001).

    background:
      operation: sharing
      jobs:
        - {name: foreground, size: 4, processes: 4, seconds: 6s}
        - {name: background, size: 1, processes: 2, start: 1s, seconds: 4s}

On a stack with the layer fairshare each job has its own ticket (size, user, group, priority); on a plain
storage they are ordinary processes. Before the contest the first job runs alone, for the slowdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Size
from tiercel.site.model import Name
from tiercel.study.workloads.base import Workload, workload_kinds

Pattern = Literal["cycle", "write", "read", "iops-stat", "iops-write-read"]


class IOJob(Document):
    """A job that only does I/O: whose it is, how large, and what its processes do."""

    name: Name
    size: int = Field(default=1, ge=1, description="nodes that the job counts as")
    user: int = Field(default=0, ge=0, description="accounted to; only compared with the other jobs'")
    group: int = Field(default=0, ge=0)
    priority: int = Field(default=1, ge=1)
    processes: int = Field(default=1, ge=1, le=1024)
    pattern: Pattern = Field(
        default="cycle", description="cycle: write a file, read it back, and so on (the paper's)"
    )
    transfer_size: Size = Field(default=1024**2, gt=0)
    file_size: Size = Field(default=10 * 1024**2, gt=0)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.pattern in ("cycle", "write", "read") and self.file_size < self.transfer_size:
            raise ValueError("file_size must not be less than transfer_size")
        return self

    def footprint(self) -> int:
        """Return the bytes of all its files."""
        return self.processes * max(self.file_size, self.transfer_size)


class CompetingJob(IOJob):
    """One of several jobs, with its time."""

    start: Duration = Field(default=0.0, ge=0)
    seconds: Duration = Field(gt=0)


class ContestWorkload(Workload):
    """Jobs that compete: what all kinds of such workloads have."""

    jobs: Sequence[CompetingJob] = Field(description="that compete")
    interval: Duration

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        names = [job.name for job in self.jobs]
        if len(set(names)) < len(names):
            raise ValueError("jobs: each needs a name of its own")
        first, last = self.contested
        if len(self.jobs) > 1 and last - first < 10 * self.interval:
            raise ValueError(f"jobs: all of them run together for {max(0, last - first):g} s only")
        return self

    @property
    def contested(self) -> tuple[float, float]:
        """When all jobs run: start and end, seconds."""
        return max(j.start for j in self.jobs), min(j.start + j.seconds for j in self.jobs)

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        return sum(job.footprint() for job in self.jobs) + (1 << 20)

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {"transfer_size": self.jobs[0].transfer_size, "layout": "file-per-process"}


@workload_kinds.register("sharing")
class SharingWorkload(ContestWorkload):
    """Jobs that compete for one storage."""

    operation: Literal["sharing"]
    jobs: list[CompetingJob] = Field(min_length=1, description="that compete")
    alone: Duration = Field(default=2.0, gt=0, description="time that the first job has for itself before")
    interval: Duration = Field(default=0.1, ge=0.01, description="throughput is counted in these")
