"""What an aggregate hides: a process that is slower than the others, and times in which nothing went on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median


@dataclass(frozen=True)
class Within:
    """What went on within a phase, as far as it was recorded."""

    operation: str
    interval: float
    """Seconds."""
    amounts: tuple[float, ...]
    """Bytes (operations of phases that move none) that ended in each interval after the start; empty where
    that was not recorded."""
    speeds: Mapping[int, float]
    """Bytes a second of each process, by its number; empty where that was not recorded."""
    durations: tuple[tuple[float, float, int], ...] = ()
    """The histogram of how long one operation took: from, to (s), how many, in order; empty where that
    was not recorded."""


def reached(durations: Sequence[tuple[float, float, int]], share: float) -> float:
    """Return the time (s) that a share (0 to 1) of the operations of a histogram took at most.

    Within a bucket it is taken to grow evenly.
    """
    count = sum(many for _, _, many in durations)
    below = 0
    for least, most, many in durations:
        if below + many >= share * count:
            return least + (most - least) * max(0.0, share * count - below) / many
        below += many
    return durations[-1][1]


def slowest_process(speeds: Mapping[int, float]) -> tuple[int, float] | None:
    """Return the slowest process and its speed against the median of the others; None of fewer than two.

    `speeds`: of each process by its number, in any unit.
    """
    if len(speeds) < 2:
        return None
    slowest = min(speeds, key=lambda rank: speeds[rank])
    others = median(speed for rank, speed in speeds.items() if rank != slowest)
    return (slowest, speeds[slowest] / others) if others > 0 else None


def longest_pause(ended: Sequence[float], interval: float) -> float:
    """Return the longest time (s) between the first and the last operation in which none ended.

    `ended`: operations that ended in each interval; what is shorter than one is not seen.
    """
    busy = [place for place, count in enumerate(ended) if count]
    if not busy:
        return 0.0
    inside = (count == 0 for count in ended[busy[0] : busy[-1] + 1])
    return interval * max((len(list(run)) for idle, run in groupby(inside) if idle), default=0)
