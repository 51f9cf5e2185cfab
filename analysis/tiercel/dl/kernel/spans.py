"""Time spans of one process: when it did I/O, when it computed; merged as they come.

I/O is what `tiercel.traces` counts as I/O: the calls on files. Seconds since 1970.
"""

from __future__ import annotations

from array import array

Pairs = list[tuple[float, float]]

#: Spans that wait before they are merged, and how close merged ones may come before they are joined when
#: there are too many to keep.
_MERGE_AT = 1 << 16
_KEEP = 1 << 18


class Spans:
    """A union of time spans."""

    def __init__(self) -> None:
        self._starts = array("d")
        self._ends = array("d")
        self._gap = 0.0

    def add(self, start: float, end: float) -> None:
        """Add one span. Safe from threads only under the caller's lock."""
        starts, ends = self._starts, self._ends
        if ends and starts[-1] <= start <= ends[-1] + self._gap:
            ends[-1] = max(end, ends[-1])
            return
        starts.append(start)
        ends.append(end)
        if len(starts) >= _KEEP:
            self._shrink()

    def extend(self, pairs: Pairs) -> None:
        for start, end in pairs:
            self.add(start, end)

    def merged(self) -> Pairs:
        """Return the union as disjoint spans in order."""
        return union(list(zip(self._starts, self._ends, strict=True)), self._gap)

    def _shrink(self) -> None:
        """Keep memory bounded: join spans with ever larger gaps between them."""
        found = self.merged()
        while len(found) > _MERGE_AT:
            self._gap = max(2 * self._gap, 1e-5)
            found = union(found, self._gap)
        self._starts = array("d", (start for start, _ in found))
        self._ends = array("d", (end for _, end in found))


def union(pairs: Pairs, gap: float = 0.0) -> Pairs:
    """Return disjoint spans that cover `pairs`, in order; gaps up to `gap` seconds are closed."""
    found: Pairs = []
    for start, end in sorted(pairs):
        if found and start <= found[-1][1] + gap:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def length(pairs: Pairs) -> float:
    """Return the seconds that disjoint spans cover."""
    return sum(end - start for start, end in pairs)


def minus(these: Pairs, those: Pairs) -> Pairs:
    """Return what of `these` is not in `those`; both disjoint and in order."""
    found: Pairs = []
    place = 0
    for begin, end in these:
        start = begin
        while place < len(those) and those[place][1] <= start:
            place += 1
        here = place
        while here < len(those) and those[here][0] < end:
            if those[here][0] > start:
                found.append((start, those[here][0]))
            start = max(start, those[here][1])
            here += 1
        if start < end:
            found.append((start, end))
    return found
