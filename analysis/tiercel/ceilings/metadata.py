"""The ceiling of metadata: how many creates, stats... of files or folders the servers can do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tiercel.ceilings.ceiling import Ceiling, Limit, waited, words_of
from tiercel.site.model import Storage
from tiercel.site.topology import Action, Direction, Stage, StageKind
from tiercel.study.workloads import MetadataWorkload

Kind = Literal["file", "directory"]


def phases_of(workload: MetadataWorkload) -> Iterator[tuple[Kind, Action]]:
    """Yield what is done to what, in order. A folder is not read."""
    for action in workload.phases:
        if workload.directories and action != "read":
            yield "directory", action
        if workload.files:
            yield "file", action


def content(workload: MetadataWorkload, kind: Kind, action: Action) -> tuple[int, Direction]:
    """Return how many bytes of data one operation moves, and which way."""
    if kind == "file" and action == "create":
        return workload.write_bytes, "write"
    return (workload.read_bytes if kind == "file" and action == "read" else 0), "read"


def unknown_servers(storage: Storage, action: Action) -> tuple[str, ...]:
    """Return the stages that carry metadata out and whose figure of it nobody gives.

    These are servers, or the media of a storage that a node has for itself: a link has no such figure.
    """
    if any(stage.whole for stage in storage.topology):
        return ()
    kind: StageKind = "server" if storage.medium == "network" else "media"
    servers = [s for s in storage.topology if s.carries == "metadata"] or [
        s for s in storage.topology if s.stage == kind and s.carries == "all" and not s.absent
    ]
    if not servers and not any(stage.does(action) for stage in storage.topology if stage.carries_metadata):
        return (kind,)
    return tuple(words_of(s) for s in servers if s.does(action) is None)


def metadata_ceiling(
    workload: MetadataWorkload, kind: Kind, action: Action, storage: Storage, nodes: int, processes: int
) -> Ceiling | None:
    """Return operations per second of all nodes with so many processes on each; None without a figure."""
    limits = _limits(workload, kind, action, storage.topology, nodes, processes)
    if not limits:
        return None
    rest = [stage for stage in storage.topology if stage is not limits[0].stage]
    others = _limits(workload, kind, action, rest, nodes, processes)
    return Ceiling(tuple(limits), unknown_servers(storage, action), others[0] if others else None)


def _limits(
    workload: MetadataWorkload, kind: Kind, action: Action, stages: list[Stage], nodes: int, processes: int
) -> list[Limit]:
    size, direction = content(workload, kind, action)
    found: list[Limit] = []
    on_it = [stage for stage in stages if stage.carries_metadata]
    for stage in on_it:
        done = stage.does(action)
        if done is not None:
            found.append(Limit(done * stage.count(nodes, processes), stage, "metadata"))
    if not found:  # a link alone bounds no metadata
        return []
    for stage in stages:
        one = stage.one_carries(direction)
        if size and one is not None and stage.carries_data(direction):
            found.append(Limit(one * stage.count(nodes, processes) / size, stage, "bandwidth"))
    waits = [stage.takes(action) or 0.0 for stage in on_it]
    found += waited([(stage, 1.0) for stage in on_it], waits, nodes * processes)
    return sorted(found, key=lambda limit: limit.rate)
