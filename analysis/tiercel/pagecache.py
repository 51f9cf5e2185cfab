"""Files in the page cache: dropped from it before a cold read, looked at afterwards, made durable.

cachestat (Linux 6.5), else mincore; where neither answers, that is said. The kernel drops only clean pages,
so data that was just written is synced first.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CACHESTAT = 451
_TMPFS, _RAMFS = 0x01021994, 0x858458F6
_PAGE = mmap.PAGESIZE


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
    """Look what of the files is in the page cache."""
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
            resident, method = _resident(descriptor, size, pages)
            found.resident += resident
            methods.add(method)
        finally:
            os.close(descriptor)
    found.method = "none" if "none" in methods else "mincore" if "mincore" in methods else "cachestat"
    found.memory_backed = bool(paths) and memory_backed(paths[0])
    return found


def _resident(descriptor: int, size: int, pages: int) -> tuple[int, str]:
    window, answer = _Range(0, 0), _Cachestat()
    if _LIBC.syscall(_CACHESTAT, descriptor, ctypes.byref(window), ctypes.byref(answer), 0) == 0:
        return min(int(answer.cache), pages), "cachestat"
    _LIBC.mmap.restype = ctypes.c_void_p
    _LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                           ctypes.c_long]  # fmt: skip
    place = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
    if place in (None, ctypes.c_void_p(-1).value):
        return 0, "none"
    try:
        table = ctypes.create_string_buffer(pages)
        if _LIBC.mincore(ctypes.c_void_p(place), ctypes.c_size_t(size), table):
            return 0, "none"
        return sum(byte & 1 for byte in table.raw), "mincore"
    finally:
        _LIBC.munmap(ctypes.c_void_p(place), ctypes.c_size_t(size))


def memory_backed(path: str) -> bool:
    """Return whether a file lies in memory (tmpfs, ramfs): nothing there is ever cold."""
    buffer = (ctypes.c_long * 32)()  # struct statfs begins with the type
    if _LIBC.statfs(os.fsencode(path), buffer):
        return False
    return int(buffer[0]) & 0xFFFFFFFF in (_TMPFS, _RAMFS)


def sync_filesystem(folder: str) -> None:
    """Make everything on the file system of `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _LIBC.syncfs(descriptor):
            os.sync()
    finally:
        os.close(descriptor)
