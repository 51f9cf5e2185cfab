"""Whether the device under a file system may be as fast as memory without a cache in front of it.

Source: sysfs (Documentation/ABI/testing/sysfs-block of Linux): ``slaves`` of device-mapper and RAID,
``loop/backing_file`` and ``loop/dio``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tiercel.site.mounts import Mount, mount_of, read_mounts

#: NVMe drives hold what was just written in memory of their own, some have a medium that is as fast; the
#: others are memory.
_FAST = ("nvme", "pmem", "ram", "zram", "nullb")

Find = Callable[[Path], Mount | None]


def _mount_of(path: Path) -> Mount | None:
    return mount_of(path, read_mounts())


def fast_by_itself(mount: Mount | None, sys: Path = Path("/sys"), find: Find = _mount_of) -> bool | None:
    """Return whether reads from `mount` may be as fast as memory's and yet come from its medium.

    False: a read at memory speed comes from a cache (the hypervisor's, that of a loop device's file system,
    ZFS's own). None: not to be seen from here (storage behind a network, overlays).
    """
    if mount is None:
        return None
    if mount.medium == "memory":
        return True
    if mount.type == "zfs":  # its cache is not the page cache: nobody empties it
        return False
    name = _device(mount, sys)
    return _fast(name, sys, find, depth=8) if name else None


def _device(mount: Mount, sys: Path) -> str | None:
    """Return the kernel's name of the block device of a mount; None where there is none."""
    source = Path(mount.source)
    if not source.is_absolute() or mount.medium != "disk":
        return None
    name = Path(os.path.realpath(source)).name  # /dev/mapper/x and /dev/disk/by-uuid/x are links
    return name if (sys / "class/block" / name).exists() else None


def _fast(name: str, sys: Path, find: Find, depth: int) -> bool | None:
    here = sys / "class/block" / name
    if depth == 0:
        return None
    if (here / "partition").exists():
        return _fast(Path(os.path.realpath(here)).parent.name, sys, find, depth - 1)
    if below := sorted(p.name for p in (here / "slaves").glob("*")):
        found = {_fast(each, sys, find, depth - 1) for each in below}
        return found.pop() if len(found) == 1 else None
    if name.startswith("loop"):
        return _of_loop(here, sys, find, depth)
    return name.startswith(_FAST)


def _of_loop(here: Path, sys: Path, find: Find, depth: int) -> bool | None:
    try:
        backing = Path((here / "loop/backing_file").read_text().strip())
        direct = (here / "loop/dio").read_text().strip() == "1"
    except OSError:
        return None
    mount = find(backing)
    if mount is None or mount.medium == "memory":
        return None if mount is None else True
    if not direct:  # the page cache of this machine, in which the backing file lies, is behind it
        return False
    below = _device(mount, sys)
    return _fast(below, sys, find, depth - 1) if below else None
