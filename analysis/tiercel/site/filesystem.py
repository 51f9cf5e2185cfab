"""Which file system a folder lies on, so that another one is never measured under its name.

Within a run everything must stay the same. Against what an evaluation recorded when it began, on the same
machine since the same boot, it must be the same file system, mounted again or not. On another node, device
numbers and mount IDs say nothing, and a node's own disk has another source: there type and mount point are
compared, and of network file systems what is exported (several servers may export it).
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiercel.errors import one_line
from tiercel.site.mounts import Mount

#: ioctl FS_IOC_GETFSUUID of Linux 6.9: a length and 16 bytes.
_GETFSUUID = 0x80111500
#: What stays the same while a file system is mounted.
_IDENTITY = ("type", "source", "device", "fsid", "uuid")


@dataclass(frozen=True)
class FileSystem:
    """The identity of a mounted file system, as one node sees it."""

    point: str
    type: str
    source: str
    medium: str
    device: int
    """st_dev."""
    mount_id: int
    """As in /proc/self/mountinfo and STATX_MNT_ID; used again for a later mount."""
    fsid: int
    uuid: str
    """Empty where the kernel does not tell."""
    host: str
    boot: str

    def row(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def _lasts(self) -> bool:
        """Whether it is a disk of this node, whose UUID a restart does not change."""
        return self.medium not in ("memory", "network")

    def moved_to(self, now: FileSystem) -> str:
        """Return what differs `now`, within a run on one node; empty for nothing."""
        differs = self._replaced_by(now)
        if not differs and self.mount_id != now.mount_id:
            differs = f"it was mounted again (mount ID {self.mount_id}, now {now.mount_id})"
        return differs

    def differs_from(self, recorded: FileSystem) -> str:
        """Return what differs from what was recorded when the evaluation began; empty for nothing."""
        if (self.host, self.boot) == (recorded.host, recorded.boot):
            # What was mounted again may have another device: a loop device, or the number of a network mount.
            # Memory has another UUID, too: it is empty after each mount, and of no other kind for that.
            if self._lasts and self.uuid and recorded.uuid:
                return recorded._replaced_by(self, ("type", "uuid"))
            block = self.source.startswith("/dev/")
            return recorded._replaced_by(self, _IDENTITY if block else ("type", "source", "medium"))
        if (
            self._lasts
            and self.host == recorded.host
            and (replaced := recorded._replaced_by(self, ("uuid",)))
        ):
            return replaced
        if (self.type, self.point) != (recorded.type, recorded.point):
            return f"it was {recorded.type} at {recorded.point}, and is {self.type} at {self.point}"
        if self.medium == "network" and _export(self) != _export(recorded):
            return f"it was {recorded.source}, and is {self.source}"
        return ""

    def _replaced_by(self, now: FileSystem, names: Sequence[str] = _IDENTITY) -> str:
        for name in names:
            ours, theirs = getattr(self, name), getattr(now, name)
            if ours != theirs and "" not in (ours, theirs):
                return f"its {name} was {ours}, and is {theirs}"
        return ""


def _export(found: FileSystem) -> str:
    """Return what a server exports, without the server: it may have several addresses."""
    return found.source.rpartition(":/")[2] if ":/" in found.source else found.source


def file_system_of(folder: Path, mount: Mount) -> FileSystem:
    """Return the identity of the file system of an existing folder on `mount`; OSError as opening it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return identity(descriptor, mount)
    finally:
        os.close(descriptor)


def identity(descriptor: int, mount: Mount) -> FileSystem:
    """Return the identity of the file system of an open folder."""
    info = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    number = next((line.split()[1] for line in info.splitlines() if line.startswith("mnt_id:")), "0")
    return FileSystem(
        point=one_line(str(mount.point)), type=mount.type, source=one_line(mount.source),
        medium=mount.medium or "", device=os.fstat(descriptor).st_dev, mount_id=int(number),
        fsid=os.fstatvfs(descriptor).f_fsid, uuid=_uuid(descriptor), host=platform.node(), boot=_boot(),
    )  # fmt: skip


def _uuid(descriptor: int) -> str:
    try:
        uuid = fcntl.ioctl(descriptor, _GETFSUUID, bytes(17))[1:].hex()
    except OSError:
        return ""
    return uuid if uuid.strip("0") else ""  # an image may have none: all zero


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
