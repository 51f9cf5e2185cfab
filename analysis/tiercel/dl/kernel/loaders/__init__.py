"""Loaders: how samples get from files to the training loop, as the frameworks do it."""

from __future__ import annotations

from collections.abc import Callable

from tiercel.dl.kernel.formats import Format
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.loaders.base import Batch, Loader, Usage, Work
from tiercel.dl.kernel.loaders.direct import Direct
from tiercel.dl.kernel.loaders.processes import Processes
from tiercel.dl.kernel.loaders.stream import Stream
from tiercel.dl.kernel.loaders.threads import Threads
from tiercel.dl.kernel.spec import Spec

__all__ = ["Batch", "Loader", "Usage", "Work", "by_files", "loader_for"]


def by_files(spec: Spec, handler: Format, calls: IO) -> bool:
    """Return whether each process has whole files of its own, and not samples of any."""
    return handler.streams or _ahead(spec, calls)


def _ahead(spec: Spec, calls: IO) -> bool:
    return spec.object_window > 0 and calls.of_objects


def loader_for(work: Work) -> Loader:
    """Return the loader that the workload asks for."""
    if work.handler.in_groups:
        from tiercel.dl.kernel.loaders.groups import Groups  # noqa: PLC0415 (one format of many needs it)

        return Groups(work)
    if _ahead(work.spec, work.calls):
        from tiercel.dl.kernel.loaders.objects import WholeObjects  # noqa: PLC0415

        return WholeObjects(work)
    if work.handler.streams:
        return Stream(work)
    kinds: dict[str, Callable[[Work], Loader]] = {"none": Direct, "processes": Processes, "threads": Threads}
    return kinds[work.spec.loader](work)
