"""What this node has: cores and memory, as this process may use them.

Control groups: cgroups(7); Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst of Linux.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tiercel.memory import available_memory
from tiercel.site.mounts import Mount, parse_mountinfo

#: By type of the mount: the files of a control group that limit its memory. Above `high` pages are taken
#: away from a group as above `max`.
_LIMITS = {"cgroup": ("memory.limit_in_bytes",), "cgroup2": ("memory.max", "memory.high")}
#: What a group uses, and what of that are files' pages, which are dropped where memory is short (those of
#: tmpfs are not: they are no files' pages to the kernel).
_USED = {"cgroup": "memory.usage_in_bytes", "cgroup2": "memory.current"}
_FILES = {
    "cgroup": ("total_inactive_file", "total_active_file"),
    "cgroup2": ("inactive_file", "active_file"),
}
#: Version 1 says by a number beyond all memory that there is no limit.
_UNLIMITED = 2**60


def cores() -> int:
    """Return the number of cores this process may run on (affinity, so cpusets count)."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Return bytes of memory: the node's, or this process' limit where that is less."""
    limit = memory_limit()
    return whole_memory() if limit is None else min(whole_memory(), limit)


def whole_memory() -> int:
    """Return the bytes of memory of the node."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_limit(process: Path = Path("/proc/self")) -> int | None:
    """Return the bytes that this process' job or container may hold, page cache included.

    The least limit of its control group and of all above it that can be seen; None where there is none.
    """
    limits = [
        limit
        for group, kind in _groups(process)
        for file in _LIMITS[kind]
        if (limit := _limit(group / file)) is not None
    ]
    return min(limits, default=None)


def free_memory(process: Path = Path("/proc/self"), proc: Path = Path("/proc")) -> int | None:
    """Return the bytes that this process can still have: of the machine's, or of what its job or container
    may hold where that leaves less. None where Linux does not say."""
    left = [available_memory(proc)]
    for group, kind in _groups(process):
        limits = [limit for file in _LIMITS[kind] if (limit := _limit(group / file)) is not None]
        used = _limit(group / _USED[kind])
        if limits and used is not None:
            left.append(max(0, min(limits) - used + _dropped(group, kind)))
    return min((each for each in left if each is not None), default=None)


def throttling(process: Path = Path("/proc/self")) -> dict[str, tuple[int, int]]:
    """Return (periods, throttled periods) of each control group whose CPU quota limits this process.

    Empty without a quota. Groups outside a container are not seen.
    """
    found = {}
    for group, _kind in _groups(process, "cpu"):
        try:
            rows = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
            if int(rows["nr_periods"]):
                found[str(group)] = int(rows["nr_periods"]), int(rows["nr_throttled"])
        except (OSError, ValueError, KeyError):  # without the controller there are no periods
            continue
    return found


def _groups(process: Path, controller: str = "memory") -> list[tuple[Path, str]]:
    """Return the folders of the groups that may limit the process, with the types of their mounts."""
    try:
        groups = os.fsdecode((process / "cgroup").read_bytes())
        mounts = parse_mountinfo(os.fsdecode((process / "mountinfo").read_bytes()))
    except OSError:  # a kernel without control groups
        return []
    return list(_folders(groups, mounts, controller))


def _folders(groups: str, mounts: list[Mount], controller: str) -> Iterator[tuple[Path, str]]:
    for line in filter(None, groups.split("\n")):
        _number, controllers, group = line.split(":", 2)
        kind = "cgroup" if controllers else "cgroup2"
        if controllers and controller not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.type == kind and (kind == "cgroup2" or controller in mount.options.split(",")):
                for folder in _upwards(group, mount.root):
                    yield mount.point / folder, kind


def _dropped(group: Path, kind: str) -> int:
    """Return the bytes of a group that are files' pages."""
    try:
        rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return sum(int(rows.get(name, 0)) for name in _FILES[kind])
    except (OSError, ValueError):
        return 0


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
