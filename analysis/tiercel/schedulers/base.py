"""What a scheduler is to the rest of the project.

Snakemake submits the jobs: to Slurm by its Slurm executor, to the others by its cluster-generic executor
and the site's own scripts (``site-configs/<site>/submit``, ``status``, ``cancel``). An adapter says which
Snakemake resources make the right job, and finds jobs that a killed Snakemake left behind. To add one, write
a file with a class under ``@schedulers.register("name")`` in this folder, or name it in a subject.
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from tiercel.errors import UserError
from tiercel.programs import modules_hint
from tiercel.registry import Registry
from tiercel.site.model import Site, Storage
from tiercel.site.scheduler import SchedulerSettings
from tiercel.site.variables import expand
from tiercel.subjects import fill


@dataclass(frozen=True)
class Request:
    """What a batch of runs asks for."""

    site: Site
    settings: SchedulerSettings
    nodes: int
    minutes: int
    storages: Mapping[str, Storage] = field(default_factory=dict)
    """The storage systems that the batch measures, by name."""

    def each(self, key: str) -> list[str]:
        """Return what these storage systems have under `key`, each value once."""
        return sorted({getattr(storage, key) for storage in self.storages.values()} - {""})


@dataclass(frozen=True)
class Job:
    """A job of ours that the scheduler still knows."""

    id: str
    running: bool
    reason: str = ""
    """Why it waits, in the words of the scheduler; empty where it does not say."""
    stuck: bool = False
    """Whether it waits for somebody to change something, and not for its turn."""

    @property
    def words(self) -> str:
        return f"job {self.id} {'cannot start' if self.stuck else 'waits'}: {self.reason}"


class Scheduler(ABC):
    """One scheduler."""

    name: str
    programs: tuple[str, ...]
    """What must be on PATH where jobs are submitted; the first one submits."""
    marks: ClassVar[tuple[str, ...]] = ()
    """Programs of which it alone has one, where those in `programs` are of other schedulers, too."""
    scripts: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """What `tiercel site new --scheduler` writes into a site's folder: the shell scripts submit, status and
    cancel (see `schedulers.scripts`). None for Slurm, and for those with templates in site/templates."""
    allocates: ClassVar[bool] = False
    """Whether it makes the storage of a job, as `allocate` of a storage asks."""
    poll_seconds: float = 3.0
    """How often the scheduler is asked about jobs that are waited for."""

    def missing(self) -> str | None:
        """Return what is lacking to submit jobs from here, or None."""
        lacking = [p for p in self.programs if not shutil.which(p)]
        if not lacking:
            return None
        return f"no {', '.join(lacking)} on PATH: is this a login node of the site?{modules_hint()}"

    @abstractmethod
    def resources(self, request: Request) -> dict[str, int | str]:
        """Return the Snakemake resources of a job."""

    def environment(self) -> Mapping[str, str]:
        """Return variables for the programs that submit; what the user has set already stands."""
        return {}

    def prepare(self) -> None:  # noqa: B027 - most have nothing to do
        """Make this process, Snakemake's, ready to submit jobs; called before it submits the first."""

    def left_behind(self, site: str, folder: Path) -> list[Job]:
        """Return jobs of a Snakemake that was killed: those of `site` submitted from `folder`."""
        return []

    def cancel(self, jobs: Sequence[Job], folder: Path) -> None:
        """End jobs that left_behind() returned; `folder` is the one they were submitted from."""
        raise NotImplementedError

    def how_to_cancel(self, jobs: Sequence[Job]) -> str:
        """Return the command with which a user ends jobs."""
        raise NotImplementedError


schedulers: Registry[type[Scheduler]] = Registry("scheduler", partial(fill, "schedulers", __name__))


def scheduler_of(site: Site) -> Scheduler | None:
    """Return the adapter of a site's scheduler, None for a site without.

    UserError for an unknown one, and for storage that it does not make.
    """
    found = schedulers.get(site.scheduler.name)() if site.scheduler else None
    for name, storage in site.storages.items():
        if storage.allocate and not (found and found.allocates):
            able = ", ".join(each for each in schedulers if schedulers.get(each).allocates)
            raise UserError(
                f"site {site.site}: storages.{name}.allocate: only scheduler {able} makes storage"
            )
    return found


def account(settings: SchedulerSettings) -> str:
    """Return who pays, or nothing; UserError for an environment variable that is not set."""
    return expand(settings.account, "scheduler.account") if settings.account else ""
