"""A real application beside a background job, as in section 5.5 of the ThemisIO paper (paper 001).

    lammps:
      operation: sharing-application
      application: lammps
      size: 4
      background: {processes: 2}

`application: command` is any program: `command` its words, in which {folder} is its folder on the storage,
`prepare` those of what makes its input there before each run, `data` the bytes that it has there at most.

The application runs alone, then beside the background job, then alone again, each time in an empty folder.
On a stack with the layer fairshare both have tickets; `size`, `user`, `group` and `priority` are what these
say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tiercel.quantities import Duration, Size
from tiercel.sharing.workload import IOJob
from tiercel.site.model import Name
from tiercel.study.workloads.base import Workload, workload_kinds

Application = Literal["lammps", "dlkernel", "h5py", "command"]
#: Bytes on the storage at `work: 1`, generously.
_BYTES = {"lammps": 64 << 20, "dlkernel": 160 << 20, "h5py": 160 << 20}


class BackgroundJob(IOJob):
    """The job that disturbs: it does I/O from before the application's start to after its end."""

    name: Name = "background"
    user: int = Field(default=1, ge=0, description="another one than the application's")
    group: int = Field(default=1, ge=0, description="its number, for the policy")
    processes: int = Field(default=2, ge=1, le=1024)


@workload_kinds.register("sharing-application")
class SharingApplicationWorkload(Workload):
    """An application with a background job."""

    operation: Literal["sharing-application"]
    application: Application = Field(description="what is slowed down")
    command: list[str] = Field(default=[], description="with application: command; {folder} is its own")
    prepare: list[str] = Field(default=[], description="run before each run of it, to make its input")
    data: Size | None = Field(default=None, ge=1, description="bytes that it has on the storage at most")
    work: float = Field(default=1.0, gt=0, le=1000, description="how much it does; 1 is a few seconds")
    size: int = Field(default=4, ge=1, description="nodes that the application counts as")
    user: int = Field(default=0, ge=0, description="its number, for the policy")
    group: int = Field(default=0, ge=0, description="its number, for the policy")
    priority: int = Field(default=1, ge=1, description="for the policy")
    background: BackgroundJob = Field(default=BackgroundJob(), description="the job beside it")
    longest: Duration = Field(default=60.0, gt=0, description="the application must end within it")
    interval: Duration = Field(default=0.1, ge=0.01, description="throughput is counted in these")

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.background.name == self.application:
            raise ValueError("background: needs another name than the application")
        return self

    @model_validator(mode="after")
    def _whose_command(self) -> Self:
        own = self.application == "command"
        if own and not (self.command and self.command[0] and self.data):
            raise ValueError("application: command needs command (a list of words) and data (a size)")
        if not own and (self.command or self.prepare or self.data is not None):
            raise ValueError(
                f"command, prepare and data are for application: command, not {self.application}"
            )
        return self

    @property
    def optional(self) -> bool:
        """Whether a study goes on without this workload where the application is not installed."""
        return self.application == "lammps"

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        own = self.data or round(_BYTES[self.application] * max(1.0, self.work))
        return own + self.background.footprint() + (1 << 20)

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {"transfer_size": self.background.transfer_size}
