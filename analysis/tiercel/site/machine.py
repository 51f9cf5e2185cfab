"""What this node has: cores and memory, as this process may use them.

Control groups: cgroups(7); Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of Linux.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tiercel.site.mounts import Mount, parse_mountinfo

#: By type of the mount: the files of a control group that limit its memory. Above `high` pages are taken
#: away from a group as above `max`.
_LIMITS = {"cgroup": ("memory.limit_in_bytes",), "cgroup2": ("memory.max", "memory.high")}
#: Version 1 says by a number beyond all memory that there is no limit.
_UNLIMITED = 2**60


def cores() -> int:
    """Return the number of cores this process may run on (affinity, so cpusets count)."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Return bytes of memory: the node's, or this process' limit where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = memory_limit()
    return total if limit is None else min(total, limit)


def memory_limit(process: Path = Path("/proc/self")) -> int | None:
    """Return the bytes that this process' job or container may hold, page cache included.

    The least limit of its control group and of all above it that can be seen; None where there is none.
    """
    try:
        groups = (process / "cgroup").read_text(errors="surrogateescape")
        mounts = parse_mountinfo((process / "mountinfo").read_text(errors="surrogateescape"))
    except OSError:  # a kernel without control groups
        return None
    limits = [
        limit
        for group, files in _groups(groups, mounts)
        for file in files
        if (limit := _limit(group / file)) is not None
    ]
    return min(limits, default=None)


def _groups(groups: str, mounts: list[Mount]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the folders of the groups that may limit the process' memory, and the files that say so."""
    for line in groups.splitlines():
        _number, controllers, group = line.split(":", 2)
        kind = "cgroup" if controllers else "cgroup2"
        if controllers and "memory" not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.type == kind and (kind == "cgroup2" or "memory" in mount.options.split(",")):
                for folder in _upwards(group, mount.root):
                    yield mount.point / folder, _LIMITS[kind]


def _upwards(group: str, root: str) -> list[PurePosixPath]:
    """Return `group` and what is above it, up to the `root` of what is mounted, as paths from there."""
    path = PurePosixPath(group)
    if ".." in path.parts or not path.is_relative_to(root):
        return [PurePosixPath()]  # a container that is shown its own group as the root
    below = path.relative_to(root)
    return [below, *below.parents]


def _limit(file: Path) -> int | None:
    try:
        limit = int(file.read_text())
    except (OSError, ValueError):  # absent, as in the root of version 2, or "max"
        return None
    return limit if limit < _UNLIMITED else None
