"""Says to a server whatever an attacker likes, well formed or not, and looks through all that it answers."""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from tiercel.layers.fairshare.wire import FRAME, HELLO, MAGIC, REPLY, REQUEST, SEGMENT_BYTES, VERSION

#: Seconds to wait for an answer; one that does not come is none.
PATIENCE = 2.0


def request(
    op: int, path: bytes = b"", path2: bytes = b"", data: bytes = b"", *, flags: int = 0, handle: int = 0,
    handle2: int = 0, offset: int = 0, size: int = 0, mode: int = 0, mask: int = 0,
) -> bytes:  # fmt: skip
    """The bytes of a request with what follows it."""
    numbers = (op, flags, handle, handle2, offset, size, len(path), len(path2), mode, mask)
    return REQUEST.pack(*numbers, *[0] * 6) + path + path2 + data


class Speaker:
    """One connection. What it receives goes through `look`."""

    def __init__(
        self, address: str, look: Callable[[bytes], None], greet: bool = True, wants: int = 0
    ) -> None:
        self.look = look
        self.descriptors: list[int] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.welcome = b""
        try:
            self.socket.connect(address)
            if greet:
                self.challenge = self.hear()
                self.say(HELLO.pack(VERSION, wants, 0))
                self.welcome = self.hear()
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Speaker:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()
        while self.descriptors:
            os.close(self.descriptors.pop())

    def say(self, body: bytes, tag: int = 0, length: int | None = None) -> None:
        self.socket.sendall(FRAME.pack(MAGIC, len(body) if length is None else length, tag) + body)

    def hear(self) -> bytes:
        """The body of the next frame; empty where none comes."""
        with suppress(OSError):
            head, passed, _, _ = socket.recv_fds(self.socket, FRAME.size, 8)
            self.descriptors += passed
            if len(head) == FRAME.size:
                _, length, _ = FRAME.unpack(head)
                body = self.socket.recv(length, socket.MSG_WAITALL)
                self.look(body)
                return body
        return b""

    def ask(self, body: bytes) -> tuple[int, int, bytes]:
        """Result, value and data of the answer; -EPIPE where the server has hung up."""
        try:
            self.say(body)
        except OSError:
            return -32, 0, b""
        said = self.hear()
        if len(said) < REPLY.size:
            return -32, 0, b""
        result, value, _ = REPLY.unpack_from(said)
        return result, value, said[REPLY.size :]

    def memory(self) -> mmap.mmap | None:
        """The shared memory of a session that asked for it."""
        return mmap.mmap(self.descriptors[0], SEGMENT_BYTES) if len(self.descriptors) >= 2 else None
