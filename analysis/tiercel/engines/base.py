"""What an engine is to the rest of the project.

An engine is the program that does the I/O. Its adapter renders command lines from a workload and
parses what they left behind; nothing else in the project knows an engine's options. To add one,
write a file with a class under ``@engines.register("name")`` and import it in ``__init__``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tiercel.errors import UserError
from tiercel.programs import Installation
from tiercel.registry import Registry
from tiercel.s3.endpoint import Location
from tiercel.site.model import ONLY_DL
from tiercel.study.workloads import Workload

__all__ = ["Engine", "Installation", "Measurement", "Role", "Step", "Task", "engines"]

Role = Literal["measured", "setup"]


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


@dataclass
class Measurement:
    """Numbers of one phase of one run. Units: bytes, seconds, operations; None where an engine does not say.

    Definitions are IOR's (see native/iokernel/README.md): `bandwidth` is bytes moved over `total_time`,
    from the first open to the last close; `operation_rate` is operations over `total_time`.
    """

    operation: str
    role: Role = "measured"
    phase: int = 0
    access: str | None = None
    bandwidth: float | None = None
    operation_rate: float | None = None
    bytes_moved: int | None = None
    bytes_expected: int | None = None
    operations: int | None = None
    total_time: float | None = None
    open_time: float | None = None
    transfer_time: float | None = None
    close_time: float | None = None
    latency_mean: float | None = None
    latency_p50: float | None = None
    latency_p90: float | None = None
    latency_p99: float | None = None
    latency_p999: float | None = None
    latency_max: float | None = None
    cpu_user: float | None = None
    cpu_system: float | None = None
    resident_fraction: float | None = None
    resident_method: str | None = None
    memory_backed: bool | None = None
    cross_node_fraction: float | None = None
    task_offset: int | None = None
    stonewall_hit: bool | None = None
    clock_skew: float | None = None
    began: float | None = None
    epochs: int | None = None
    samples: int | None = None
    samples_per_second: float | None = None
    au: float | None = None
    au_goal: float | None = None
    hit_share: float | None = None
    io_time: float | None = None
    overlapped_io: float | None = None
    nonoverlapped_io: float | None = None
    compute_time: float | None = None
    compute_alone: float | None = None
    app_throughput: float | None = None
    system_throughput: float | None = None
    share: float | None = None
    entitled_share: float | None = None
    share_deviation: float | None = None
    slowdown: float | None = None
    slowdown_allowed: float | None = None
    slowdown_noise: float | None = None
    seconds_to_share: float | None = None


class Engine(ABC):
    """The adapter of one engine."""

    name: str
    needs_mpi: bool = True
    """Whether its parallel steps need an MPI launcher; otherwise it can start its processes itself."""

    @abstractmethod
    def find(self) -> Installation | None:
        """Return where the engine is installed, or None."""

    @abstractmethod
    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        """Return why this engine cannot do `workload`, or None when it can."""

    def unsupported_on_objects(self, workload: Workload) -> str | None:
        """Return why this engine cannot do `workload` on object storage, or None when it can."""
        return ONLY_DL

    @abstractmethod
    def steps(self, task: Task, installation: Installation) -> list[Step]:
        """Return the commands of a run."""

    def tracing(self, folder: Path) -> Mapping[str, str] | None:
        """Return the variables with which the engine itself writes ``trace/`` into a run's folder.

        None: it does not; a tracer's preload library is put before it.
        """
        return None

    @abstractmethod
    def parse(self, task: Task, output: Path) -> list[Measurement]:
        """Return the numbers in `output`, the folder of a finished run.

        Raises RunFailed, with the reason, for a missing, truncated or contradictory result: a
        half-written result never becomes a number.
        """


engines: Registry[type[Engine]] = Registry("engine")
