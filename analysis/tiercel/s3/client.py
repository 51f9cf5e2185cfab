"""Requests of one bucket. Threads may share a client; a forked process makes one of its own."""

from __future__ import annotations

import hashlib
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from xml.etree import ElementTree

from tiercel.s3.connection import Body, Broken, Connection
from tiercel.s3.endpoint import Credentials, Endpoint
from tiercel.s3.errors import S3Error, refusal
from tiercel.s3.signing import EMPTY, Signer, path_text, query_text

#: Bytes of a part of a large object (8 MiB in Amazon's tools; from 5 MiB on it is allowed), and how many
#: parts an object may have.
PART = 16 * 1024**2
_MOST_PARTS = 10_000
#: What a server answers that is busy, or whose parts do not find each other for the moment.
_AGAIN = {500, 502, 503, 504}
#: Seconds before the second request; twice as many before each further one, and never more than the last.
_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 20.0

View = bytes | memoryview


@dataclass(frozen=True)
class Entry:
    """An object: its key, its bytes, and the server's tag of its content."""

    key: str
    size: int
    etag: str


class Client:
    """Asks a server for the objects of a bucket. `retried` is called for every request that is sent again."""

    def __init__(
        self,
        endpoint: Endpoint,
        bucket: str,
        credentials: Credentials | None = None,
        retried: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises S3Error where the environment has no credentials."""
        try:
            known = credentials or Credentials.of()
        except LookupError as error:
            raise S3Error(str(error)) from None
        self.endpoint, self.bucket = endpoint, bucket
        self._signer = Signer(known, endpoint.region)
        self._retried = retried
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._tls = ssl.create_default_context() if endpoint.tls else None
        standard = endpoint.port == (443 if endpoint.tls else 80)
        host = endpoint.host if endpoint.in_path else f"{bucket}.{endpoint.host}"
        host = f"[{host}]" if ":" in host else host
        self._host = host if standard else f"{host}:{endpoint.port}"

    def get(self, key: str, first: int = 0, length: int | None = None, etag: str = "") -> Body:
        """Ask for an object, or `length` bytes of it from `first` on; `done` is due when it is read.

        With `etag` the object must still be the one of that tag.
        """
        headers = {"if-match": f'"{etag}"'} if etag else {}
        if length is not None:
            headers["range"] = f"bytes={first}-{first + length - 1}"
        body = self._ask("GET", key, headers=headers)
        if body.size is None:
            self.done(body)
            raise S3Error(f"GET {self._named(key)}: the server does not say how long the object is")
        return body

    def done(self, body: Body) -> None:
        """Take an answer's connection back: for the next request where all was read, else it is closed."""
        if body.keeps and not body.left:
            with self._lock:
                self._idle.append(body.connection)
        else:
            body.connection.close()

    def read(self, key: str) -> bytes:
        """Return the content of a small object."""
        body = self.get(key)
        try:
            return body.all()
        except Broken as broken:
            raise S3Error(f"GET {self._named(key)}: {broken}") from None
        finally:
            self.done(body)

    def head(self, key: str) -> Entry:
        """Return size and tag of an object; Missing where there is none."""
        body = self._ask("HEAD", key)
        self.done(body)
        return Entry(
            key, int(body.headers.get("content-length", "0")), body.headers.get("etag", "").strip('"')
        )

    def put(self, key: str, pieces: Sequence[View]) -> str:
        """Write an object in one request and return its tag."""
        answer = self._ask("PUT", key, content=pieces)
        self.done(answer)
        return answer.headers.get("etag", "").strip('"')

    def delete(self, key: str) -> None:
        """Remove an object; it need not be there."""
        body = self._ask("DELETE", key)
        self.done(body)

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects whose keys begin with `prefix`, in order."""
        query = {"list-type": "2", "prefix": prefix}
        while True:
            answer = self._small("GET", "", query)
            try:
                found = ElementTree.fromstring(answer)
            except ElementTree.ParseError:
                raise S3Error(f"LIST {self._named(prefix)}: the answer is no list of objects") from None
            for node in found.iterfind("{*}Contents"):
                text = {name: node.findtext(f"{{*}}{name}") or "" for name in ("Key", "Size", "ETag")}
                yield Entry(text["Key"], int(text["Size"]), text["ETag"].strip('"'))
            token = found.findtext("{*}NextContinuationToken")
            if found.findtext("{*}IsTruncated") != "true" or not token:
                return
            query["continuation-token"] = token

    def upload(self, key: str, length: int) -> Upload:
        """Begin to write an object of `length` bytes, piece by piece."""
        return Upload(self, key, length)

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def begin_parts(self, key: str) -> str:
        """Begin a multipart upload and return its number."""
        answer = self._small("POST", key, {"uploads": ""})
        with suppress(ElementTree.ParseError):
            number = ElementTree.fromstring(answer).findtext("{*}UploadId")
            if number:
                return number
        raise S3Error(f"POST {self._named(key)}: the server gave no number for an upload in parts")

    def put_part(self, key: str, upload: str, number: int, pieces: Sequence[View]) -> str:
        answer = self._ask("PUT", key, {"partNumber": str(number), "uploadId": upload}, content=pieces)
        self.done(answer)
        return answer.headers.get("etag", "")

    def end_parts(self, key: str, upload: str, tags: Sequence[str]) -> None:
        """Make one object of the parts."""
        parts = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in enumerate(tags, 1)
        )
        text = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = self._small("POST", key, {"uploadId": upload}, [text])
        if b"<Error>" in answer:  # S3 may find that out after it has said 200
            raise refusal(200, answer, f"POST {self._named(key)}")

    def abandon(self, prefix: str) -> None:
        """Forget uploads in parts below `prefix` that were never ended: a server keeps their parts."""
        answer = self._small("GET", "", {"uploads": "", "prefix": prefix})
        with suppress(ElementTree.ParseError):
            for node in ElementTree.fromstring(answer).iterfind("{*}Upload"):
                key, number = node.findtext("{*}Key") or "", node.findtext("{*}UploadId") or ""
                if key.startswith(prefix) and number:
                    self.abort_parts(key, number)

    def abort_parts(self, key: str, upload: str) -> None:
        self._small("DELETE", key, {"uploadId": upload})

    def _small(self, method: str, key: str, query: Mapping[str, str], content: Sequence[View] = ()) -> bytes:
        body = self._ask(method, key, query, content=content)
        try:
            return body.all()
        except Broken as broken:
            raise S3Error(f"{method} {self._named(key)}: {broken}") from None
        finally:
            self.done(body)

    def _ask(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        content: Sequence[View] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Body:
        """Send a request, again where the server is busy or the connection breaks; S3Error in the end."""
        what, tried, pause = f"{method} {self._named(key)}", 0, _PAUSE_S
        digest = _digest(content)
        while True:
            tried += 1
            wait = 0.0
            try:
                body = self._send(method, key, query or {}, headers or {}, content, digest)
                if body.status < 300:
                    return body
                try:
                    said = body.all()
                finally:
                    self.done(body)
                failure = refusal(body.status, said, what)
                if body.status not in _AGAIN:
                    raise failure
                told = body.headers.get("retry-after", "")
                wait = float(told) if told.isdigit() else 0.0
            except Broken as broken:
                failure = S3Error(f"{what}: {broken}")
            if tried >= self.endpoint.attempts:
                times = f" ({tried} times)" if tried > 1 else ""
                raise type(failure)(f"{failure.strerror}{times}", failure.status, failure.code)
            self._retried()
            time.sleep(min(_LONGEST_PAUSE_S, max(wait, pause * random.uniform(0.5, 1))))
            pause *= 2

    def _send(
        self,
        method: str,
        key: str,
        query: Mapping[str, str],
        extra: Mapping[str, str],
        content: Sequence[View],
        digest: str,
    ) -> Body:
        path = path_text(f"/{self.bucket}/{key}" if self.endpoint.in_path else f"/{key}")
        text = query_text(query)
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = {"host": self._host, **extra}
        if method in ("PUT", "POST"):
            headers["content-length"] = str(sum(len(piece) for piece in content))
        headers |= self._signer.headers(method, self._host, path, text, digest, moment)
        target = f"{path}?{text}" if text else path
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            connection = connection or Connection(self.endpoint, self._tls)
            try:
                return connection.ask(method, target, headers, content)
            except Broken as broken:
                connection.close()
                # A server closes what lay idle: that is no failure, and another connection is taken.
                if not connection.used or broken.answered:
                    raise

    def _named(self, key: str) -> str:
        return f"{self.bucket}/{key}"


def _digest(content: Sequence[View]) -> str:
    if not content:
        return EMPTY
    found = hashlib.sha256()
    for piece in content:
        found.update(piece)
    return found.hexdigest()


class Upload:
    """An object that is written piece by piece: in one request where it is small, else in parts."""

    def __init__(self, client: Client, key: str, length: int) -> None:
        self._client, self._key, self._length = client, key, length
        self._part = max(PART, -(-length // _MOST_PARTS))
        self._number = client.begin_parts(key) if length > self._part else ""
        self._waiting: list[memoryview] = []
        self._have = self._sent = 0
        self._tags: list[str] = []
        self.requests = 0
        """Requests that carried content."""

    def write(self, piece: memoryview) -> None:
        """Take the next bytes. They are kept, not copied, until their part is full."""
        while len(piece):
            some = piece[: self._part - self._have]
            self._waiting.append(some)
            self._have += len(some)
            piece = piece[len(some) :]
            if self._number and self._have == self._part:
                self._send()

    def end(self) -> None:
        """Make the object; S3Error, and no object, where not all of its bytes were written."""
        if self._sent + self._have != self._length:
            self.abort()
            raise S3Error(f"PUT {self._key}: {self._sent + self._have} of {self._length} bytes were written")
        if self._have or not self._number:
            self._send()
        if self._number:
            self._client.end_parts(self._key, self._number, self._tags)

    def abort(self) -> None:
        """Forget what was sent."""
        self._waiting.clear()
        if self._number:
            with suppress(S3Error):
                self._client.abort_parts(self._key, self._number)

    def _send(self) -> None:
        if self._number:
            number = len(self._tags) + 1
            self._tags.append(self._client.put_part(self._key, self._number, number, self._waiting))
        else:
            self._client.put(self._key, self._waiting)
        self.requests += 1
        self._sent += self._have
        self._waiting.clear()
        self._have = 0
