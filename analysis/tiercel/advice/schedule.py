"""How long a program would take, reckoned from its recipe and what each call takes on the way's storage.

For programs that are too long to be replayed with their thinking: the I/O alone is replayed, and each
stream's
calls and gaps are laid after one another, with the recipe's waits. The simplest of models: calls of
streams that
run side by side do not slow each other more than they did in the replay.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tiercel.placement.recipe import Recipe

_GROUP = {"R": 0, "W": 1, "S": 3, "D": 3}


def run_seconds(recipe: Recipe, seconds: npt.NDArray[np.float64], calls: npt.NDArray[np.float64]) -> float:
    """Return the time from the first call to the end of the last, in seconds.

    `seconds` and `calls`: of each file (rows) in reads, writes, metadata calls and syncs (columns), summed.
    """
    each = np.divide(seconds, calls, out=np.zeros_like(seconds), where=calls > 0)
    at = [0] * len(recipe.streams)
    ends: list[list[float]] = [[] for _ in recipe.streams]
    waiting: dict[tuple[int, int], list[int]] = {}
    ready = list(range(len(recipe.streams)))

    def missing(waits: list[tuple[int, int]]) -> tuple[int, int] | None:
        return next(((s, n) for s, n in waits if len(ends[s]) < n), None)

    while ready:
        stream = ready.pop()
        operations = recipe.streams[stream]
        while at[stream] <= len(operations):
            first = at[stream] == 0 and not ends[stream]
            waits = (recipe.begins[stream] if first else []) + (
                operations[at[stream]].waits if at[stream] < len(operations) else []
            )
            if at[stream] == len(operations):
                break
            if (mark := missing(waits)) is not None:
                waiting.setdefault(mark, []).append(stream)
                break
            o = operations[at[stream]]
            since = max([ends[stream][-1] if ends[stream] else 0.0, *(ends[s][n - 1] for s, n in waits if n)])
            ends[stream].append(since + o.gap / 1e9 + float(each[o.file, _GROUP.get(o.kind, 2)]))
            at[stream] += 1
            ready += waiting.pop((stream, at[stream]), [])
    return max((e[-1] for e in ends if e), default=0.0)
