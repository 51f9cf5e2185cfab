"""Whether a cold read came from a cache behind the client: what sampled reads of single pages say.

Each sampled page was read three times, past the node's page cache (:mod:`tiercel.runs.behind`). Two things
tell a cache behind it (a file server's, a hypervisor's, a controller's):

- the second read is clearly quicker than the first: then there is one, and what was quick the first time was
  in it already. Second and third reads together tell how often a read is slow by chance;
- the first read took less than any medium behind it: flash senses a page in 40 µs or more, and a disk turns
  for milliseconds. (Optane and flash made for latency answer in 10 to 20 µs: of them this is wrong.)

Where neither is so, nothing was in a cache, or all of it in one that answers as slowly as a medium, as behind
a network: from the client these are the same, and the share is not known.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Quicker than any medium but those made for latency (µs).
FLOOR_US = 25.0
#: Pages that were read together, once, again and a third time (as runs.behind does).
_BLOCK = 4
#: The fewest such blocks that say anything.
_LEAST = 4
#: A read that takes so many times as long as nine tenths of the repeated ones came from further away.
_FURTHER = 1.5
#: First reads beyond that must be more than repeated ones by so many standard errors over the blocks (a
#: disturbance meets several reads in a row), and by this share of the pages.
_ERRORS, _SHARE = 4.0, 0.1
#: A cache and what is behind it differ by so many times at least; less is a device's mood.
_APART = 2.0


@dataclass(frozen=True)
class Behind:
    """What the sample of one run says."""

    fraction: float | None = None
    """Share of the sampled pages that came from a cache behind the client, at least; None: cannot be told."""
    near: float | None = None
    """Median time of reads that came from there (s)."""
    far: float | None = None
    """Median time of those that did not (s)."""


def judge(sample: Mapping[str, Any] | None) -> Behind:
    """Return what a sample says; nothing for none, or for one that is not whole."""
    try:
        first, second, third = (
            [float(t) for t in (sample or {})[name]] for name in ("first", "second", "third")
        )
    except (KeyError, TypeError, ValueError):
        return Behind()
    pages = len(first)
    whole = all(len(times) == pages and all(map(math.isfinite, times)) for times in (first, second, third))
    if pages < _LEAST * _BLOCK or not whole:
        return Behind()
    near = [*second, *third]
    limit = _FURTHER * max(_upper(near), 1.0)
    more = [
        (a > limit) - ((b > limit) + (c > limit)) / 2 for a, b, c in zip(first, second, third, strict=True)
    ]
    blocks = [statistics.fmean(more[at : at + _BLOCK]) for at in range(0, pages, _BLOCK)]
    further = statistics.fmean(more)
    error = statistics.stdev(blocks) / math.sqrt(len(blocks))
    far = [t for t in first if t > limit]
    if further > max(_SHARE, _ERRORS * error) and statistics.median(far) > _APART * statistics.median(near):
        # What is beyond the limit by chance is so of reads from near and from far.
        chance = sum(t > limit for t in near) / len(near)
        return _behind(1 - further / (1 - chance), near, far)
    quick = [t for t in first if t <= FLOOR_US]
    if len(quick) >= _SHARE * pages:
        return _behind(len(quick) / pages, quick, ())
    return Behind(far=statistics.median(first) / 1e6)


def _behind(fraction: float, near: Sequence[float], far: Sequence[float]) -> Behind:
    return Behind(
        min(1.0, max(0.0, fraction)),
        statistics.median(near) / 1e6,
        statistics.median(far) / 1e6 if far else None,
    )


def _upper(times: Sequence[float]) -> float:
    """Return the time that nine tenths stay below."""
    return sorted(times)[int(0.9 * (len(times) - 1))]
