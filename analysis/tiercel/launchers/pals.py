"""mpiexec of HPE's PALS (Parallel Application Launch Service), on HPE Cray machines under PBS.

Launcher `mpiexec` prefers the program of the virtual environment, which does not reach these nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("pals")
class Pals(Launcher):
    name = "pals"
    mpi = True
    program = "mpiexec"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = ["mpiexec", "-n", str(nodes * processes_per_node), "--ppn", str(processes_per_node)]
        return [*head, "--cpu-bind", "none", *self.options, *argv]
