"""What an engine is to the rest of the project.

An engine is the program that does the I/O. Its adapter renders command lines from a workload and
parses what they left behind; nothing else in the project knows an engine's options. To add one,
write a file with a class under ``@engines.register("name")`` in this folder, or name it in a
subject (`tiercel.subjects`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from tiercel.engines.measurement import Measurement, Role
from tiercel.engines.plausibility import check_plausible
from tiercel.engines.within import Within
from tiercel.errors import UserError
from tiercel.programs import Installation
from tiercel.registry import Registry
from tiercel.s3.endpoint import Location
from tiercel.site.model import ONLY_DL
from tiercel.study.workloads import Workload
from tiercel.subjects import fill

__all__ = ["Engine", "Installation", "Measurement", "Role", "Step", "Task", "engines"]


@dataclass(frozen=True)
class Task:
    """One run, as an adapter sees it."""

    workload: Workload
    nodes: int
    processes_per_node: int
    data: Path
    """Folder on the storage under test; exists, empty, this run's own."""
    output: Path
    """Folder for native results; never on the storage under test."""
    seed: int
    launcher: str
    """Name of the launcher that will start the parallel steps."""
    elsewhere: Mapping[str, Path | Location] = field(default_factory=dict)
    """Parts of the data (dataset, checkpoints) that do not lie below `data` by their names; on object storage
    all that there are."""

    def place(self, part: str) -> Path | Location:
        """Return where a part of the data lies."""
        return self.elsewhere.get(part, self.data / part)

    def folder(self, part: str) -> Path:
        """Return the folder of a part of the data, for engines that know files only (else UserError)."""
        found = self.place(part)
        if isinstance(found, Location):
            raise UserError(f"{found} is object storage: {ONLY_DL}")
        return found

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node


@dataclass(frozen=True)
class Step:
    """One command of a run. The steps of a run go one after the other; the first failure ends it."""

    name: str
    argv: tuple[str, ...]
    launch: Literal["parallel", "once"] = "parallel"
    """parallel: on all processes by the site's launcher (or by itself, where it forks); once: on one node."""
    environment: Mapping[str, str] = field(default_factory=dict)
    ok_codes: tuple[int, ...] = (0,)


class Engine(ABC):
    """The adapter of one engine."""

    name: str
    needs_mpi: bool = True
    """Whether its parallel steps need an MPI launcher; otherwise it can start its processes itself."""
    own_processes: bool = False
    """Whether the workload alone says how many processes there are: `processes_per_node` must be 1."""
    measures: bool = True
    """Whether it does any I/O: a simulation is no engine of a real site."""

    @abstractmethod
    def find(self) -> Installation | None:
        """Return where the engine is installed, or None."""

    @abstractmethod
    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        """Return why this engine cannot do `workload`, or None when it can."""

    def unsupported_started_by(self, workload: Workload, launcher: str) -> str | None:
        """Return why this engine cannot do `workload` in processes that `launcher` starts, or None."""
        return None

    def unsupported_on_objects(self, workload: Workload) -> str | None:
        """Return why this engine cannot do `workload` on object storage, or None when it can."""
        return ONLY_DL

    def without_effect(self, workload: Workload) -> list[str]:
        """Return the keys that `workload` states and that do nothing on this engine, which a plan tells."""
        return []

    @abstractmethod
    def steps(self, task: Task, installation: Installation) -> list[Step]:
        """Return the commands of a run."""

    def tracing(self, folder: Path) -> Mapping[str, str] | None:
        """Return the variables with which the engine itself writes ``trace/`` into a run's folder.

        None: it does not; a tracer's preload library is put before it.
        """
        return None

    def within(self, task: Task, output: Path) -> list[Within]:
        """Return what went on within the measured phases of a finished run, where it was recorded.

        RunFailed as for `parse`.
        """
        return []

    @abstractmethod
    def parse(self, task: Task, output: Path) -> list[Measurement]:
        """Return the numbers in `output`, the folder of a finished run.

        Raises RunFailed, with the reason, for a missing, truncated or contradictory result: a
        half-written result never becomes a number.
        """

    def measurements(self, task: Task, output: Path, walls: Sequence[float]) -> list[Measurement]:
        """Return the numbers in `output`, where they can be true (engines.plausibility; else RunFailed).

        `walls`: seconds that tiercel measured around each command of the run.
        """
        found = self.parse(task, output)
        check_plausible(found, walls, task.nodes)
        return found


engines: Registry[type[Engine]] = Registry("engine", partial(fill, "engines", __name__))
