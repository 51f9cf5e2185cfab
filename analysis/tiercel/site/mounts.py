"""The mount table: which mounted file systems are worth testing, and of what kind.

Source: /proc/self/mountinfo, format in proc(5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tiercel.pagecache import upper_in_memory

Medium = Literal["disk", "memory", "network"]

_DISK = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "nilfs2", "overlay"}
_MEMORY = {"tmpfs", "ramfs"}
_NETWORK = {
    "nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "wekafs", "panfs", "ceph", "cifs", "smb3",
    "pvfs2", "afs", "9p", "virtiofs", "glusterfs", "gfs2", "ocfs2", "dfuse", "unifyfs", "dvs", "quobyte",
    "daos", "juicefs", "sshfs", "moosefs", "ime",
}  # fmt: skip

#: Mount points that hold the system itself, never data.
_SYSTEM = re.compile(r"/(boot|proc|sys|run/(?!user)|snap|etc|usr/lib)(/|$)|/dev(?!/shm)(/|$)")


@dataclass(frozen=True)
class Mount:
    """One line of the mount table. `type` is the file-system type without a ``fuse.`` prefix."""

    point: Path
    type: str
    source: str
    options: str
    root: str
    in_memory: bool = False
    """An overlay whose upper layer is memory: what is written there is never on a disk."""

    @property
    def medium(self) -> Medium | None:
        """What holds the data, or None for a file system that is no place for data (proc, cgroup...)."""
        if self.type in _MEMORY or self.in_memory:
            return "memory"
        if self.type in _DISK:
            return "disk"
        return "network" if self.type in _NETWORK else None

    @property
    def read_only(self) -> bool:
        return "ro" in self.options.split(",")

    @property
    def system(self) -> bool:
        return bool(_SYSTEM.match(str(self.point)))


def parse_mountinfo(text: str) -> list[Mount]:
    """Return the visible mounts in `text`: of several on one mount point only the last (the topmost)."""
    visible: dict[str, Mount] = {}
    for line in text.split("\n"):  # other characters that end a line may be part of a name
        left, separator, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if not separator or len(before) < 6 or len(after) < 2:
            continue
        options = before[5]
        if len(after) > 2:  # the file system's own options add what the mount's lack
            seen = set(options.split(","))
            options = ",".join([options, *(o for o in after[2].split(",") if o not in seen)])
        point = _unescape(before[4])
        visible.pop(point, None)  # keep table order: the topmost counts as mounted last
        visible[point] = Mount(
            point=Path(point),
            type=after[0].removeprefix("fuse."),
            source=_unescape(after[1]),
            options=_unescape(options),
            root=_unescape(before[3]),
        )
    return list(visible.values())


def read_mounts() -> list[Mount]:
    """Return the visible mounts of this process."""
    text = os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
    return [
        replace(m, in_memory=bool(upper_in_memory(m.options))) if m.type == "overlay" else m
        for m in parse_mountinfo(text)
    ]


def mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """Return the mount that holds `path` (resolved): the one with the longest mount point above it."""
    resolved = path.resolve()
    holders = [m for m in mounts if resolved == m.point or m.point in resolved.parents]
    return max(holders, key=lambda m: len(m.point.parts), default=None)


def _unescape(text: str) -> str:
    """Undo the kernel's octal escapes of blank, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
