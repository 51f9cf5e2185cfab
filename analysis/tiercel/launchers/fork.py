"""No launcher: the engine forks its own processes on this node."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.launchers.base import Launcher, launchers


@launchers.register("fork")
class Fork(Launcher):
    name = "fork"
    mpi = False
    several_nodes = False

    def missing(self) -> str | None:
        return None

    def command(self, argv: Sequence[str], nodes: int, processes_per_node: int) -> list[str]:
        return list(argv)
