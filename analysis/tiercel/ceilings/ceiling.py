"""The ceiling of a storage: the least that any stage on the way to its media carries.

Source: paper 004, sections IV.B and V, which explains its results by the narrowest link of each deployment
(Lassen's VAST by its one gateway, Quartz' by 32 gateways with 2 x 1 Gb each).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tiercel.site.model import Storage
from tiercel.site.topology import Stage

Operation = Literal["read", "write"]


@dataclass(frozen=True)
class Ceiling:
    """What a storage can carry for some nodes, as far as its topology says."""

    bandwidth: float
    """Bytes per second of all nodes together."""
    stage: Stage
    """The narrowest stage: the bottleneck when a measurement comes close."""
    unknown: tuple[str, ...]
    """Stages whose bandwidth nobody gives: the true ceiling may be lower."""

    def share(self, measured: float) -> float:
        """Return the part of the ceiling that `measured` (bytes per second) reaches."""
        return measured / self.bandwidth


def ceiling_of(storage: Storage, operation: Operation, nodes: int) -> Ceiling | None:
    """Return the ceiling of `storage` for so many nodes, or None where its topology gives no number.

    Caches above a stage (the page cache, a server's memory) can exceed it for data that fits them.
    """
    carried = [(stage.carries(operation, nodes), stage) for stage in storage.topology]
    known = [(bandwidth, stage) for bandwidth, stage in carried if bandwidth is not None]
    if not known:
        return None
    bandwidth, stage = min(known, key=lambda pair: pair[0])
    given = {s.stage for _, s in known}
    unknown = tuple(kind for kind in ("client", "gateway", "server", "fabric", "media") if kind not in given)
    return Ceiling(bandwidth, stage, unknown)
