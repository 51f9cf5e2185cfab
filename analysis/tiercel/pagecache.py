"""Evict files from the page cache, and measure how much of them it holds.

The methods are cachestat (Linux 6.5) and mincore. On an overlay only mincore sees the pages: they belong to
the file of the upper or lower layer. On file systems that keep data elsewhere residency is unknown
(`Residency.unknown`), never 0. The kernel drops only clean pages, so written data is synced first.
native/iokernel/src/filesystem.c and residency.c do the same.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CACHESTAT = 451
_PAGE = mmap.PAGESIZE

#: Numbers of statfs(2). In memory: tmpfs, ramfs, hugetlbfs.
_MEMORY = {0x01021994, 0x858458F6, 0x958458F6}
#: File systems that keep data in the page cache of the file itself: ext, XFS, Btrfs, F2FS, bcachefs, JFS,
#: NILFS, ReiserFS, FAT, exFAT, NTFS, EROFS, SquashFS, NFS, Lustre, Ceph, SMB, CIFS, SMB 2, 9P, AFS,
#: BeeGFS, GFS2, OCFS2.
_PAGES = {
    0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0xCA451A4E, 0x3153464A, 0x3434, 0x52654973, 0x4D44,
    0x2011BAB0, 0x7366746E, 0xE0F5E1E2, 0x73717368, 0x6969, 0x0BD00BD0, 0x00C36400, 0x517B, 0xFF534D42,
    0xFE534D42, 0x01021997, 0x5346414F, 0x19830326, 0x01161970, 0x7461636F,
}  # fmt: skip
_OVERLAY, _AUFS, _FUSE = 0x794C7630, 0x61756673, 0x65735546
_UNTOLD = {
    _FUSE: "a FUSE server may keep the data in this node's memory",
    0xF15F: "eCryptfs keeps the encrypted data in the cache of the file system below it",
    0x2FC12FC1: "the file system keeps the data in a cache of its own, not in the page cache",
}
_UNTOLD[0x47504653] = _UNTOLD[0x2FC12FC1]  # GPFS, like ZFS
_NOT_KNOWN = "it is not known whether this file system keeps the data in the page cache"
_FIEMAP = 0xC020660B


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Cachestat(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("cache", "dirty", "writeback", "evicted", "recently")]


@dataclass
class Residency:
    """Pages of some files: how many there are, how many are in memory (None: unknown)."""

    pages: int = 0
    resident: int = 0
    method: str = ""
    memory_backed: bool = False
    unknown: str = ""
    """Why it is unknown how many are in memory; empty where it is known."""

    @property
    def fraction(self) -> float | None:
        if self.method == "none":
            return None
        return self.resident / self.pages if self.pages else 0.0


def evict(paths: Iterable[str | Path]) -> None:
    """Ask the kernel to drop the files from the page cache; their data is made durable first."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def residency(paths: Sequence[str]) -> Residency:
    """Measure how much of the files is in the page cache."""
    found = Residency()
    methods = set()
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            pages = -(-size // _PAGE)
            if not pages:
                continue
            found.pages += pages
            resident, method, unknown = _resident(descriptor, size, pages)
            found.resident += resident
            found.unknown = found.unknown or unknown
            methods.add(method)
        finally:
            os.close(descriptor)
    found.method = "none" if "none" in methods else "mincore" if "mincore" in methods else "cachestat"
    found.memory_backed = bool(paths) and memory_backed(paths[0])
    return found


def _resident(descriptor: int, size: int, pages: int) -> tuple[int, str, str]:
    """Return (resident pages, method, why they are unknown) of an open file."""
    kind = _type_of(descriptor)
    if kind not in {*_MEMORY, *_PAGES, _OVERLAY, _AUFS} and not (
        kind == _FUSE and _mount_line(descriptor).startswith("virtiofs ")
    ):
        return 0, "none", _UNTOLD.get(kind or 0, _NOT_KNOWN)
    window, answer = _Range(0, 0), _Cachestat()
    if kind not in (_OVERLAY, _AUFS) and not _LIBC.syscall(
        _CACHESTAT, descriptor, ctypes.byref(window), ctypes.byref(answer), 0
    ):
        return min(int(answer.cache), pages), "cachestat", ""
    # Since Linux 5.2 mincore reports every page as resident to a caller that may not write the file.
    if os.fstat(descriptor).st_uid != os.geteuid() and not os.access(f"/proc/self/fd/{descriptor}", os.W_OK):
        return 0, "none", "the kernel tells only those who may write a file how much of it is in memory"
    resident = _mincore(descriptor, size, pages)
    if resident is None:
        return 0, "none", "this kernel does not tell how much of a file is in memory"
    return resident, "mincore", ""


def _mincore(descriptor: int, size: int, pages: int) -> int | None:
    _LIBC.mmap.restype = ctypes.c_void_p
    _LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                           ctypes.c_long]  # fmt: skip
    place = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        return None
    try:
        table = ctypes.create_string_buffer(pages)
        if _LIBC.mincore(ctypes.c_void_p(place), ctypes.c_size_t(size), table):
            return None
        return sum(byte & 1 for byte in table.raw)
    finally:
        _LIBC.munmap(ctypes.c_void_p(place), ctypes.c_size_t(size))


def memory_backed(path: str) -> bool:
    """Return whether a file or folder lies in memory, where nothing is ever cold.

    That is tmpfs, ramfs, hugetlbfs, and an overlay whose upper layer is one of them.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        kind = _type_of(descriptor)
        if kind != _OVERLAY:
            return kind in _MEMORY
        upper = upper_in_memory(_mount_line(descriptor))
        if upper is None and stat.S_ISREG(os.fstat(descriptor).st_mode):
            return not _has_extents(descriptor)
        return bool(upper)
    finally:
        os.close(descriptor)


def upper_in_memory(options: str) -> bool | None:
    """Return whether the upper layer of an overlay with these mount options lies in memory.

    None where its folder is not visible here, as in a container.
    """
    named = re.search(r"(?:^|,)upperdir=((?:\\[,:]|[^,\s])+)", options)
    if named is None:
        return None
    upper = re.sub(r"\\([,:])", r"\1", named[1])
    kind = _statfs_type(os.fsencode(upper)) if upper.startswith("/") else None
    return None if kind is None else kind in _MEMORY


def _has_extents(descriptor: int) -> bool:
    """Return whether the file system can list where a file's data lies: those on disks can, tmpfs cannot."""
    request = (0).to_bytes(8, "little") + (2**64 - 1).to_bytes(8, "little") + bytes(16)
    try:
        fcntl.ioctl(descriptor, _FIEMAP, request)
    except OSError as error:
        return error.errno != errno.EOPNOTSUPP
    return True


def _mount_line(descriptor: int) -> str:
    """Return type, source and options of the mount of an open file, as mountinfo has them, unescaped."""
    try:
        info = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
        number = next(line.split()[1] for line in info.splitlines() if line.startswith("mnt_id:"))
        mounts = os.fsdecode(Path("/proc/self/mountinfo").read_bytes())
        line = next(line for line in mounts.split("\n") if line.startswith(f"{number} "))
    except (OSError, StopIteration):
        return ""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), line.partition(" - ")[2])


def _type_of(descriptor: int) -> int | None:
    return _statfs_type(b"/proc/self/fd/%d" % descriptor)


def _statfs_type(path: bytes) -> int | None:
    """Return the number of the type of the file system that holds `path`, None where it cannot be seen."""
    buffer = (ctypes.c_long * 32)()  # struct statfs begins with the type
    return None if _LIBC.statfs(path, buffer) else int(buffer[0]) & 0xFFFFFFFF


def sync_filesystem(folder: str) -> None:
    """Make everything on the file system of `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(descriptor):
            os.sync()
    finally:
        os.close(descriptor)
