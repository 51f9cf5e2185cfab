"""The event log in DFTracer's schema (version 2): one JSON object a line, compressed, one file for a process.

Names and categories of the events are DLIO's, so that one analysis serves both. The POSIX events are the
calls that this program makes itself (see `io`); where a library reads (HDF5), DFTracer's preload library
records them beside this.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import zlib
from pathlib import Path
from typing import Any

from tiercel.clock import now
from tiercel.dl.kernel.failure import Failure

_FLUSH = 1 << 20


class Tracer:
    """Writes the events of one process. Threads may call it; a forked child opens its own."""

    def __init__(self, folder: Path, rank: int, size: int, worker: int | None = None) -> None:
        self._folder, self._rank, self._size = folder, rank, size
        self.pid = os.getpid()
        who = "main" if worker is None else f"worker{worker}"
        self.path = folder / f"dlkernel-{who}-{rank}-of-{size}.pfw.gz"
        try:
            self._file = self.path.open("wb", buffering=0)
        except OSError as error:
            raise Failure(f"{self.path}: cannot be written: {error.strerror}") from None
        self._packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        self._lines: list[str] = []
        self._length = 0
        self._lock = threading.Lock()
        self._files: dict[str, str] = {}
        self._next = 0
        host = socket.gethostname()
        self._host = _hash(host)
        self._metadata("HH", host, self._host)
        command = "dlkernel"
        self._metadata("SH", command, _hash(command))
        self.event(
            "start", "dftracer", int(now() * 1e6), 0, {"ppid": os.getppid(), "cmd_hash": _hash(command)}
        )

    def child(self, worker: int) -> Tracer:
        """Return the tracer of a forked worker, which has the rank of its parent."""
        return Tracer(self._folder, self._rank, self._size, worker)

    def event(
        self, name: str, category: str, began: int, duration: int, arguments: dict[str, Any] | None = None
    ) -> None:
        """Add a span: microseconds since 1970 and their number."""
        extra = "".join(f',"{k}":{json.dumps(v)}' for k, v in (arguments or {}).items())
        self._line(name, category, began, duration, extra)

    def call(
        self, name: str, began: int, duration: int, path: str, returned: int,
        offset: int | None = None, count: int | None = None, category: str = "POSIX",
    ) -> None:  # fmt: skip
        """Add a call on a file, with what it returned."""
        known = self._files.get(path)
        if known is None:
            known = self._files[path] = _hash(path)
            self._metadata("FH", path, known)
        extra = f',"ret":{returned},"fhash":"{known}"'
        if offset is not None:
            extra += f',"offset":{offset}'
        if count is not None:
            extra += f',"count":{count}'
        self._line(name, category, began, duration, extra)

    def close(self) -> None:
        with self._lock:
            if not self._file.closed:
                try:
                    self._flush()
                    self._write(self._packer.flush())
                finally:
                    self._file.close()

    def _line(self, name: str, category: str, began: int, duration: int, extra: str) -> None:
        line = (
            f'{{"id":{self._next},"name":"{name}","cat":"{category}","pid":{self.pid},'
            f'"tid":{threading.get_native_id()},"ts":{began},"dur":{duration},"ph":1,'
            f'"args":{{"hhash":"{self._host}"{extra}}}}}\n'
        )
        with self._lock:
            self._next += 1
            self._put(line)

    def _metadata(self, kind: str, name: str, value: str) -> None:
        arguments = {"hhash": self._host, "name": name, "value": value}
        content = {"id": self._next, "name": kind, "cat": "dftracer", "pid": self.pid,
                   "tid": threading.get_native_id(), "ph": 4, "args": arguments}  # fmt: skip
        with self._lock:
            self._next += 1
            self._put(json.dumps(content, separators=(",", ":")) + "\n")

    def _put(self, line: str) -> None:
        self._lines.append(line)
        self._length += len(line)
        if self._length >= _FLUSH:
            self._flush()

    def _flush(self) -> None:
        content = self._packer.compress("".join(self._lines).encode("utf-8", "surrogateescape"))
        self._lines.clear()
        self._length = 0
        self._write(content)

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise Failure(f"{self.path}: cannot be written: {error.strerror}") from None


def _hash(text: str) -> str:
    """Return 16 hexadecimal digits that stand for a text in the log (FNV-1a)."""
    value = 0xCBF29CE484222325
    for byte in text.encode("utf-8", "surrogateescape"):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
