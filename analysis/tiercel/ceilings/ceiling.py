"""The ceiling of a storage: the least that any stage on the way to its media carries.

Source: paper 004, sections IV.B and V, which explains its results by the narrowest link of each deployment
(Lassen's VAST by its one gateway, Quartz' by 32 gateways with 2 x 1 Gb each).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tiercel.ceilings.demand import Demand, reaching
from tiercel.site.model import Storage
from tiercel.site.topology import STAGES, Direction, Stage

Operation = Direction
Figure = Literal["bandwidth", "operations", "latency", "metadata"]

#: What every way over a network has, unless the site file says that it is absent; a mount has connections
#: only where the site file says so.
_OVER_NETWORK = ("client", "gateway", "server", "fabric", "media")


@dataclass(frozen=True)
class Limit:
    """What one stage allows, and by which of its figures."""

    rate: float
    """Of all nodes together: bytes per second, of metadata operations per second."""
    stage: Stage
    figure: Figure


@dataclass(frozen=True)
class Ceiling:
    """What a storage can carry for some nodes, as far as its topology says."""

    limits: tuple[Limit, ...]
    """The lowest first; one at least."""
    unknown: tuple[str, ...]
    """Stages of which nobody gives a figure: the true ceiling may be lower."""
    next: Limit | None = None
    """What binds once the narrowest stage is as wide as can be; None where no other stage has a figure."""

    @property
    def rate(self) -> float:
        """Of all nodes together: bytes per second, of metadata operations per second."""
        return self.limits[0].rate

    @property
    def stage(self) -> Stage:
        """The narrowest stage: the bottleneck when a measurement comes close."""
        return self.limits[0].stage

    def share(self, measured: float) -> float:
        """Return the part of the ceiling that `measured` reaches."""
        return measured / self.rate


def ceiling_of(storage: Storage, operation: Operation, nodes: int) -> Ceiling | None:
    """Return the ceiling of `storage` by bandwidths alone, or None where its topology gives no number.

    Caches above a stage (the page cache, a server's memory) can exceed it for data that fits them.
    """
    return ceiling_for(storage, Demand(operation, nodes))


def ceiling_for(storage: Storage, demand: Demand) -> Ceiling | None:
    """Return the ceiling of `storage` for a demand; else as ceiling_of."""
    stages = on_the_way(storage, demand.operation)
    parts = dict(zip(map(id, stages), reaching(stages, demand), strict=False))

    def limits_of(some: Sequence[Stage]) -> list[Limit]:
        return sorted(_each_limit([(s, parts[id(s)]) for s in some], demand), key=lambda limit: limit.rate)

    limits = limits_of(stages)
    if not limits:
        return None
    # Not the second of these: without one stage the others still add to each operation.
    others = limits_of([stage for stage in stages if stage is not limits[0].stage])
    return Ceiling(tuple(limits), missing(storage, demand), others[0] if others else None)


def on_the_way(storage: Storage, direction: Direction) -> list[Stage]:
    """Return the stages that reads or writes go over: no servers of metadata beside them, nothing that is
    only for the other direction, and nothing that is absent."""
    return [stage for stage in storage.topology if stage.carries_data(direction)]


def missing(storage: Storage, demand: Demand) -> tuple[str, ...]:
    """Return the stages that bytes reach and whose bandwidth the site file does not give, with the label of
    those that it has."""
    stages = on_the_way(storage, demand.operation)
    if any(stage.whole and stage.one_carries(demand.operation) is not None for stage in stages):
        return ()
    parts = reaching(stages, demand)
    silent = [
        words_of(stage) for stage, part in zip(stages, parts, strict=False)
        if part > 0 and stage.one_carries(demand.operation) is None
    ]  # fmt: skip
    named = {stage.stage for stage in stages} | {s.stage for s in storage.topology if s.absent}
    # A cache that holds everything is the end of the way.
    last = next((STAGES.index(s.stage) for s, rest in zip(stages, parts[1:], strict=True) if rest <= 0), None)
    kinds = _OVER_NETWORK if storage.medium == "network" else ("media",)
    further = [k for k in kinds if k not in named and (last is None or STAGES.index(k) < last)]
    return (*silent, *further)


def words_of(stage: Stage) -> str:
    """Return a stage's kind and name."""
    return f"{stage.stage} ({stage.label})" if stage.label else stage.stage


def _each_limit(stages: Sequence[tuple[Stage, float]], demand: Demand) -> Iterator[Limit]:
    """Yield what each stage allows; with each the part of the bytes that reaches it."""
    reached = [(stage, part) for stage, part in stages if part > 0]
    for stage, part in reached:
        units = stage.count(demand.nodes, demand.processes) / part
        one = stage.one_carries(demand.operation)
        if one is not None:
            yield Limit(one * units, stage, "bandwidth")
        begun = stage.begins(demand.operation, demand.random)
        if begun is not None and demand.transfer_size is not None:
            yield Limit(begun * units * demand.transfer_size, stage, "operations")
    if demand.outstanding is None or demand.transfer_size is None:
        return
    waits = [(stage.adds(demand.operation) or 0.0) * part for stage, part in reached]
    yield from waited(reached, waits, demand.outstanding * demand.transfer_size)


def waited(
    stages: Sequence[tuple[Stage, float]], waits: Sequence[float], under_way: float
) -> Iterator[Limit]:
    """Yield the limit of Little's law: what is under way, divided by what each of it waits (s)."""
    if sum(waits):
        yield Limit(under_way / sum(waits), stages[waits.index(max(waits))][0], "latency")
