"""srun of Slurm, inside a job of Slurm. `--mpi=` of the site goes into launcher_options."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from tiercel.launchers.base import Launcher, launchers
from tiercel.programs import program


@cache
def _networks() -> frozenset[str]:
    """Return the network libraries of an MPICH that has several: its first is the one that it takes.

    Slurm's plug-in for PMI-2 reads what MPICH tells it in pieces of 1,024 bytes, and takes the second piece
    for another command. Addresses of UCX are longer than that on machines with several networks: MPI_Init
    fails, or waits for ever (mpich issue 6924). Those of libfabric are short.
    """
    path = program("mpichversion")
    if path is None:
        return frozenset()
    answer = subprocess.run([path], capture_output=True, text=True, timeout=60, check=False)
    device = next((line for line in answer.stdout.splitlines() if line.startswith("MPICH Device:")), "")
    return frozenset(device.partition("ch4:")[2].split())


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
        if pmi2 and "MPIR_CVAR_CH4_NETMOD" not in os.environ and {"ucx", "ofi"} <= _networks():
            return {"MPIR_CVAR_CH4_NETMOD": "ofi"}
        return {}
