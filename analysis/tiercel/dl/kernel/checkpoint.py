"""Checkpoints: files as `shards` says, written and read back by the processes that would.

What a file holds follows from its name, epoch and step alone, so that any later run knows it. Of what is read
back the first 4 KiB of each MiB, and the last of the file, are compared with that: a checksum of them is kept
while the storage is timed, and looked at afterwards.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import content_at
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.shards import shards
from tiercel.dl.kernel.spec import Spec
from tiercel.pagecache import Residency

_PIECE = 16 * 1024**2
#: Of which buffer of random bytes (see `files`), the same in every run.
_POOL = 0
#: Of what is read, so many bytes of each stretch are compared.
_BLOCK, _STRETCH = 4096, 1 << 20
#: The number one, as the types of a model have it in memory.
_ONE = {"fp16": b"\x00\x3c", "bf16": b"\x80\x3f", "fp32": b"\x00\x00\x80\x3f",
        "fp64": b"\x00\x00\x00\x00\x00\x00\xf0\x3f", "int8": b"\x01", "uint8": b"\x01"}  # fmt: skip


def prepare(spec: Spec) -> None:
    """Make what all processes write of: before they are forked, so that there is one of it."""
    if spec.checkpoint and spec.ckpt_random:
        content_at(_POOL, "", 0, 1)


@dataclass
class Saved:
    """One checkpoint of one process: seconds and bytes of writing or reading it back."""

    kind: str
    epoch: int
    step: int
    began: float
    seconds: float
    bytes: int
    residency: Residency | None = None


class Checkpoints:
    """Writes and reads the checkpoints of one process."""

    def __init__(self, spec: Spec, folder: Folder, comm: Comm, calls: IO) -> None:
        self._spec, self._folder, self._comm, self._calls = spec, folder, comm, calls
        self._mine = shards(spec, comm.rank, comm.size)
        self.written: list[tuple[int, int]] = []
        self._framework = "PyTorch" if spec.framework == "pytorch" else "TF"
        if spec.checkpoint and self._mine:  # made now, and not while a checkpoint is timed
            list(self._content("", 0, 1))

    @property
    def bytes(self) -> int:
        """Bytes of this process' files in a checkpoint."""
        return sum(length for _, length in self._mine)

    def save(self, epoch: int, step: int) -> Saved:
        """Write a checkpoint; returns when this process' files are written (durable where asked for)."""
        began, folder = now(), _below(epoch, step)
        try:
            self._folder.make(folder)
            for name, length in self._mine:
                self._write(self._path(folder, name), _seed(name, epoch, step), length)
        except OSError as error:
            where = self._folder.path(folder)
            raise Failure(f"{where}: the checkpoint cannot be written: {error.strerror}") from None
        if self._spec.ckpt_sync_ranks:
            self._comm.barrier()
        self._calls.span(f"{self._framework}Checkpointing.save_checkpoint", "checkpoint", began)
        self.written.append((epoch, step))
        return Saved("checkpoint-write", epoch, step, began, now() - began, self.bytes)

    def load(self, epoch: int, step: int) -> Saved:
        """Read a checkpoint back from the storage: its cached pages are dropped first; what stays is told."""
        names = self._mine
        if self._spec.ckpt_shift and self._comm.nodes > 1:  # what another node wrote
            other = (self._comm.rank + self._comm.size // self._comm.nodes) % self._comm.size
            names = shards(self._spec, other, self._comm.size)
        paths = [self._path(_below(epoch, step), name) for name, _ in names]
        try:
            self._folder.forget(paths)
            found = self._folder.remembered(paths)
            self._comm.barrier()
            began = now()
            sums = [self._read(path, length) for path, (_, length) in zip(paths, names, strict=True)]
        except OSError as error:
            where = error.filename or self._folder.path(_below(epoch, step))
            raise Failure(f"{where}: the checkpoint cannot be read: {error.strerror}") from None
        if self._spec.ckpt_sync_ranks:
            self._comm.barrier()
        self._calls.span(f"{self._framework}Checkpointing.load_checkpoint", "checkpoint", began)
        seconds = now() - began
        for path, (name, length), read in zip(paths, names, sums, strict=True):
            if read != self._sum(_seed(name, epoch, step), length):
                raise Failure(
                    f"{path}: does not hold what this workload writes: it is damaged, or of another version "
                    "or other keys (checkpoint.randomize_tensor): write it again"
                )
        moved = sum(length for _, length in names)
        return Saved("checkpoint-read", epoch, step, began, seconds, moved, found)

    def _path(self, below: str, name: str) -> str:
        return self._folder.path(f"{below}/{name}.ckpt")

    def _write(self, path: str, seed: str, length: int) -> None:
        descriptor = self._calls.create(path, length)
        try:
            for piece in _pieces(self._content(seed, 0, length)):
                done = 0
                while done < len(piece):
                    done += self._calls.write(descriptor, path, piece[done:])
            if self._spec.ckpt_fsync:
                self._calls.fsync(descriptor, path)
        finally:
            self._calls.close(descriptor, path)

    def _content(self, seed: str, offset: int, length: int) -> Iterable[memoryview]:
        """Return what a file holds from `offset` on: random, or ones. It is never whole in memory."""
        if self._spec.ckpt_random:
            return content_at(_POOL, seed, offset, length)
        kind = "optimizer_datatype" if "optim" in seed.split(":", maxsplit=1)[0] else "model_datatype"
        return _ones(_ONE[self._spec.model[kind]], offset, length)

    def _read(self, path: str, length: int) -> int:
        """Read a file, and return the checksum of some of it."""
        buffer = memoryview(bytearray(min(_PIECE, max(1, length))))
        descriptor, have, found = self._calls.open(path, way="stream"), 0, 0
        try:
            while got := self._calls.read(descriptor, path, buffer):
                for first, last in _compared(have, have + got, length):
                    found = zlib.crc32(buffer[first - have : last - have], found)
                have += got
        finally:
            self._calls.close(descriptor, path)
        if have != length:
            raise Failure(f"{path}: has {have} bytes where {length} were written")
        return found

    def _sum(self, seed: str, length: int) -> int:
        """Return the checksum that `_read` finds in an undamaged file."""
        found = 0
        for first, last in _compared(0, length, length):
            for piece in self._content(seed, first, last - first):
                found = zlib.crc32(piece, found)
        return found


def _below(epoch: int, step: int) -> str:
    return f"global_epoch{epoch}_step{step}"


def _seed(name: str, epoch: int, step: int) -> str:
    return f"{name}:{epoch}:{step}"


def _ones(one: bytes, offset: int, length: int) -> Iterator[memoryview]:
    piece = memoryview(one * (min(_PIECE, length + 2 * len(one)) // len(one)))
    while length > 0:
        part = piece[offset % len(one) :][:length]
        yield part
        offset, length = offset + len(part), length - len(part)


def _compared(begin: int, end: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of bytes `begin` to `end` of a file of `length` bytes that are compared, in order."""
    firsts = [*range(begin // _STRETCH * _STRETCH, end, _STRETCH)]
    last = max(0, length - 1) // _BLOCK * _BLOCK
    for first in firsts if last % _STRETCH == 0 else [*firsts, last]:
        low, high = max(begin, first), min(end, first + _BLOCK)
        if low < high:
            yield low, high


def _pieces(parts: Iterable[memoryview]) -> Iterator[memoryview]:
    return (part[n : n + _PIECE] for part in parts for n in range(0, len(part), _PIECE))
