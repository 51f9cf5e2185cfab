"""The ceiling of a storage: the least that any stage on the way to its media carries.

Source: paper 004, sections IV.B and V, which explains its results by the narrowest link of each deployment
(Lassen's VAST by its one gateway, Quartz' by 32 gateways with 2 x 1 Gb each).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tiercel.site.model import Storage
from tiercel.site.topology import Direction, Stage

Operation = Direction
Figure = Literal["bandwidth", "operations", "latency"]

#: What every way over a network has; a mount has connections only where the site file says so.
_OVER_NETWORK = ("client", "gateway", "server", "fabric", "media")


@dataclass(frozen=True)
class Demand:
    """What a workload asks of a storage."""

    operation: Operation
    nodes: int
    transfer_size: int | None = None
    """Bytes of one operation; None: operations are no limit."""
    outstanding: int | None = None
    """Operations under way at any time; None: caches hide what each of them waits."""


@dataclass(frozen=True)
class Limit:
    """What one stage allows, and by which of its figures."""

    bandwidth: float
    """Bytes per second of all nodes together."""
    stage: Stage
    figure: Figure


@dataclass(frozen=True)
class Ceiling:
    """What a storage can carry for some nodes, as far as its topology says."""

    limits: tuple[Limit, ...]
    """The lowest first; one at least."""
    unknown: tuple[str, ...]
    """Stages whose bandwidth nobody gives: the true ceiling may be lower."""

    @property
    def bandwidth(self) -> float:
        """Bytes per second of all nodes together."""
        return self.limits[0].bandwidth

    @property
    def stage(self) -> Stage:
        """The narrowest stage: the bottleneck when a measurement comes close."""
        return self.limits[0].stage

    @property
    def next(self) -> Limit | None:
        """What binds once the narrowest stage is widened; None where no other stage has a figure."""
        return next((limit for limit in self.limits if limit.stage is not self.stage), None)

    def share(self, measured: float) -> float:
        """Return the part of the ceiling that `measured` (bytes per second) reaches."""
        return measured / self.bandwidth


def ceiling_of(storage: Storage, operation: Operation, nodes: int) -> Ceiling | None:
    """Return the ceiling of `storage` by bandwidths alone, or None where its topology gives no number.

    Caches above a stage (the page cache, a server's memory) can exceed it for data that fits them.
    """
    return ceiling_for(storage, Demand(operation, nodes))


def ceiling_for(storage: Storage, demand: Demand) -> Ceiling | None:
    """Return the ceiling of `storage` for a demand; else as ceiling_of."""
    limits = sorted(_limits(storage, demand), key=lambda limit: limit.bandwidth)
    return Ceiling(tuple(limits), missing(storage, demand.operation)) if limits else None


def missing(storage: Storage, operation: Operation) -> tuple[str, ...]:
    """Return the stages whose bandwidth the site file does not give, with the label of those that it has."""
    if any(stage.whole and stage.one_carries(operation) is not None for stage in storage.topology):
        return ()
    silent = [_words(stage) for stage in storage.topology if stage.carries(operation, 1) is None]
    named = {stage.stage for stage in storage.topology}
    kinds = _OVER_NETWORK if storage.medium == "network" else ("media",)
    return (*silent, *(kind for kind in kinds if kind not in named))


def _words(stage: Stage) -> str:
    return f"{stage.stage} ({stage.label})" if stage.label else stage.stage


def _limits(storage: Storage, demand: Demand) -> Iterator[Limit]:
    waits = {n: stage.adds(demand.operation) for n, stage in enumerate(storage.topology)}
    for stage in storage.topology:
        bandwidth = stage.carries(demand.operation, demand.nodes)
        if bandwidth is not None:
            yield Limit(bandwidth, stage, "bandwidth")
        one = stage.begins(demand.operation)
        if one is not None and demand.transfer_size is not None:
            each_second = one * stage.count(demand.nodes)
            yield Limit(each_second * demand.transfer_size, stage, "operations")
    whole = sum(each for each in waits.values() if each is not None)
    if whole and demand.outstanding is not None and demand.transfer_size is not None:
        # Little's law: operations under way, divided by what each of them takes.
        slowest = storage.topology[max(waits, key=lambda n: waits[n] or 0.0)]
        yield Limit(demand.outstanding * demand.transfer_size / whole, slowest, "latency")
