"""What was done and how long each operation took; the processes' together, as a row of results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tally:
    """Operations of one process: bytes that they moved, seconds of each, and what was found of what was
    wanted (hits, of a cache)."""

    bytes: int = 0
    seconds: list[float] = field(default_factory=list)
    found: int = 0
    wanted: int = 0

    def add(self, seconds: float, moved: int) -> None:
        self.seconds.append(seconds)
        self.bytes += moved


def row(operation: str, tallies: Sequence[Tally], began: float, ended: float) -> dict[str, Any]:
    """Return the row of an operation that all processes did between two times (seconds since 1970)."""
    seconds = sorted(s for tally in tallies for s in tally.seconds)
    wanted = sum(tally.wanted for tally in tallies)
    return {
        "operation": operation, "began": began, "total_time": ended - began,
        "bytes": sum(tally.bytes for tally in tallies), "operations": len(seconds),
        "hit_share": sum(tally.found for tally in tallies) / wanted if wanted else None,
        "latency": latencies(seconds),
    }  # fmt: skip


def latencies(ordered: Sequence[float]) -> dict[str, float]:
    """Return mean, percentiles and maximum of times in order, empty where there are none.

    A percentile is the least time that so many of the operations took at most.
    """
    if not ordered:
        return {}
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    found = {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in shares.items()}
    return {"mean": math.fsum(ordered) / len(ordered), **found, "max": ordered[-1]}
