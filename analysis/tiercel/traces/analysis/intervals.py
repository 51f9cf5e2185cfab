"""Lengths of unions, intersections and differences of many half-open intervals, for many groups at once.

Times are whole nanoseconds. Each group (rank) is shifted by a multiple of the span, so that groups never
touch and one sort serves all. |A and B| = |A| + |B| - |A or B|, so intersections need no sweep of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Disjoint intervals in order: `starts[i] < ends[i] < starts[i + 1]`."""

    starts: Ints
    ends: Ints

    @property
    def length(self) -> int:
        return int((self.ends - self.starts).sum())

    def covered(self, edges: npt.NDArray[Any]) -> Floats:
        """Return how much of each piece between two neighbouring `edges` the intervals cover."""
        if not len(self.starts):
            return np.zeros(len(edges) - 1)
        before = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        place = np.searchsorted(self.starts, edges, side="right")
        last = np.maximum(place - 1, 0)
        inside = np.clip(edges - self.starts[last], 0, self.ends[last] - self.starts[last])
        return np.asarray(np.diff(np.where(place > 0, before[last] + inside, 0.0)))

    def lengths(self, group: int, groups: int) -> Ints:
        """Return the length in each of `groups` groups, each `group` nanoseconds wide."""
        found = np.zeros(groups, dtype=np.int64)
        np.add.at(found, self.starts // group, self.ends - self.starts)
        return found


EMPTY = Intervals(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def union(starts: Ints, ends: Ints) -> Intervals:
    """Return the union of intervals in any order; empty ones (start = end) count for nothing."""
    if not len(starts):
        return EMPTY
    if not (starts[1:] >= starts[:-1]).all():
        # Traces are nearly in order: the stable sort finds the runs and merges them.
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reached = np.maximum.accumulate(ends)
    new = np.empty(len(starts), dtype=bool)
    new[0] = True
    np.greater(starts[1:], reached[:-1], out=new[1:])
    last = np.flatnonzero(new)
    merged_starts = starts[last]
    merged_ends = reached[np.append(last[1:] - 1, len(starts) - 1)]
    real = merged_ends > merged_starts
    return (
        Intervals(merged_starts, merged_ends)
        if real.all()
        else Intervals(merged_starts[real], merged_ends[real])
    )


def joined(parts: list[Intervals]) -> Intervals:
    """Return the union of unions."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return EMPTY
    return union(np.concatenate([p.starts for p in parts]), np.concatenate([p.ends for p in parts]))


def difference(a: Intervals, b: Intervals) -> Intervals:
    """Return what of `a` lies outside `b`."""
    if not len(a.starts) or not len(b.starts):
        return a
    # Intervals of b that overlap each one of a: from `first` on, `pieces - 1` of them cut it into pieces.
    first = np.searchsorted(b.ends, a.starts, side="right")
    pieces = np.searchsorted(b.starts, a.ends, side="left") - first + 1
    lasts = np.cumsum(pieces) - 1
    # A piece ends where the next interval of b starts; the last one ends with its interval of a.
    place = np.arange(lasts[-1] + 1) - np.repeat(lasts - pieces + 1 - first, pieces)
    ends = b.starts[np.minimum(place, len(b.starts) - 1)]
    ends[lasts] = a.ends
    starts = b.ends[place - 1]
    starts[lasts - pieces + 1] = a.starts
    real = ends > starts
    return Intervals(starts[real], ends[real])


def shifted(intervals: Intervals, group: int) -> Intervals:
    """Return the union over all groups, moved back onto one time line."""
    offset = intervals.starts // group * group
    return union(intervals.starts - offset, intervals.ends - offset)
