"""The disk quota of this user on a file system: quotactl_fd(2), Linux 5.14.

Local file systems answer (ext4, XFS). Network file systems have commands of their own: there it is unknown.
statvfs shows quotas of projects by itself.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_QUOTACTL_FD = 443
_GET_QUOTA = 0x800007
#: struct if_dqblk: limits in blocks of 1 KiB, use in bytes, ...; the last field says which of them are valid.
_ROW = struct.Struct("=8QI4x")
_USER, _GROUP = 0, 1


def quota_of(folder: Path) -> tuple[int | None, int | None]:
    """Return (limit, what is left of it) in bytes; None where there is no quota, or it is not known."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = [
            _quota(descriptor, kind, owner) for kind, owner in ((_USER, os.geteuid()), (_GROUP, os.getegid()))
        ]
    finally:
        os.close(descriptor)
    known = [each for each in found if each is not None]
    return min(known, key=lambda each: each[1]) if known else (None, None)


def _quota(descriptor: int, kind: int, owner: int) -> tuple[int, int] | None:
    row = ctypes.create_string_buffer(_ROW.size)
    if _LIBC.syscall(_QUOTACTL_FD, descriptor, _GET_QUOTA << 8 | kind, owner, row):
        return None
    return left_of(row.raw)


def left_of(row: bytes) -> tuple[int, int] | None:
    """Return (limit, left) in bytes of a struct if_dqblk; None where it has no limit."""
    hard, soft, used, *_ = _ROW.unpack(row)
    limits = [limit * 1024 for limit in (hard, soft) if limit]
    return (min(limits), max(0, min(limits) - used)) if limits else None
