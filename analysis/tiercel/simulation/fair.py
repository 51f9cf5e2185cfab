"""Max-min fair rates of flows that share resources, by progressive filling.

Source: D. Bertsekas and R. Gallager, Data Networks, second edition, section 6.5.2: all rates rise together; a
flow stops where a resource on its way is full or where it reaches its own limit; the others rise on. No flow
can have more without another getting less that has no more than it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: What of a resource may be left by rounding and still count as full.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Flows:
    """A class of identical flows: however many there are, they cost the same to compute."""

    count: int
    uses: Mapping[str, float]
    """Resource: what one flow takes of it for each unit of its rate (a byte takes one byte of a link, and one
    part in a transfer's size of a server's operations)."""
    limit: float = math.inf
    """The most that one flow can have, whatever is free."""


def fair_rates(classes: Sequence[Flows], capacities: Mapping[str, float]) -> list[float]:
    """Return the max-min fair rate of one flow of each class; infinite where nothing bounds it.

    `capacities`: units per second of each resource. KeyError for a resource that has none.
    """
    rates = [0.0] * len(classes)
    free = {n for n, flows in enumerate(classes) if flows.count > 0}
    left = {name: capacities[name] for n in free for name in classes[n].uses}
    level = 0.0
    while free:
        load = dict.fromkeys(left, 0.0)  # what all free flows take when their rates rise by one
        for n in free:
            for name, part in classes[n].uses.items():
                load[name] += part * classes[n].count
        rise = min(
            min((left[name] / each for name, each in load.items() if each > 0), default=math.inf),
            min(classes[n].limit for n in free) - level,
        )
        if math.isinf(rise):
            for n in free:
                rates[n] = math.inf
            break
        level += rise
        for name, each in load.items():
            left[name] = max(0.0, left[name] - rise * each)
        full = {n for n, each in load.items() if each > 0 and left[n] <= _ROUNDING * capacities[n]}
        stopped = {
            n
            for n in free
            if classes[n].limit <= level * (1 + _ROUNDING)
            or any(part > 0 and name in full for name, part in classes[n].uses.items())
        }
        for n in stopped:
            rates[n] = min(level, classes[n].limit)
        free -= stopped
    return rates


def full_resources(
    classes: Sequence[Flows], rates: Sequence[float], capacities: Mapping[str, float]
) -> list[str]:
    """Return the resources that flows at these rates fill, in the order of `capacities`."""
    used = dict.fromkeys(capacities, 0.0)
    for flows, rate in zip(classes, rates, strict=True):
        for name, part in flows.uses.items():
            used[name] += flows.count * part * rate
    return [name for name, most in capacities.items() if used[name] >= most * (1 - 1e-9)]
