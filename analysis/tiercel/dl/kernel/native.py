"""The C library (native/dlkernel): CRC-32C, TFRecord and CSV scans. Without it plain Python does the same.

``TIERCEL_DLKERNEL`` names another library, or is ``off``.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tiercel import native

_ABI = 1


class TFRecordScan(ctypes.Structure):
    """See native/dlkernel/src/dlkernel.h."""

    _fields_ = [
        ("records", ctypes.c_uint64), ("payload", ctypes.c_uint64), ("offset", ctypes.c_uint64),
        ("length", ctypes.c_uint64), ("done", ctypes.c_uint64), ("crc", ctypes.c_uint32),
        ("have", ctypes.c_uint32), ("part", ctypes.c_uint32), ("check", ctypes.c_uint32),
        ("head", ctypes.c_ubyte * 16),
    ]  # fmt: skip


class CSVScan(ctypes.Structure):
    _fields_ = [
        ("rows", ctypes.c_uint64), ("columns", ctypes.c_uint64), ("values", ctypes.c_uint64),
        ("have", ctypes.c_uint64), ("word", ctypes.c_char * 64), ("sum", ctypes.c_double),
    ]  # fmt: skip


@cache
def library() -> ctypes.CDLL | None:
    """Return the library, or None."""
    found = native.load_library("dlkernel", _ABI)
    return _declared(found) if found else None


def _declared(found: ctypes.CDLL) -> ctypes.CDLL:
    found.dlkernel_crc32c.argtypes = [ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t]
    found.dlkernel_crc32c.restype = ctypes.c_uint32
    found.dlkernel_tfrecord_feed.argtypes = [ctypes.POINTER(TFRecordScan), ctypes.c_void_p, ctypes.c_size_t]
    found.dlkernel_csv_feed.argtypes = [
        ctypes.POINTER(CSVScan), ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
    ]  # fmt: skip
    return found


def address(buffer: Any) -> int:
    """Return where a writable buffer begins in memory."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))
