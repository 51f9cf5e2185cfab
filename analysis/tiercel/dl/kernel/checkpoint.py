"""Checkpoints: files as `shards` says, written and read back by the processes that would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import content
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.shards import shards
from tiercel.dl.kernel.spec import Spec
from tiercel.pagecache import Residency

_PIECE = 16 * 1024**2
#: The number one, as the types of a model have it in memory.
_ONE = {"fp16": b"\x00\x3c", "bf16": b"\x80\x3f", "fp32": b"\x00\x00\x80\x3f",
        "fp64": b"\x00\x00\x00\x00\x00\x00\xf0\x3f", "int8": b"\x01", "uint8": b"\x01"}  # fmt: skip


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
                self._write(self._path(folder, name), f"ckpt:{name}:{epoch}:{step}", length)
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
            for path, (_, length) in zip(paths, names, strict=True):
                self._read(path, length)
        except OSError as error:
            where = error.filename or self._folder.path(_below(epoch, step))
            raise Failure(f"{where}: the checkpoint cannot be read: {error.strerror}") from None
        if self._spec.ckpt_sync_ranks:
            self._comm.barrier()
        self._calls.span(f"{self._framework}Checkpointing.load_checkpoint", "checkpoint", began)
        moved = sum(length for _, length in names)
        return Saved("checkpoint-read", epoch, step, began, now() - began, moved, found)

    def _path(self, below: str, name: str) -> str:
        return self._folder.path(f"{below}/{name}.ckpt")

    def _write(self, path: str, seed: str, length: int) -> None:
        descriptor = self._calls.create(path, length)
        try:
            for piece in _pieces(self._content(path, seed, length)):
                done = 0
                while done < len(piece):
                    done += self._calls.write(descriptor, path, piece[done:])
            if self._spec.ckpt_fsync:
                self._calls.fsync(descriptor, path)
        finally:
            self._calls.close(descriptor, path)

    def _content(self, path: str, seed: str, length: int) -> Iterator[memoryview]:
        """Yield what a file holds: random, or ones everywhere. No checkpoint is ever whole in memory."""
        if self._spec.ckpt_random:
            yield from content(self._spec, seed, length)
            return
        kind = "optimizer_datatype" if "optim" in Path(path).name else "model_datatype"
        one = _ONE[self._spec.model[kind]]
        piece = memoryview(one * (min(_PIECE, length + len(one)) // len(one)))
        while length > 0:
            yield piece[:length]
            length -= len(piece[:length])

    def _read(self, path: str, length: int) -> None:
        buffer = memoryview(bytearray(min(_PIECE, max(1, length))))
        descriptor, have = self._calls.open(path, way="stream"), 0
        try:
            while got := self._calls.read(descriptor, path, buffer):
                have += got
        finally:
            self._calls.close(descriptor, path)
        if have != length:
            raise Failure(f"{path}: has {have} bytes where {length} were written")


def _below(epoch: int, step: int) -> str:
    return f"global_epoch{epoch}_step{step}"


def _pieces(parts: Iterable[memoryview]) -> Iterator[memoryview]:
    return (part[n : n + _PIECE] for part in parts for n in range(0, len(part), _PIECE))
