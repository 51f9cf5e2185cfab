"""Datasets and checkpoints in object storage (S3).

An object is read by one request where its format reads it whole (as DLIO's readers of S3 do), by one whose
answer is taken piece by piece where the format streams, and by a request for each range where it seeks. What
counts as bytes is what came over the wire.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tiercel.clock import now
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.io import IO, Way
from tiercel.dl.kernel.trace import Tracer
from tiercel.pagecache import Residency
from tiercel.s3.client import PART, Client, Upload
from tiercel.s3.connection import Body, Broken
from tiercel.s3.endpoint import Location, split
from tiercel.s3.errors import S3Error

#: Where objects are made before they are sent: in memory, if there is so much room for each process.
_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30


class _Whole:
    """An object that is in memory."""

    def __init__(self, content: bytearray) -> None:
        self.content, self.position = memoryview(content), 0


class _Stream:
    """An object that is on its way."""

    def __init__(self, body: Body) -> None:
        self.body, self.position, self.size, self.spent = body, 0, body.size or 0, 0.0


class _Ranges:
    """An object of which parts are asked for. The first answer says of which content the others must be."""

    def __init__(self, path: str) -> None:
        self.path, self.etag = path, ""


class ObjectIO(IO):
    """The calls of one process on objects; their descriptors are numbers below zero."""

    of_objects = True

    def __init__(self, objects: Objects, tracer: Tracer | None = None) -> None:
        super().__init__(tracer)
        self._objects = objects
        self._client = objects.new_client(self._retried)
        self._held: dict[int, _Whole | _Stream | _Ranges | Upload] = {}
        self._next = -1

    def child(self, worker: int) -> ObjectIO:
        return ObjectIO(self._objects, self.tracer.child(worker) if self.tracer else None)

    def open(self, path: str, flags: int = os.O_RDONLY, way: Way = "whole") -> int:
        """Ask for an object (``ranges``: only say which it is)."""
        if flags & os.O_DIRECT:
            raise Failure(f"{path}: object storage has no direct reads")
        if way == "ranges":
            self.note(at := now(), at, opens=1)
            return self._hold(_Ranges(path))
        began = now()
        body = self._client.get(_key(path))
        if way == "stream":
            ended = now()
            self.note(began, ended, reads=1, opens=1)
            stream = _Stream(body)
            stream.spent = ended - began
            return self._hold(stream)
        content = bytearray(body.size or 0)
        self._fill(path, body, memoryview(content))
        self._client.done(body)
        self._requested("GET", began, path, len(content), opens=1)
        return self._hold(_Whole(content))

    def stat(self, descriptor: int) -> tuple[int, int]:
        held = self._held[descriptor]
        if isinstance(held, _Whole):
            return len(held.content), 0
        if isinstance(held, _Stream):
            return held.size, 0
        assert isinstance(held, _Ranges)
        began = now()
        size = self._client.head(_key(held.path)).size
        self._requested("HEAD", began, held.path, 0)
        return size, 0

    def size(self, path: str) -> int:
        return self._client.head(_key(path)).size

    def pread(self, descriptor: int, path: str, buffer: memoryview, offset: int) -> int:
        held = self._held[descriptor]
        if isinstance(held, _Whole):
            part = held.content[offset : offset + len(buffer)]
            buffer[: len(part)] = part
            return len(part)
        if isinstance(held, _Ranges):
            return self._range(held, path, buffer, offset)
        if not isinstance(held, _Stream) or offset != held.position:
            raise OSError(0, f"byte {offset} is not where the object's stream stands")
        return self._next_of(held, path, buffer)

    def read(self, descriptor: int, path: str, buffer: memoryview) -> int:
        held = self._held[descriptor]
        if isinstance(held, _Whole):
            got = self.pread(descriptor, path, buffer, held.position)
            held.position += got
            return got
        if isinstance(held, _Stream):
            return self._next_of(held, path, buffer)
        raise OSError(0, "an object that is read by ranges has no position")

    def close(self, descriptor: int, path: str) -> None:
        with self._lock:
            held = self._held.pop(descriptor)
        if isinstance(held, _Stream):
            self._client.done(held.body)
        elif isinstance(held, Upload):
            began = now()
            held.end()
            self._requested("PUT", began, path, 0)

    def create(self, path: str, length: int) -> int:
        began = now()
        upload = self._client.upload(_key(path), length)
        self.note(began, now(), opens=1)
        return self._hold(upload)

    def write(self, descriptor: int, path: str, data: memoryview) -> int:
        upload = self._held[descriptor]
        assert isinstance(upload, Upload)
        began, before = now(), upload.requests
        try:
            upload.write(data)
        except S3Error:
            upload.abort()
            raise
        ended = now()
        self.note(began, ended, len(data), upload.requests - before)
        if self.tracer and upload.requests > before:
            self._trace_object("PUT", began, ended, path, PART)
        return len(data)

    def fsync(self, descriptor: int, path: str) -> None:
        """Nothing is left to do: an object is durable when its server has said so."""

    def skim(self, descriptor: int, path: str, buffer: memoryview, offset: int, length: int) -> int:
        """Ask for a range by one request, however small the buffer."""
        held = self._held[descriptor]
        assert isinstance(held, _Ranges)
        began = now()
        body = self._part(held, path, offset, length)
        done = body.size or 0
        while body.left:
            self._fill(path, body, buffer)
        self._client.done(body)
        self._requested("GET", began, path, done, offset=offset)
        return done

    def _part(self, held: _Ranges, path: str, offset: int, length: int) -> Body:
        body = self._client.get(_key(path), offset, length, held.etag)
        if body.status != 206 or (body.size or 0) > length:
            body.connection.close()
            raise S3Error(f"GET {path}: the server does not give parts of objects")
        held.etag = held.etag or body.headers.get("etag", "").strip('"')
        return body

    def _range(self, held: _Ranges, path: str, buffer: memoryview, offset: int) -> int:
        began = now()
        body = self._part(held, path, offset, len(buffer))
        got = body.size or 0
        self._fill(path, body, buffer[:got])
        self._client.done(body)
        self._requested("GET", began, path, got, offset=offset)
        return got

    def _next_of(self, held: _Stream, path: str, buffer: memoryview) -> int:
        if not held.body.left:
            return 0
        began = now()
        got = self._fill(path, held.body, buffer)
        ended = now()
        held.position += got
        held.spent += ended - began
        self.note(began, ended, got)
        if not held.body.left:
            with self._lock:
                self.counts.requests.append(held.spent)
            if self.tracer:
                self._trace_object("GET", ended - held.spent, ended, path, held.position)
        return got

    def _fill(self, path: str, body: Body, buffer: memoryview) -> int:
        """Read what there is of an answer; one that breaks off is an error, never a short file."""
        try:
            return body.readinto(buffer)
        except Broken as broken:
            self._client.done(body)
            raise S3Error(f"GET {path}: {broken}") from None

    def _requested(
        self,
        name: str,
        began: float,
        path: str,
        moved: int,
        opens: int = 0,
        offset: int | None = None,
    ) -> None:
        """Count and trace a request that ends now."""
        ended = now()
        self.note(began, ended, moved, 1, opens)
        with self._lock:
            self.counts.requests.append(ended - began)
        if self.tracer:
            self._trace_object(name, began, ended, path, moved, offset)

    def _trace_object(
        self, name: str, began: float, ended: float, path: str, moved: int, offset: int | None = None
    ) -> None:
        start = int(began * 1e6)
        assert self.tracer is not None
        self.tracer.call(name, start, int(ended * 1e6) - start, path, moved, offset, moved, category="S3")

    def _hold(self, held: _Whole | _Stream | _Ranges | Upload) -> int:
        with self._lock:
            self._next -= 1
            self._held[self._next] = held
            return self._next

    def _retried(self) -> None:
        with self._lock:
            self.counts.retries += 1


class Objects(Folder):
    """A prefix in a bucket."""

    def __init__(self, location: Location) -> None:
        super().__init__(str(location))
        self._location = location
        self._client_of: tuple[int, Client] | None = None

    def new_client(self, retried: Callable[[], None] = lambda: None) -> Client:
        return Client(self._location.endpoint, self._location.bucket, retried=retried)

    def calls(self, tracer: Tracer | None = None) -> ObjectIO:
        return ObjectIO(self, tracer)

    def text(self, below: str) -> str | None:
        try:
            return self._client.read(self._key(below)).decode("utf-8", "replace")
        except FileNotFoundError:
            return None

    def put_text(self, below: str, text: str) -> None:
        self._client.put(self._key(below), [text.encode()])

    def make(self, below: str = "") -> None:
        """Nothing: there are no folders."""

    def holds(self, below: str) -> bool:
        return next(iter(self._client.list(f"{self._key(below)}/")), None) is not None

    def files(self, below: str, ending: str) -> list[str]:
        found = self._client.list(f"{self._key(below)}/")
        return [f"s3://{self._location.bucket}/{one.key}" for one in found if one.key.endswith(ending)]

    def size(self, path: str) -> int:
        return self._client.head(_key(path)).size

    def write(self, path: str, write: Callable[[str], None]) -> int:
        """Make the file in memory (or the temporary folder) and send it, its companions first."""
        with _workshop() as folder:
            made = folder / path.rpartition("/")[2]
            write(f"{made}.part")
            Path(f"{made}.part").rename(made)
            length = made.stat().st_size
            for file in sorted(folder.iterdir(), key=lambda file: file == made):
                self._send(file, f"{path.rpartition('/')[0]}/{file.name}")
        return length

    def settle(self, small: bool) -> None:
        """Nothing: an object is durable when its server has said so."""

    def remove(self, folders: Iterable[str], file: str) -> None:
        for below in folders:
            for found in list(self._client.list(f"{self._key(below)}/")):
                self._client.delete(found.key)
        self._client.delete(self._key(file))

    def forget(self, paths: Iterable[str]) -> None:
        """Nothing: this machine keeps nothing of objects, and a server's memory is its own."""

    def remembered(self, paths: Sequence[str]) -> Residency | None:
        return None

    @property
    def _client(self) -> Client:
        """The client of this process: a forked one must not talk on its parent's connections."""
        known, mine = self._client_of, os.getpid()
        if known is None or known[0] != mine:
            known = self._client_of = (mine, self.new_client())
        return known[1]

    def _key(self, below: str) -> str:
        return (self._location / below).prefix

    def _send(self, file: Path, path: str) -> None:
        length = file.stat().st_size
        upload = self._client.upload(_key(path), length)
        try:
            with file.open("rb") as content:
                while piece := content.read(PART):
                    upload.write(memoryview(piece))
        except S3Error:
            upload.abort()
            raise
        upload.end()


def _key(path: str) -> str:
    return split(path)[1]


@contextmanager
def _workshop() -> Iterator[Path]:
    """Yield a folder that goes afterwards: in memory where there is room, else the temporary one."""
    place = None
    if os.access(_MEMORY, os.W_OK):
        space = os.statvfs(_MEMORY)
        place = _MEMORY if space.f_bavail * space.f_frsize > _ROOM else None
    folder = Path(tempfile.mkdtemp(prefix="tiercel-object-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
