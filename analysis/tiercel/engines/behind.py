"""What a cold read found behind the client: which share of single pages came at memory speed.

iokernel touches single pages twice in a row before the read (`--behind`, native/iokernel/src/behind.h), past
the node's page cache. Whatever cache lies between the client and the medium has the second touch; if it had
the first one, too, that was as fast. So first touches are held against second ones, which differ in nothing
else: neither in the way there nor in the load of the moment.

Where first and second touches are alike, either all was in a cache or there is none. Then only the speed
can tell: flash needs tens of microseconds to bring a page. Storage whose own medium is faster looks the same
(persistent memory, say), so `results.validity` says what it means: it knows the device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

#: With fewer touches nothing is said.
LEAST = 16
#: A touch is as fast as a hit if it took at most so many times what the quick ones among the second took...
APART = 2.0
#: ... and those that were must look like hits, not like the near end of one broad hump: their medians differ
#: by less than this factor.
ALIKE = 1.2
#: Chance of seeing misses where there are none (sign test).
ALPHA = 1e-4
#: Misses below this share of the touches are noise.
SOME = 0.05


@dataclass(frozen=True)
class Behind:
    """What the touches say."""

    touches: int
    hit_time: float
    """Seconds of a quick second touch (a tenth were quicker); of a quick first one where all are alike."""
    share: float | None
    """Of first touches that came as fast as second ones; None where the two humps run into each other."""
    miss_time: float | None
    """Median of the first touches that did not, where there are such: a cache lies behind, for certain."""


def judge(first: Sequence[float], second: Sequence[float]) -> Behind | None:
    """Return what pairs of touches (seconds) say; None for too few."""
    if len(first) != len(second) or len(first) < LEAST:
        return None
    hit = _quick(second)
    limit = APART * hit
    slower = sum(b <= limit < a for a, b in zip(first, second, strict=True))
    faster = sum(a <= limit < b for a, b in zip(first, second, strict=True))
    quick_first, quick_second = [a for a in first if a <= limit], [b for b in second if b <= limit]
    # Misses that a busy machine only seems to have are as many on the other side.
    seen = slower - faster >= SOME * len(first) and _chance(slower, slower + faster) < ALPHA
    if not seen:
        return Behind(len(first), _quick(first), 1.0, None)
    share: float | None = min(1.0, len(quick_first) / len(quick_second))
    if len(quick_first) >= LEAST // 2 and median(quick_first) > ALIKE * median(quick_second):
        share = None
    return Behind(len(first), hit, share, median(a for a in first if a > limit))


def fields(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of a Measurement for iokernel's results of one read (its repeats)."""
    first, second = [], []
    for result in results:
        touches = result.get("behind") or {}
        first += touches.get("first", [])
        second += touches.get("second", [])
    found = judge(first, second)
    if found is None:
        return {}
    return {
        "behind_alike": found.share,
        "behind_hit_time": found.hit_time,
        "behind_miss_time": found.miss_time,
    }


def _quick(touches: Sequence[float]) -> float:
    """Return what a touch takes that waits for nobody: on a busy machine many do."""
    return sorted(touches)[len(touches) // 10]


def _chance(successes: int, trials: int) -> float:
    """Return the chance of at least so many heads in so many throws of a fair coin."""
    return sum(math.comb(trials, k) for k in range(successes, trials + 1)) / 2.0**trials
