"""What this node has: cores and memory, as this process may use them."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def cores() -> int:
    """Return the number of cores this process may run on (affinity, so cpusets count)."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Return bytes of memory: the node's, or the container's limit where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CGROUP_LIMITS:
        try:
            total = min(total, int(path.read_text()))
        except (OSError, ValueError):  # absent, or "max"
            continue
    return total
