"""From a topology and a scale to classes of processes that share resources.

Processes are told apart by the units that they go over, and put together again where nothing tells them
apart: processes are alike when they go over alike units, and units are when they are of one size and alike
processes go over them. The two are refined in turn until nothing changes. Each class of processes then has
the same share of each class of units, so the fair rates of the classes are those of the processes (a coarsest
equitable partition; the fair allocation is unique, so it is the same for all that are alike).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from tiercel.site.topology import Spread, Stage

K = TypeVar("K")
#: Of a stage: whose unit it is (0 where the nodes share them), and which one.
Place = tuple[int, int]


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
    """Stage and class of units: how many units are in it, each as its size."""
    each: Mapping[tuple[int, int], float]
    """Stage and class of units: what of them one process has the use of: one unit, as its size (of a stage
    with stripes: all that it may use)."""


@dataclass(frozen=True)
class _Way:
    """What of a stage says who goes over which of its units."""

    units: int
    sizes: tuple[float, ...] | None
    own: bool
    spread: Spread

    def place(self, node: int, process: int, processes_per_node: int) -> Place:
        """Return the unit of a process: by turns, as mounts and files are dealt out."""
        whose = node if self.own else 0
        if self.spread == "stripes":
            return whose, 0
        if self.spread == "nodes":
            return whose, node % self.units
        return whose, (process if self.own else node * processes_per_node + process) % self.units

    def size(self, place: Place) -> float:
        """Return the size of one unit; of stripes of all that stand at a place."""
        if self.spread == "stripes":
            return sum(self.sizes) if self.sizes else float(self.units)
        return self.sizes[place[1]] if self.sizes else 1.0


def layout(topology: Sequence[Stage], nodes: int, processes_per_node: int) -> Layout:
    """Return the classes of `nodes` times `processes_per_node` processes on a topology."""
    ways = tuple(_Way(stage.units, stage.sizes, stage.per_node, stage.spread) for stage in topology)
    return _layout(ways, nodes, processes_per_node)


@lru_cache(maxsize=256)
def _layout(ways: tuple[_Way, ...], nodes: int, processes_per_node: int) -> Layout:
    if all(way.spread == "stripes" for way in ways):
        each = {(n, 0): way.size((0, 0)) for n, way in enumerate(ways)}
        sizes = {(n, 0): size * (nodes if ways[n].own else 1) for (n, _), size in each.items()}
        alike = Group(nodes * processes_per_node, dict.fromkeys(range(len(ways)), 0))
        return Layout((alike,), sizes, each)
    members = [
        tuple(way.place(node, process, processes_per_node) for way in ways)
        for node in range(nodes)
        for process in range(processes_per_node)
    ]
    colours = [0] * len(members)
    units: dict[tuple[int, Place], int] = {}
    before = (0, 0)
    while True:
        seen: dict[tuple[int, Place], Counter[int]] = {}
        for colour, member in zip(colours, members, strict=True):
            for at in enumerate(member):
                seen.setdefault(at, Counter())[colour] += 1
        units = _numbered(
            {at: (at[0], ways[at[0]].size(at[1]), frozenset(found.items())) for at, found in seen.items()}
        )
        ways_of = {n: tuple(units[at] for at in enumerate(member)) for n, member in enumerate(members)}
        colours = list(_numbered(ways_of).values())
        after = (len(set(colours)), len(set(units.values())))
        if after == before:
            break
        before = after
    sizes, each = {}, {}
    for (stage, place), colour in units.items():
        each[stage, colour] = ways[stage].size(place)
        sizes[stage, colour] = sizes.get((stage, colour), 0.0) + each[stage, colour]
    first = {colour: n for n, colour in reversed(list(enumerate(colours)))}
    groups = tuple(
        Group(count, {stage: units[stage, place] for stage, place in enumerate(members[first[colour]])})
        for colour, count in sorted(Counter(colours).items())
    )
    return Layout(groups, sizes, each)


def _numbered(of: Mapping[K, Hashable]) -> dict[K, int]:
    numbers: dict[Hashable, int] = {}
    return {key: numbers.setdefault(value, len(numbers)) for key, value in of.items()}
