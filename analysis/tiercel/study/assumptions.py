"""How long a run takes that nobody has measured yet.

Careful on purpose: a job that ends early costs nothing, one that is cut off waits in the queue again (and
then goes on where it was).
"""

from __future__ import annotations

from dataclasses import dataclass

from tiercel.study.plan import Configuration
from tiercel.study.workloads import Workload
from tiercel.units import format_size


@dataclass(frozen=True)
class Weather:
    """What a storage that nobody has measured may give."""

    of_node: float
    """Bytes per second of one node."""
    of_all: float
    """Of all nodes together on shared storage."""
    operations: float
    """Metadata operations per second, all processes together."""
    start: float
    """Seconds to start the processes of each step."""

    def __str__(self) -> str:
        return (
            f"{format_size(self.of_node)}/s for each node, {format_size(self.of_all)}/s for all on shared "
            f"storage, {self.operations:,.0f} metadata operations per second, {self.start:g} s to start"
        )


#: What jobs are cut by and ask for, and what a good day is like.
BAD = Weather(200 * 1024**2, 5 * 1024**3, 1000.0, 5.0)
GOOD = Weather(4 * 1024**3, 400 * 1024**3, 50_000.0, 0.1)


#: A calibration tries about so many amounts, of which the last takes about as long as a run.
_TRIALS = 3


def assumed_seconds(c: Configuration, weather: Weather = BAD, *, calibration: bool = False) -> float:
    """Return the assumed duration of one run of `c`, or of its calibration, in seconds."""
    workload = c.workload
    if c.phase_time is not None:
        phases = len(getattr(workload, "phases", ())) * _kinds(workload) or _passes(workload)
        return 2 * weather.start * (_TRIALS if calibration else 1) + phases * c.phase_time
    bandwidth: float = c.nodes * weather.of_node
    if c.stack.storage.shared:
        bandwidth = min(bandwidth, weather.of_all)
    transfer = _passes(workload) * workload.footprint(c.nodes, c.processes_per_node) / bandwidth
    items = getattr(workload, "items_per_process", 0) * c.processes
    stonewall = getattr(workload, "stonewall", None)
    creating = items / weather.operations
    if stonewall is not None and items:
        creating = min(creating, stonewall)
        transfer = min(transfer, stonewall)
    operations = creating * len(getattr(workload, "phases", ()) or (1,)) * 2 if items else 0.0
    return 2 * weather.start + transfer + operations


def _passes(workload: Workload) -> int:
    """Written once, and read or written again at most twice (the access types RAR, WAW)."""
    return 3 if getattr(workload, "access", None) in ("RAR", "WAW", "WAR") else 2


def _kinds(workload: Workload) -> int:
    """Metadata phases go over files, folders or both."""
    return int(getattr(workload, "files", False)) + int(getattr(workload, "directories", False))
