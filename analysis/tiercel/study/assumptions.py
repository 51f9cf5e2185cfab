"""How long a run takes that nobody has measured yet.

Careful on purpose: a job that ends early costs nothing, one that is cut off waits in the queue again (and
then goes on where it was).
"""

from __future__ import annotations

from tiercel.study.plan import Configuration
from tiercel.units import format_size

#: Bytes per second of one node, and of all nodes together, on a storage in bad weather.
_OF_NODE, _OF_ALL = 200 * 1024**2, 5 * 1024**3
#: Metadata operations per second, all processes together.
_OPERATIONS = 1000.0
#: To start the processes of each step.
_START_S = 5.0

ASSUMED = (
    f"{format_size(_OF_NODE)}/s for each node, {format_size(_OF_ALL)}/s for all on shared storage, "
    f"{_OPERATIONS:,.0f} metadata operations per second, {_START_S:g} s to start"
)


def assumed_seconds(c: Configuration) -> float:
    """Return the assumed duration of one run of `c`, in seconds."""
    workload = c.workload
    bandwidth: float = c.nodes * _OF_NODE
    if c.stack.storage.shared:
        bandwidth = min(bandwidth, _OF_ALL)
    # Written once, and read or written again at most twice (the access types RAR, WAW).
    passes = 3 if getattr(workload, "access", None) in ("RAR", "WAW", "WAR") else 2
    transfer = passes * workload.footprint(c.nodes, c.processes_per_node) / bandwidth
    items = getattr(workload, "items_per_process", 0) * c.processes
    stonewall = getattr(workload, "stonewall", None)
    creating = items / _OPERATIONS
    if stonewall is not None and items:
        creating = min(creating, stonewall)
        transfer = min(transfer, stonewall)
    operations = creating * len(getattr(workload, "phases", ()) or (1,)) * 2 if items else 0.0
    return 2 * _START_S + transfer + operations
