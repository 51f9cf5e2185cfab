"""What a launcher is, and which one a site gets when it says ``auto``.

To add one, write a file with a class under ``@launchers.register("name")`` in this folder, or name it in a
subject (`tiercel.subjects`).
"""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial

from tiercel.launchers import mpich
from tiercel.programs import modules_hint
from tiercel.registry import Registry
from tiercel.site.variables import expand
from tiercel.subjects import fill


class Launcher(ABC):
    """Starts a command on `nodes` times `processes_per_node` processes."""

    name: str
    mpi: bool
    """Whether the processes find each other by MPI; otherwise the engine forks them itself."""
    several_nodes: bool = True
    program: str = ""
    """The program that it calls, looked for on PATH."""

    def __init__(self, options: Sequence[str] = ()) -> None:
        """`options`: more words of a site for every start; $VARIABLES are expanded when it starts."""
        self._options = tuple(options)

    @property
    def options(self) -> list[str]:
        return [expand(word, "launcher_options") for word in self._options]

    def missing(self) -> str | None:
        """Return what is lacking to use this launcher, or None."""
        return None if shutil.which(self.program) else f"no {self.program} on PATH{modules_hint()}"

    @abstractmethod
    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        """Return the command line that starts `argv`."""

    def environment(self) -> Mapping[str, str]:
        """Return environment variables that the launcher itself needs, and the MPI that it starts."""
        return mpich.provider() if self.mpi else {}

    def lost_contact(self, said: str) -> bool:
        """Whether it says that it could start nothing as nobody answered it: no word on the command."""
        return False

    def used_up_memory(self, said: str) -> bool:
        """Whether it says that processes were killed as the job had no more memory for them."""
        return False


launchers: Registry[type[Launcher]] = Registry("launcher", partial(fill, "launchers", __name__))


def resolve(name: str, options: Sequence[str] = ()) -> Launcher:
    """Return launcher `name`; ``auto`` is mpiexec where there is one, else fork. UserError for others."""
    if name != "auto":
        return launchers.get(name)(options)
    mpi = launchers.get("mpiexec")(options)
    return launchers.get("fork")() if mpi.missing() else mpi
