"""NPY files: one array of all samples, the sample number its last dimension (as DLIO writes it).

Opening one reads it whole, with the system calls of ``numpy.load`` (see `_pieces`).
"""

from __future__ import annotations

import ast
import math
import os
import struct
from collections.abc import Iterator

from tiercel.dl.kernel.direct import whole_file
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import Format, Opened, Whole, create, register, write_all
from tiercel.dl.kernel.io import IO, RawFile
from tiercel.dl.kernel.spec import Spec

_MAGIC = b"\x93NUMPY"
_BLOCK = 4096
#: The most that Linux reads in one call.
_MOST = 0x7FFFF000
_TYPES = {"uint8": "|u1", "int8": "|i1", "uint16": "<u2", "int16": "<i2", "float16": "<f2", "uint32": "<u4",
          "int32": "<i4", "float32": "<f4", "uint64": "<u8", "int64": "<i8", "float64": "<f8"}  # fmt: skip


def header(shape: tuple[int, ...], element: str) -> bytes:
    """Return the header of an NPY file, version 1.0, aligned to 64 bytes."""
    text = f"{{'descr': '{_TYPES[element]}', 'fortran_order': False, 'shape': {shape!r}, }}"
    space = -(len(_MAGIC) + 4 + len(text) + 1) % 64
    text += " " * space + "\n"
    return _MAGIC + b"\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin-1")


def parse_header(head: bytes, path: str) -> tuple[tuple[int, ...], int, int]:
    """Return shape, bytes of an element, and where the data begins; Failure for no such header."""
    try:
        if head[:6] != _MAGIC:
            raise ValueError
        wide = head[6] > 1
        (length,) = struct.unpack_from("<I" if wide else "<H", head, 8)
        start = 12 if wide else 10
        fields = ast.literal_eval(head[start : start + length].decode("latin-1"))
        shape = tuple(int(n) for n in fields["shape"])
        return shape, int(fields["descr"].lstrip("|<>=")[1:]), start + length
    except (ValueError, KeyError, IndexError, SyntaxError, struct.error, AttributeError):
        raise Failure(f"{path}: not a numpy array: its header cannot be read") from None


def dimensions(shape: tuple[int, ...], element_bytes: int) -> tuple[int, int]:
    """Return samples and bytes of each for an array whose last dimension is the sample."""
    return (shape[-1] if shape else 0), math.prod(shape[:-1]) * element_bytes


@register("npy")
class NPY(Format):
    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        descriptor = create(path)
        try:
            size = file.samples * file.sample_bytes
            start = header((*file.shape, file.samples), spec.element)
            write_all(descriptor, [start, *content(spec, file.seed, size)])
        finally:
            os.close(descriptor)

    def expected_size(self, file: FileSpec, spec: Spec) -> int:
        return len(header((*file.shape, file.samples), spec.element)) + file.samples * file.sample_bytes

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        if spec.direct:
            data = whole_file(path, calls, spec.transfer)
            shape, size, start = parse_header(bytes(data[:_BLOCK]), path)
            found = len(data)
        else:
            shape, size, start, found = _read(path, spec, calls)
        samples, each = dimensions(shape, size)
        if found != start + samples * each:
            raise Failure(
                f"{path}: sample {max(0, found - start) // max(1, each)} is cut off: the file has {found} "
                f"bytes, its header says {start + samples * each}"
            )
        return Whole(path, samples, each)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        with RawFile(calls, path, "ranges") as file:
            shape, size, _ = parse_header(file.read(_BLOCK) or b"", path)
        return dimensions(shape, size)


def _read(path: str, spec: Spec, calls: IO) -> tuple[tuple[int, ...], int, int, int]:
    """Return shape, bytes of an element, where the data begins, and the bytes that were there."""
    descriptor = calls.open(path)
    try:
        size_of_file, block = calls.stat(descriptor)
        block = block if block > 1 else _BLOCK
        first = memoryview(bytearray(block))
        got = calls.pread(descriptor, path, first, 0)
        shape, size, start = parse_header(bytes(first[:got]), path)
        for offset, length in _pieces(size_of_file, got, start, block, spec.transfer):
            now = _fill(descriptor, path, calls, offset, length, size_of_file)
            got = max(got, offset + now)
        return shape, size, start, got
    finally:
        calls.close(descriptor, path)


def _pieces(size: int, have: int, start: int, block: int, transfer: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of the reads after the first.

    In pieces of `transfer` bytes where it is given. Else as numpy: the C library, to which it hands the file,
    reads up to where the data begins, the first block again, whole blocks at once, and the rest of one.
    """
    if transfer:
        yield from ((n, transfer) for n in range(have, size, transfer))
        return
    yield 0, start
    yield 0, block
    whole = max(0, size - block) // block * block
    for n in range(block, block + whole, _MOST):
        yield n, min(_MOST, block + whole - n)
    if size > block + whole:
        yield block + whole, block


def _fill(descriptor: int, path: str, calls: IO, offset: int, length: int, size: int) -> int:
    """Read up to `length` bytes of a file of `size`; the system may give them in parts."""
    buffer, have = memoryview(bytearray(length)), 0
    while have < length and (now := calls.pread(descriptor, path, buffer[have:], offset + have)):
        have += now
        if offset + have >= size:
            break
    return have
