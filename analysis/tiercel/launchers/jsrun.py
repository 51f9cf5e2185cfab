"""jsrun of IBM Spectrum LSF (Lassen, Summit): one resource set with all cores on each node."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("jsrun")
class Jsrun(Launcher):
    name = "jsrun"
    mpi = True
    program = "jsrun"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = ["jsrun", f"--nrs={nodes}", "--rs_per_host=1", f"--tasks_per_rs={processes_per_node}"]
        head += ["--cpu_per_rs=ALL_CPUS", "--launch_distribution=packed", "--bind=none"]
        return [*head, *self.options, *argv]
