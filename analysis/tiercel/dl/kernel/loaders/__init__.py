"""Loaders: how samples get from files to the training loop, as the frameworks do it."""

from __future__ import annotations

from collections.abc import Callable

from tiercel.dl.kernel.loaders.base import Batch, Loader, Usage, Work
from tiercel.dl.kernel.loaders.direct import Direct
from tiercel.dl.kernel.loaders.processes import Processes
from tiercel.dl.kernel.loaders.stream import Stream
from tiercel.dl.kernel.loaders.threads import Threads

__all__ = ["Batch", "Loader", "Usage", "Work", "loader_for"]


def loader_for(work: Work) -> Loader:
    """Return the loader that the workload asks for."""
    if work.handler.in_groups:
        from tiercel.dl.kernel.loaders.groups import Groups  # noqa: PLC0415 (one format of many needs it)

        return Groups(work)
    if work.handler.streams:
        return Stream(work)
    kinds: dict[str, Callable[[Work], Loader]] = {"none": Direct, "processes": Processes, "threads": Threads}
    return kinds[work.spec.loader](work)
