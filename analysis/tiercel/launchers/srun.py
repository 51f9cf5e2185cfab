"""srun of Slurm, inside a job of Slurm. `--mpi=` of the site goes into launcher_options."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from tiercel.launchers import mpich
from tiercel.launchers.base import Launcher, launchers

#: What srun says when Slurm's controller is away, or started anew, just then. A pending step never began: as
#: ours run one after the other, it waits for none but one whose end the controller was not told.
_NO_CONTROLLER = re.compile(
    r"^srun: .*(?:Unable to contact slurm controller|Socket timed out on send/recv|Zero Bytes were transmit"
    r"|Cancelled pending job step|Unable to confirm allocation|Unable to create step .*: Connection reset)",
    re.MULTILINE | re.IGNORECASE,
)
#: Whose line comes first is chance: srun's, or that of Slurm's own process on the node.
_NO_MEMORY = re.compile(
    r"^(?:srun|slurmstepd\S*): .*(?:Out Of Memory$|Detected \d+ oom-kill event)", re.MULTILINE
)


@launchers.register("srun")
class Srun(Launcher):
    name = "srun"
    mpi = True
    program = "srun"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = ["srun", f"--nodes={nodes}", f"--ntasks={nodes * processes_per_node}"]
        # Block: neighbours in rank share a node, so that a shift by a node's processes leaves it.
        head += [f"--ntasks-per-node={processes_per_node}", "--distribution=block", "--kill-on-bad-exit=1"]
        # Unbound, as everywhere: bound to a core, a process with threads of its own would share it.
        return [*head, "--cpu-bind=none", *self.options, *argv]

    def environment(self) -> Mapping[str, str]:
        pmi2 = "--mpi=pmi2" in self.options or os.environ.get("SLURM_MPI_TYPE") == "pmi2"
        return {**super().environment(), **(mpich.short_addresses() if pmi2 else {})}

    def lost_contact(self, said: str) -> bool:
        return _NO_CONTROLLER.search(said) is not None

    def used_up_memory(self, said: str) -> bool:
        return _NO_MEMORY.search(said) is not None
