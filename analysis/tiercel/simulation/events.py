"""Flows over time: rates are computed anew only where a flow begins or ends.

Time and memory grow with the classes of flows, not with flows, bytes or transfers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiercel.simulation.fair import Flows, fair_rates, full_resources

#: What of a flow's amount may be left by rounding when it ends.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Work:
    """What each flow of a class has to move, and from when on."""

    flows: Flows
    amount: float
    start: float = 0.0


@dataclass(frozen=True)
class Done:
    """What became of each flow of a class."""

    moved: float
    end: float
    """When it ended: by itself, or by the time limit."""


@dataclass(frozen=True)
class Course:
    """How it all went."""

    done: tuple[Done, ...]
    """In the order of the works."""
    filled: Mapping[str, float]
    """Resource: the seconds for which it was full."""

    @property
    def end(self) -> float:
        return max((each.end for each in self.done), default=0.0)


def simulate(works: Sequence[Work], capacities: Mapping[str, float], until: float = math.inf) -> Course:
    """Let all flows move what they have to, and end those that are under way at `until`.

    ValueError for a flow that can never end (of rate zero) and for one that nothing bounds.
    """
    left = [work.amount for work in works]
    ends: list[float | None] = [None] * len(works)
    filled = dict.fromkeys(capacities, 0.0)
    now = min((work.start for work in works), default=0.0)
    while now < until and any(end is None for end in ends):
        active = [n for n, end in enumerate(ends) if end is None and works[n].start <= now]
        coming = [works[n].start for n, end in enumerate(ends) if end is None and works[n].start > now]
        classes = [works[n].flows for n in active]
        rates = fair_rates(classes, capacities)
        if any(math.isinf(rate) for rate in rates):
            raise ValueError("a flow that no resource bounds")
        steps = [left[n] / rate for n, rate in zip(active, rates, strict=True) if rate > 0]
        step = min([*steps, *(start - now for start in coming), until - now])
        if math.isinf(step):
            raise ValueError("a flow of rate zero never ends")
        for name in full_resources(classes, rates, capacities):
            filled[name] += step
        now += step
        for n, rate in zip(active, rates, strict=True):
            left[n] = max(0.0, left[n] - rate * step)
            if left[n] <= _ROUNDING * works[n].amount:
                left[n], ends[n] = 0.0, now
    found = [
        Done(work.amount - rest, min(until, now) if end is None else end)
        for work, rest, end in zip(works, left, ends, strict=True)
    ]
    return Course(tuple(found), filled)
