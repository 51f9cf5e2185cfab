"""flux run, inside a job of Flux."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("flux")
class Flux(Launcher):
    name = "flux"
    mpi = True
    program = "flux"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = ["flux", "run", f"--nodes={nodes}", f"--ntasks={nodes * processes_per_node}", "--exclusive"]
        # Unbound, as everywhere: bound to a core, a process with threads of its own would share it.
        return [*head, "--setopt=cpu-affinity=off", *self.options, *argv]
