"""What a workload asks of a storage, as far as its ceiling hangs on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiercel.site.topology import Direction, Stage


@dataclass(frozen=True)
class Reuse:
    """What of a workload's bytes a cache may serve, or take."""

    per_node: int
    """Bytes of one node."""
    random: bool
    """Read in random order: a cache serves the part that it holds. In order it serves all or nothing: what is
    read first is what it dropped first (LRU)."""
    memory: bool
    """Whether the nodes' own memory is one of the caches: nobody evicts or bypasses it, syncs what lies in
    it, or reads what another node wrote."""


@dataclass(frozen=True)
class Demand:
    """What a workload asks of a storage."""

    operation: Direction
    nodes: int
    transfer_size: int | None = None
    """Bytes of one operation; None: operations are no limit."""
    outstanding: int | None = None
    """Operations under way at any time; None: caches hide what each of them waits."""
    processes: int | None = None
    """On each node; None: enough for all units of each stage."""
    random: bool = False
    """In random order."""
    reuse: Reuse | None = None
    """None: no cache serves or takes anything."""


def reaching(stages: Sequence[Stage], demand: Demand) -> tuple[float, ...]:
    """Return which part of the bytes reaches each stage, and at the end which passes the last.

    What a cache holds goes no further than its stage. Reads: what was written or read last is what it holds,
    so a larger one behind it holds that, too. Writes: each takes what it has room for, and the rest goes on.
    """
    found = [1.0]
    for stage in stages:
        found.append(_left(stage, demand, found[-1]))
    return tuple(found)


def _left(stage: Stage, demand: Demand, before: float) -> float:
    reuse, each = demand.reuse, stage.keeps(demand.operation)
    if reuse is None or each is None or (stage.stage == "client" and not reuse.memory):
        return before
    part = each * stage.count(demand.nodes, demand.processes) / (reuse.per_node * demand.nodes)
    if demand.operation == "write":
        return max(0.0, before - part)
    held = min(1.0, part) if reuse.random or part >= 1 else 0.0
    return min(before, 1.0 - held)
