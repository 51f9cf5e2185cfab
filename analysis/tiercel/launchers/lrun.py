"""lrun of LLNL, a simpler face of jsrun and srun."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("lrun")
class Lrun(Launcher):
    name = "lrun"
    mpi = True
    program = "lrun"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        return ["lrun", f"-N{nodes}", f"-T{processes_per_node}", *self.options, *argv]
