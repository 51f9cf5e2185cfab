"""Every call that dlkernel makes on a file of the dataset: done, timed, counted, traced where asked for."""

from __future__ import annotations

import io
import os
import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tiercel.clock import now
from tiercel.dl.kernel.spans import Pairs, Spans
from tiercel.dl.kernel.trace import Tracer

#: How a file is going to be read. Only objects are asked for accordingly (see `objects`).
Way = Literal["whole", "stream", "ranges"]


@dataclass
class Counts:
    """What a process read: bytes, calls, opened files, and when (see `spans`); of object storage also the
    seconds of each request, and how many were sent again."""

    bytes: int = 0
    reads: int = 0
    opens: int = 0
    spans: Spans = field(default_factory=Spans)
    requests: array[float] = field(default_factory=lambda: array("d"))
    retries: int = 0


class IO:
    """The calls of one process. Threads share it."""

    of_objects = False
    """Whether what is read lies in object storage."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self.tracer = tracer
        self.counts = Counts()
        self._lock = threading.Lock()

    def child(self, worker: int) -> IO:
        """Return the calls of a forked worker."""
        return IO(self.tracer.child(worker) if self.tracer else None)

    def take(self) -> tuple[int, int, int, Pairs, array[float], int]:
        """Return bytes, reads, opens, spans, seconds of requests and retries since the last call, and begin
        anew."""
        with self._lock:
            done, self.counts = self.counts, Counts()
        return done.bytes, done.reads, done.opens, done.spans.merged(), done.requests, done.retries

    def note(self, began: float, ended: float, moved: int = 0, reads: int = 0, opens: int = 0) -> None:
        """Count I/O that a library did."""
        with self._lock:
            counts = self.counts
            counts.bytes += moved
            counts.reads += reads
            counts.opens += opens
            counts.spans.add(began, ended)

    def open(self, path: str, flags: int = os.O_RDONLY, way: Way = "whole") -> int:
        """Open a file for reading and return its descriptor."""
        began = now()
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        ended = now()
        self.note(began, ended, opens=1)
        if self.tracer:
            self._trace("open64", began, ended, path, descriptor)
        return descriptor

    def stat(self, descriptor: int) -> tuple[int, int]:
        """Return the bytes of an open file, and those of a block of it (0: it has none)."""
        known = os.fstat(descriptor)
        return known.st_size, known.st_blksize

    def size(self, path: str) -> int:
        """Return the bytes of a file: a look of ours, which no training makes and which is not counted."""
        return Path(path).stat().st_size

    def close(self, descriptor: int, path: str) -> None:
        began = now()
        os.close(descriptor)
        ended = now()
        self.note(began, ended)
        if self.tracer:
            self._trace("close", began, ended, path, 0)

    def pread(self, descriptor: int, path: str, buffer: memoryview, offset: int) -> int:
        """Read into `buffer` from `offset`; return the bytes read, 0 at the end."""
        began = now()
        got = os.preadv(descriptor, [buffer], offset)
        ended = now()
        self.note(began, ended, got, 1)
        if self.tracer:
            self._trace("pread", began, ended, path, got, offset, len(buffer))
        return got

    def read(self, descriptor: int, path: str, buffer: memoryview) -> int:
        """Read into `buffer` from where the file stands; return the bytes read, 0 at the end."""
        began = now()
        got = os.readv(descriptor, [buffer])
        ended = now()
        self.note(began, ended, got, 1)
        if self.tracer:
            self._trace("read", began, ended, path, got, None, len(buffer))
        return got

    def skim(self, descriptor: int, path: str, buffer: memoryview, offset: int, length: int) -> int:
        """Read `length` bytes from `offset` on through a buffer that nobody looks at; return how many."""
        done = 0
        while done < length:
            got = self.pread(descriptor, path, buffer[: length - done], offset + done)
            if not got:
                break
            done += got
        return done

    def create(self, path: str, length: int) -> int:
        """Open a new file for writing, which is to have `length` bytes."""
        began = now()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        ended = now()
        self.note(began, ended, opens=1)
        if self.tracer:
            self._trace("open64", began, ended, path, descriptor)
        return descriptor

    def write(self, descriptor: int, path: str, data: memoryview) -> int:
        """Write where the file stands; return the bytes written."""
        began = now()
        put = os.write(descriptor, data)
        ended = now()
        self.note(began, ended, put, 1)
        if self.tracer:
            self._trace("write", began, ended, path, put, None, len(data))
        return put

    def fsync(self, descriptor: int, path: str) -> None:
        began = now()
        os.fsync(descriptor)
        ended = now()
        self.note(began, ended)
        if self.tracer:
            self._trace("fsync", began, ended, path, 0)

    def library(self, name: str, category: str, began: float, path: str, moved: int = 0) -> None:
        """Count and trace a call of a library that began at `began`, ends now, and moved so many bytes."""
        ended = now()
        self.note(began, ended, moved, 1 if moved else 0, 1 if "open" in name else 0)
        if self.tracer:
            start = int(began * 1e6)
            self.tracer.call(name, start, int(ended * 1e6) - start, path, moved, category=category)

    def span(self, name: str, category: str, began: float, arguments: dict[str, int] | None = None) -> None:
        """Trace something that began at `began` (seconds since 1970) and ends now."""
        if self.tracer:
            start = int(began * 1e6)
            self.tracer.event(name, category, start, int(now() * 1e6) - start, arguments)

    def _trace(
        self, name: str, began: float, ended: float, path: str, returned: int,
        offset: int | None = None, count: int | None = None,
    ) -> None:  # fmt: skip
        start = int(began * 1e6)
        assert self.tracer is not None
        self.tracer.call(name, start, int(ended * 1e6) - start, path, returned, offset, count)


class RawFile(io.RawIOBase):
    """A file for libraries that want a Python file object; its reads are ours, in the sizes they ask for."""

    def __init__(self, calls: IO, path: str, way: Way = "whole") -> None:
        self._calls, self._path = calls, path
        self._descriptor, self._ranges = calls.open(path, way=way), way == "ranges"
        self._size, block = calls.stat(self._descriptor)
        self._position = 0
        self.block = block if block > 1 else io.DEFAULT_BUFFER_SIZE
        """Bytes of the buffer that Python's own open() gives a file."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Sequence[int] | memoryview) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        if self._ranges and self._position >= self._size:  # a server has no range there to answer with
            return 0
        got = self._calls.pread(self._descriptor, self._path, view, self._position)
        self._position += got
        return got

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        if not self.closed:
            self._calls.close(self._descriptor, self._path)
        super().close()
