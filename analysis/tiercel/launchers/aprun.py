"""aprun of Cray ALPS (Theta), inside a job of Cobalt."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("aprun")
class Aprun(Launcher):
    name = "aprun"
    mpi = True
    program = "aprun"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = ["aprun", "-n", str(nodes * processes_per_node), "-N", str(processes_per_node), "-cc", "none"]
        return [*head, *self.options, *argv]
