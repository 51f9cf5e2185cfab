"""From a topology and a scale to classes of processes that share resources.

Processes are told apart by the units that they go over, and put together again where nothing tells them
apart: processes are alike when they go over alike units, and units are when alike processes go over them. The
two are refined in turn until nothing changes. Each class of processes then has the same share of each class
of units, so the fair rates of the classes are those of the processes (a coarsest equitable partition; the
fair allocation is unique, so it is the same for all that are alike).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tiercel.site.topology import Spread, Stage

K = TypeVar("K")


@dataclass(frozen=True)
class Group:
    """Processes that are alike."""

    count: int
    units: Mapping[int, int]
    """Stage, by its place in the topology: its class of units that they go over."""


@dataclass(frozen=True)
class Layout:
    """Who goes over what."""

    groups: tuple[Group, ...]
    sizes: Mapping[tuple[int, int], float]
    """Stage and class of units: how many units are in it, of which each process has the use of one (of a
    stage with stripes: of all that it may use)."""


def layout(topology: Sequence[Stage], nodes: int, processes_per_node: int) -> Layout:
    """Return the classes of `nodes` times `processes_per_node` processes on a topology."""
    ways = tuple((stage.units, stage.per_node, stage.spread) for stage in topology)
    return _layout(ways, nodes, processes_per_node)


@lru_cache(maxsize=256)
def _layout(ways: tuple[tuple[int, bool, Spread], ...], nodes: int, processes_per_node: int) -> Layout:
    if all(spread == "stripes" for _, _, spread in ways):
        sizes = {(n, 0): float(units * (nodes if own else 1)) for n, (units, own, _) in enumerate(ways)}
        alike = Group(nodes * processes_per_node, dict.fromkeys(range(len(ways)), 0))
        return Layout((alike,), sizes)
    members = [
        tuple(_unit(way, node, process, processes_per_node) for way in ways)
        for node in range(nodes)
        for process in range(processes_per_node)
    ]
    colours = [0] * len(members)
    units: dict[tuple[int, Hashable], int] = {}
    before = (0, 0)
    while True:
        seen: dict[tuple[int, Hashable], Counter[int]] = {}
        for colour, member in zip(colours, members, strict=True):
            for place in enumerate(member):
                seen.setdefault(place, Counter())[colour] += 1
        units = _numbered({place: (place[0], frozenset(found.items())) for place, found in seen.items()})
        ways_of = {n: tuple(units[place] for place in enumerate(member)) for n, member in enumerate(members)}
        colours = list(_numbered(ways_of).values())
        after = (len(set(colours)), len(set(units.values())))
        if after == before:
            break
        before = after
    sizes = {}
    for (stage, _), colour in units.items():
        whole, _, spread = ways[stage]
        # One unit of each place; of stripes all units of the node, or of the system, at once.
        sizes[stage, colour] = sizes.get((stage, colour), 0.0) + (whole if spread == "stripes" else 1)
    first = {colour: n for n, colour in reversed(list(enumerate(colours)))}
    groups = tuple(
        Group(count, {stage: units[stage, unit] for stage, unit in enumerate(members[first[colour]])})
        for colour, count in sorted(Counter(colours).items())
    )
    return Layout(groups, sizes)


def _unit(way: tuple[int, bool, Spread], node: int, process: int, processes_per_node: int) -> Hashable:
    """Return which unit of a stage a process goes over: by turns, as mounts and files are dealt out."""
    units, own, spread = way
    if spread == "stripes":
        return node if own else 0
    if spread == "nodes":
        return node % units
    return (node, process % units) if own else (node * processes_per_node + process) % units


def _numbered(of: Mapping[K, Hashable]) -> dict[K, int]:
    numbers: dict[Hashable, int] = {}
    return {key: numbers.setdefault(value, len(numbers)) for key, value in of.items()}
