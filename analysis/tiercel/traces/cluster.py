"""Analyses and reading on a Dask cluster: the same functions on parts of a trace, which add up to the whole.

Dask is optional; this module only uses the client that it is given. The cache folder must be one that all
workers see (``cache=`` on a shared file system).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

Result = TypeVar("Result")

#: Parts for each worker: a few, so that uneven parts even out.
_PARTS_PER_WORKER = 2
_CONDITIONS = {"rank": "rank % {parts} = {number}", "file": "hash(file) % {parts} = {number}"}


def spread(
    frame: IOFrame, by: Literal["rank", "file"], function: Callable[..., Result], *arguments: Any
) -> list[Result]:
    """Call ``function(part, *arguments)`` for parts of the frame and return the results.

    Without a client there is one part, the frame itself. All events of a rank (or on a file) are in one part.
    """
    if frame.client is None:
        return [function(frame, *arguments)]
    parts = _PARTS_PER_WORKER * workers(frame.client)
    # What keeps temporary folders alive stays here: it cannot travel, and this frame outlives the call.
    bare = replace(frame, client=None, _kept=None, _tables={})
    condition = _CONDITIONS[by]
    pieces = [bare.where(condition.format(parts=parts, number=number)) for number in range(parts)]
    return run(frame.client, function, [(piece, *arguments) for piece in pieces])


def run(client: Any, function: Callable[..., Result], calls: Sequence[tuple[Any, ...]]) -> list[Result]:
    """Call `function` once for each tuple of arguments, on the workers."""
    futures = [client.submit(function, *arguments, pure=False) for arguments in calls]
    results: list[Result] = client.gather(futures)
    return results


def workers(client: Any) -> int:
    return max(len(client.scheduler_info()["workers"]), 1)
