"""ibrun of TACC (Frontera), inside a job of Slurm."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("ibrun")
class Ibrun(Launcher):
    name = "ibrun"
    mpi = True
    program = "ibrun"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        # Its own variable says how many go on a node; `-n` alone would fill the first one up.
        head = ["env", f"IBRUN_TASKS_PER_NODE={processes_per_node}"]
        return [*head, "ibrun", "-n", str(nodes * processes_per_node), *self.options, *argv]
