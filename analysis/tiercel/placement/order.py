"""What must be over before what: the ends that a later begin comes after, less those that follow from others.

An operation that begins after others have ended waits for these in a replay. Of a chain of operations only
the last one needs to be named: whoever waits for it waits for those that it waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

#: (stream, how many of its operations are over)
Mark = tuple[int, int]


@dataclass(frozen=True)
class End:
    """Something that ends at `time` (seconds); `implies` are the marks that it waited for itself."""

    time: float
    mark: Mark
    implies: frozenset[Mark] = frozenset()


@dataclass
class Ends:
    """The ends so far. Times asked for must not go back."""

    _running: list[End] = field(default_factory=list)
    _settled: dict[Mark, End] = field(default_factory=dict)

    def add(self, end: End) -> None:
        self._running.append(end)

    def before(self, time: float) -> Iterable[End]:
        """Return the ends at or before `time` that no other of them implies."""
        still: list[End] = []
        for end in sorted(self._running, key=lambda e: e.time):
            if end.time > time:
                still.append(end)
                continue
            for mark in end.implies:
                self._settled.pop(mark, None)
            # Of one stream the later operation implies the earlier ones.
            for mark in [m for m in self._settled if m[0] == end.mark[0] and m[1] <= end.mark[1]]:
                del self._settled[mark]
            self._settled[end.mark] = end
        self._running = still
        return self._settled.values()
