"""Reads past the page cache (O_DIRECT): aligned buffers, aligned offsets."""

from __future__ import annotations

import mmap
import os

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.io import IO

_ALIGN = 4096
_PIECE = 1 << 20


def open_direct(path: str, calls: IO) -> int:
    """Open a file for direct reads; Failure where its file system knows none."""
    try:
        return calls.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError as error:
        raise Failure(f"reader.odirect: {path}: {error.strerror}: no direct reads here") from None


def read_direct(descriptor: int, path: str, calls: IO, offset: int, length: int, piece: int = 0) -> bytes:
    """Return `length` bytes from `offset` (fewer at the end of the file), read in aligned pieces."""
    begin = offset - offset % _ALIGN
    end = -(-(offset + length) // _ALIGN) * _ALIGN
    size = -(-(piece or _PIECE) // _ALIGN) * _ALIGN
    found = bytearray()
    with mmap.mmap(-1, min(size, end - begin)) as memory, memoryview(memory) as view:
        while begin + len(found) < end:
            want = min(len(view), end - begin - len(found))
            got = calls.pread(descriptor, path, view[:want], begin + len(found))
            found += view[:got]
            if got < want:
                break
    return bytes(found[offset - begin : offset - begin + length])


def whole_file(path: str, calls: IO, piece: int = 0) -> bytes:
    """Return the content of a file, read directly."""
    descriptor = open_direct(path, calls)
    try:
        return read_direct(descriptor, path, calls, 0, os.fstat(descriptor).st_size, piece)
    finally:
        calls.close(descriptor, path)
