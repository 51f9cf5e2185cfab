"""Indexed binary files: samples one after the other, and two files of 64-bit numbers with where each begins
(``.off.idx``) and how long it is (``.sz.idx``), as DLIO writes them."""

from __future__ import annotations

import mmap
import os
from array import array
from collections.abc import Sequence
from itertools import accumulate
from operator import ne

from tiercel.clock import now
from tiercel.dl.kernel.direct import open_direct, read_direct
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, content
from tiercel.dl.kernel.formats.base import Format, Opened, create, register, write_all
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec

OFFSETS, SIZES = ".off.idx", ".sz.idx"


@register("indexed_binary")
class IndexedBinary(Format):
    def __init__(self) -> None:
        # As DLIO's readers: an index is read once by each of them, and not for every sample.
        self._indices: dict[str, tuple[array[int], array[int]]] = {}

    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        size = file.sample_bytes
        _put(path, content(spec, file.seed, file.samples * size))
        # The data file gets its final name last (see `generate`): a whole file always has its indices.
        final = path.removesuffix(".part")
        _put(final + OFFSETS, [array("q", range(0, file.samples * size, size)).tobytes()])
        _put(final + SIZES, [array("q", [size]).tobytes() * file.samples])

    def expected_size(self, file: FileSpec, spec: Spec) -> int:
        return file.samples * file.sample_bytes

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        if path not in self._indices:
            offsets, sizes = self._index(path + OFFSETS, calls), self._index(path + SIZES, calls)
            _check_index(path, offsets, sizes, calls.size(path))
            self._indices[path] = offsets, sizes
        offsets, sizes = self._indices[path]
        if spec.access == "collective":
            return _Collective(path, offsets, sizes, calls, spec.transfer)
        return self._file(path, offsets, sizes, calls, spec)

    def _index(self, path: str, calls: IO) -> array[int]:
        return _index(path, calls)

    def _file(self, path: str, offsets: array[int], sizes: array[int], calls: IO, spec: Spec) -> Opened:
        return (_Direct if spec.direct else _Plain)(path, offsets, sizes, calls, spec.transfer)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        sizes = _index(path + SIZES, calls)
        return len(sizes), sizes[0] if sizes else 0


@register("mmap_indexed_binary")
class MappedBinary(IndexedBinary):
    """Indices and samples are mapped into memory. A mapping is made once by each reader, as DLIO and Megatron
    do it: what it costs is paid when pages are touched."""

    kept_open = True

    def _index(self, path: str, calls: IO) -> array[int]:
        return _mapped_index(path, calls)

    def _file(self, path: str, offsets: array[int], sizes: array[int], calls: IO, spec: Spec) -> Opened:
        return _Mapped(path, offsets, sizes, calls, spec.transfer)


def _check_index(path: str, offsets: array[int], sizes: array[int], there: int) -> None:
    """Failure unless the samples follow each other from the data file's begin to its end, at `there` bytes.

    What a training owes is taken from the index: one that says less had it read less, or one sample for ever.
    """
    if len(offsets) != len(sizes):
        raise Failure(f"{path}: its index files differ: {len(offsets)} offsets, {len(sizes)} sizes")
    if sizes and min(sizes) < 1:
        raise Failure(f"{path}{SIZES}: has a sample of {min(sizes)} bytes")
    if any(map(ne, accumulate(sizes[:-1], initial=0), offsets)):
        raise Failure(f"{path}{OFFSETS}: its samples do not follow each other")
    indexed = sum(sizes)
    if indexed != there:
        raise Failure(f"{path}: has {there} bytes, and its index knows of {indexed}")


def _put(path: str, pieces: Sequence[bytes | memoryview]) -> None:
    descriptor = create(path)
    try:
        write_all(descriptor, pieces)
    finally:
        os.close(descriptor)


def _index(path: str, calls: IO) -> array[int]:
    try:
        descriptor = calls.open(path)
    except FileNotFoundError:
        raise Failure(f"{path}: no such file: the index of the samples is missing") from None
    try:
        size, _ = calls.stat(descriptor)
        buffer = bytearray(size)
        if size % 8 or (size and calls.read(descriptor, path, memoryview(buffer)) != size):
            raise Failure(f"{path}: {size} bytes are no whole number of 64-bit numbers")
        return array("q", bytes(buffer))
    finally:
        calls.close(descriptor, path)


def _mapped_index(path: str, calls: IO) -> array[int]:
    """Return the numbers of an index file that is mapped, as numpy.memmap does it, and copied."""
    try:
        memory = _map(path, calls)
    except FileNotFoundError:
        raise Failure(f"{path}: no such file: the index of the samples is missing") from None
    if len(memory) % 8:
        raise Failure(f"{path}: {len(memory)} bytes are no whole number of 64-bit numbers")
    began = now()
    numbers = array("q", memory[:])
    calls.note(began, now(), len(memory), 1)
    memory.close()
    return numbers


def _map(path: str, calls: IO) -> mmap.mmap:
    """Map a whole file. Failure for an empty one, which cannot be."""
    descriptor = calls.open(path)
    try:
        if not os.fstat(descriptor).st_size:
            raise Failure(f"{path}: is empty")
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    finally:
        calls.close(descriptor, path)


class _Plain(Opened):
    def __init__(self, path: str, offsets: array[int], sizes: array[int], calls: IO, transfer: int) -> None:
        self._path, self._offsets, self._sizes, self._calls = path, offsets, sizes, calls
        self._transfer = transfer
        self._buffer = bytearray()
        self._descriptor = self._open()

    def _open(self) -> int:
        return self._calls.open(self._path, way="ranges")

    def read(self, sample: int) -> int:
        if sample >= len(self._sizes):
            raise Failure(f"{self._path}: sample {sample} is not there: its index has {len(self._sizes)}")
        size = self._sizes[sample]
        got = self._get(self._offsets[sample], size)
        if got != size:
            raise Failure(f"{self._path}: sample {sample} is cut off: {got} of {size} bytes")
        return size

    def _get(self, offset: int, size: int) -> int:
        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        view, have = memoryview(self._buffer), 0
        while have < size:
            want = min(size - have, self._transfer or size)
            got = self._calls.pread(self._descriptor, self._path, view[have : have + want], offset + have)
            if not got:
                break
            have += got
        return have

    def close(self) -> None:
        self._calls.close(self._descriptor, self._path)


class _Direct(_Plain):
    def _open(self) -> int:
        return open_direct(self._path, self._calls)

    def _get(self, offset: int, size: int) -> int:
        return len(read_direct(self._descriptor, self._path, self._calls, offset, size, self._transfer))


class _Mapped(_Plain):
    def _open(self) -> int:
        self._memory = _map(self._path, self._calls)
        return -1

    def _get(self, offset: int, size: int) -> int:
        """Copy the sample out of the mapped file: its pages are read as they are touched."""
        began = now()
        found = len(self._memory[offset : offset + size])
        self._calls.note(began, now(), found, 1)
        return found

    def close(self) -> None:
        self._memory.close()


class _Collective(_Plain):
    """Reads that all processes make together, by MPI-IO."""

    def _open(self) -> int:
        from mpi4py import MPI  # noqa: PLC0415

        began = now()
        self._file = MPI.File.Open(MPI.COMM_WORLD, self._path, MPI.MODE_RDONLY)
        self._calls.note(began, now(), opens=1)
        return -1

    def _get(self, offset: int, size: int) -> int:
        from mpi4py import MPI  # noqa: PLC0415

        if len(self._buffer) < size:
            self._buffer = bytearray(size)
        began, status = now(), MPI.Status()
        self._file.Read_at_all(offset, memoryview(self._buffer)[:size], status)
        got = int(status.Get_count(MPI.BYTE))
        self._calls.note(began, now(), got, 1)
        return got

    def close(self) -> None:
        self._file.Close()
