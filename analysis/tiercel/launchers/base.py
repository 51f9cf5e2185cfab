"""What a launcher is, and which one a site gets when it says ``auto``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from tiercel.registry import Registry


class Launcher(ABC):
    """Starts a command on `nodes` times `processes_per_node` processes."""

    name: str
    mpi: bool
    """Whether the processes find each other by MPI; otherwise the engine forks them itself."""

    @abstractmethod
    def missing(self) -> str | None:
        """Return what is lacking to use this launcher, or None."""

    @abstractmethod
    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        """Return the command line that starts `argv`."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables that the launcher itself needs."""
        return {}


launchers: Registry[type[Launcher]] = Registry("launcher")


def resolve(name: str) -> Launcher:
    """Return launcher `name`; ``auto`` is mpiexec where there is one, else fork. UserError for others."""
    if name != "auto":
        return launchers.get(name)()
    mpi = launchers.get("mpiexec")()
    return launchers.get("fork")() if mpi.missing() else mpi
