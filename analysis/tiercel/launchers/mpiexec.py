"""mpiexec of MPICH (Hydra) or Open MPI: the virtual environment's own first, then the one on PATH."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from tiercel.launchers.base import Launcher, launchers
from tiercel.programs import modules_hint, program


@cache
def _is_open_mpi() -> bool:
    path = program("mpiexec")
    if path is None:
        return False
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return "Open MPI" in answer.stdout or "OpenRTE" in answer.stdout


@launchers.register("mpiexec")
class Mpiexec(Launcher):
    name = "mpiexec"
    mpi = True

    def missing(self) -> str | None:
        return None if program("mpiexec") else f"no mpiexec beside Python or on PATH{modules_hint()}"

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        head = [str(program("mpiexec") or "mpiexec"), "-n", str(nodes * processes_per_node)]
        if _is_open_mpi():
            # Unbound, as everywhere: up to two processes it would bind each to a core.
            head += ["--oversubscribe", "--bind-to", "none"]
            head += ["--map-by", f"ppr:{processes_per_node}:node"] if nodes > 1 else []
        elif nodes > 1:
            head += ["-ppn", str(processes_per_node)]
        return [*head, *self.options, *argv]

    def environment(self) -> Mapping[str, str]:
        # Open MPI refuses to start as root without being told twice; containers often have only root.
        if _is_open_mpi():
            return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return super().environment()
