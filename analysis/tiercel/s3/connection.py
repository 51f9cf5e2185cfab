"""One connection to a server of objects: HTTP/1.1, kept open from request to request.

The socket blocks, with limits of the kernel (SO_RCVTIMEO), so that an answer of many megabytes takes few
calls, straight into the memory of whoever reads.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterable, Mapping

from tiercel.s3.endpoint import Endpoint

#: Seconds without a byte after which a connection is given up.
PATIENCE_S = 60
_HEAD_LIMIT = 64 * 1024

Pieces = Iterable[bytes | memoryview]


class Broken(ConnectionError):
    """The connection ended, or fell silent. `answered`: whether something of an answer had come."""

    def __init__(self, said: str, answered: bool = False) -> None:
        super().__init__(said)
        self.answered = answered


class Connection:
    """A connection. Not for several threads, nor for several processes."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
        self.used = False
        """Whether it has carried a request: a server may have closed it since."""
        self._rest = memoryview(b"")
        try:
            raw = socket.create_connection((endpoint.host, endpoint.port), timeout=PATIENCE_S)
        except OSError as error:
            raise Broken(f"no connection to {endpoint.url}: {error.strerror or error}") from None
        raw.settimeout(None)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        limit = struct.pack("ll", PATIENCE_S, 0)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self._socket: socket.socket = raw
        self._flags = int(socket.MSG_WAITALL)
        if tls is not None:
            try:
                self._socket, self._flags = tls.wrap_socket(raw, server_hostname=endpoint.host), 0
            except OSError as error:
                raw.close()
                said = getattr(error, "verify_message", "") or error.strerror or error
                raise Broken(f"no secure connection to {endpoint.url}: {said}") from None

    def ask(self, method: str, target: str, headers: Mapping[str, str], content: Pieces = ()) -> Body:
        """Send a request and return its answer, of which the content is still to be read. Raises Broken."""
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        failed: OSError | None = None
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
            for piece in content:
                self._socket.sendall(piece)
        except OSError as error:  # a server that refuses may answer before it has all
            failed = error
        try:
            body = self._answer(method)
        except Broken as broken:
            if failed is None:
                raise
            raise Broken(
                f"the connection broke while sending: {failed.strerror or failed}", broken.answered
            ) from None
        if failed is not None:
            body.keeps = False
        self.used = True
        return body

    def receive(self, view: memoryview) -> int:
        """Fill `view` as far as the server gives it; fewer bytes mean that the connection ended."""
        have = min(len(view), len(self._rest))
        view[:have] = self._rest[:have]
        self._rest = self._rest[have:]
        while have < len(view):
            try:
                got = self._socket.recv_into(view[have:], 0, self._flags)
            except BlockingIOError:
                raise Broken(f"the server has sent nothing for {PATIENCE_S} s", True) from None
            except OSError as error:
                raise Broken(f"the connection broke: {error.strerror or error}", True) from None
            if not got:
                break
            have += got
        return have

    def line(self) -> bytes:
        """Return the next line, without its end."""
        return self._until(b"\r\n")

    def close(self) -> None:
        self._socket.close()

    def _answer(self, method: str) -> Body:
        while True:
            head = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            version, _, rest = head[0].partition(" ")
            status = rest[:3]
            if not version.startswith("HTTP/1.") or not status.isdigit():
                raise Broken("what answers is no HTTP server", True)
            if not status.startswith("1"):
                break
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return Body(self, method, int(status), headers, keeps=version != "HTTP/1.0")

    def _until(self, mark: bytes) -> bytes:
        found = bytes(self._rest)
        while (end := found.find(mark)) < 0:
            if len(found) > _HEAD_LIMIT:
                raise Broken("the head of an answer has no end", True)
            try:
                got = self._socket.recv(_HEAD_LIMIT)
            except BlockingIOError:
                raise Broken(f"the server has not answered for {PATIENCE_S} s") from None
            except OSError as error:
                raise Broken(f"the connection broke: {error.strerror or error}", bool(found)) from None
            if not got:
                raise Broken("the server closed the connection", bool(found))
            found += got
        self._rest = memoryview(found)[end + len(mark) :]
        return found[:end]


class Body:
    """An answer: `status`, `headers` (lower case), and its content, to be read once."""

    def __init__(
        self, connection: Connection, method: str, status: int, headers: Mapping[str, str], keeps: bool
    ) -> None:
        self.status, self.headers = status, headers
        self.connection = connection
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._left: int | None = None
        stated = headers.get("content-length", "")
        if method == "HEAD" or status in (204, 304):
            self._left, self._chunked = 0, False
        elif not self._chunked and stated.isdigit():
            self._left = int(stated)
        self.size = self._left
        """Bytes of the content; None where the answer does not say."""
        self.keeps = keeps and headers.get("connection", "").lower() != "close"
        """Whether the connection can carry another request once all is read."""

    @property
    def left(self) -> int:
        """Bytes that are still to come."""
        return self._left or 0

    def readinto(self, view: memoryview) -> int:
        """Fill `view`, or as much of it as there is; Broken where the connection ends before the content."""
        want = min(len(view), self.left)
        got = self.connection.receive(view[:want])
        if got < want:
            self.keeps = False
            raise Broken(f"the connection ended {self.left - got} bytes before the object", True)
        self._left = self.left - got
        return got

    def all(self) -> bytes:
        """Return the whole content, of answers that are small."""
        if not self._chunked:
            if self._left is None:  # up to the end of the connection: no server of objects does that
                self.keeps = False
                return b""
            found = bytearray(self._left)
            self.readinto(memoryview(found))
            return bytes(found)
        parts = bytearray()
        while size := int(self.connection.line().split(b";")[0], 16):
            part = bytearray(size)
            if self.connection.receive(memoryview(part)) < size:
                raise Broken("the connection ended within an answer", True)
            parts += part
            self.connection.line()
        while self.connection.line():
            pass
        return bytes(parts)
