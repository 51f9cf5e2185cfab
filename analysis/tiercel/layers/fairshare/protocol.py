"""Speaks to a fairshare server: asks for its status, and for tickets that it signs.

The same messages as ``native/fairshare/wire``. Programs that do I/O use a mount.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.layers.fairshare import wire
from tiercel.layers.fairshare.wire import Op

_ANY_USER = 2**32 - 1
_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Job:
    """What a ticket says of a job. `holder`: user and group who may present it (default: who asks for it);
    `user` and `group`: whom it is accounted to (default: the holder)."""

    name: str
    size: int = 1
    priority: int = 1
    user: int | None = None
    group: int | None = None
    holder: tuple[int, int] | None = None


def counts_as_job(ticket: str, status: dict[str, Any]) -> bool:
    """Whether a server with this `status` believes a ticket's job, or counts it to its user's one job."""
    *_, by, _ = wire.TICKET.unpack_from(bytes.fromhex(ticket))
    return bool(by != wire.SIGNED_BY_USER or status["jobs_of"] == "users")


def _stands_for_many(user: int) -> bool:
    """Whether a number stands for all users whom our user namespace does not know, and so is anybody's."""
    try:
        if int(Path("/proc/sys/kernel/overflowuid").read_text()) != user:
            return False
        ranges = Path("/proc/self/uid_map").read_text().splitlines()
        return sum(int(line.split()[2]) for line in ranges) < 2**32 - 1
    except (OSError, ValueError, IndexError):
        return True


class Connection:
    """One connection to a server. A context manager; errors of the server are UserErrors.

    With a `ticket` (as :meth:`ticket` returns it) it belongs to that ticket's job: as long as it is open
    the server counts the job as there, and keeps its account.
    """

    def __init__(self, address: Path | str, ticket: str | None = None) -> None:
        """Connect to the Unix socket of that path, or to tcp:HOST:PORT, which asks for a ticket (as
        FAIRSHARE_TICKET has it: ``@`` and a file that holds it will do)."""
        self.address = address
        ticket = _read(ticket) if ticket else None
        there = tcp_address(address)
        self._socket = socket.socket(socket.AF_UNIX if there is None else socket.AF_INET, socket.SOCK_STREAM)
        # Python's own timeout would not wait where others connect faster than the server takes them.
        whole, part = divmod(_TIMEOUT_S, 1)
        limit = struct.pack("@ll", int(whole), int(part * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        try:
            if there is None:
                self._socket.connect(str(address))
                self._socket.settimeout(_TIMEOUT_S)
                self._believe()
            else:  # of another machine's server no kernel says whose it is: the ticket's secret does
                self._socket.settimeout(_TIMEOUT_S)
                self._socket.connect(there)
            challenge = self._receive()
            nonce = os.urandom(wire.NONCE_BYTES)
            self._send(wire.HELLO.pack(wire.VERSION, 0, 0) + _proof(ticket, challenge, nonce))
            welcome, _ = self._answer("is not let in")
            if ticket and not hmac.compare_digest(
                welcome[wire.WELCOME.size :], _answered(ticket, challenge, nonce)
            ):
                self._socket.close()
                raise UserError(f"{address}: the server does not know the secret of the ticket")
        except OSError as error:
            self._socket.close()
            raise UserError(
                f"{address}: no fairshare server answers there: {error.strerror or error}"
            ) from None

    def _believe(self) -> None:
        """Refuse a server that is neither root's nor our own user's: a path can be somebody else's."""
        size = struct.calcsize("3i")
        _, uid, _ = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        own = uid == os.geteuid()
        if uid == 0 or (own and not _stands_for_many(uid)):
            return
        if str(uid) != os.environ.get("FAIRSHARE_SERVER_USER"):
            self._socket.close()
            you, it = (
                ("surely you, as that is anybody in a user namespace", "all of them")
                if own
                else ("you", "it")
            )
            raise UserError(
                f"{self.address}: the server runs as user {uid}, who is neither root nor {you}: "
                f"FAIRSHARE_SERVER_USER={uid} if you trust {it}"
            )

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def status(self) -> dict[str, Any]:
        """Return what the server says of itself: policy, jobs with their shares and bytes."""
        text = b""
        while True:
            piece, whole = self._request(Op.STATUS, offset=len(text), size=1 << 20)
            text += piece
            if not piece or len(text) >= whole:
                break
        found: dict[str, Any] = json.loads(text)
        return found

    def ticket(self, job: Job, lifetime_s: float = 7 * 86400.0) -> str:
        """Return a ticket for `job`, with its secret: the value of FAIRSHARE_TICKET."""
        name = job.name.encode()
        if not 0 < len(name) <= wire.JOB_NAME_BYTES or not job.name.isprintable():
            raise UserError(f"job name {job.name!r}: 1 to {wire.JOB_NAME_BYTES} printable bytes")
        uid, gid = job.holder or (os.getuid(), os.getgid())
        asked = wire.TICKET.pack(
            uid, gid, uid if job.user is None else job.user, gid if job.group is None else job.group,
            job.size, job.priority, int(time.time() + lifetime_s), 0, len(name), wire.SIGNED_BY_USER, name,
        )  # fmt: skip
        ticket, _ = self._request(Op.TICKET, payload=asked)
        return ticket.hex()

    def join(self, process: int) -> None:
        """Have the server's own mount count our process, and what it starts, to this connection's job."""
        self._request(Op.JOIN, offset=process)

    def reload(self) -> str:
        """Let the server read its options anew; what changed, in words. UserError where they are wrong."""
        said, _ = self._request(Op.RELOAD)
        return said.decode()

    def send_away(self, job: str, user: int | None, seconds: float) -> int:
        """End a job's connections and keep it out for so long; how many there were."""
        uid = _ANY_USER if user is None else user
        _, ended = self._request(Op.SEND_AWAY, job.encode(), round(seconds), len(job.encode()), uid)
        return ended

    def _request(
        self, op: int, payload: bytes = b"", offset: int = 0, size: int = 0, uid: int = 0
    ) -> tuple[bytes, int]:
        request = wire.REQUEST.pack(op, 0, 0, 0, offset, size, 0, 0, 0, 0, uid, 0, 0, 0, 0, 0)
        self._send(request + payload)
        what = {Op.TICKET: "ask for other tickets than their own", Op.JOIN: "name its processes"}.get(
            Op(op), "change what it does"
        )
        return self._answer(f"refuses: only its own user and root may {what}")

    def _answer(self, what: str) -> tuple[bytes, int]:
        body = self._receive()
        if len(body) < wire.REPLY.size:
            raise UserError(f"{self.address}: not a fairshare server's answer")
        result, value, length = wire.REPLY.unpack_from(body)
        data = body[wire.REPLY.size : wire.REPLY.size + length]
        if result < 0:
            said = data.decode(errors="replace") or f"{what} ({os.strerror(-result)})"
            raise UserError(f"{self.address}: {said}")
        return data, value

    def _send(self, body: bytes) -> None:
        self._socket.sendall(wire.FRAME.pack(wire.MAGIC, len(body), 0) + body)

    def _receive(self) -> bytes:
        magic, length, _ = wire.FRAME.unpack(self._exactly(wire.FRAME.size))
        if magic != wire.MAGIC or length > 1 << 21:
            raise UserError(f"{self.address}: not a fairshare server")
        return self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            if not piece:
                raise ConnectionResetError("the server closed the connection")
            found += piece
        return found


def tcp_address(address: Path | str) -> tuple[str, int] | None:
    """Return host and port of tcp:HOST:PORT, None for a path; UserError for neither."""
    scheme, _, place = str(address).partition(":")
    if scheme != "tcp":
        return None
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"{address}: must be tcp:HOST:PORT")
    return host, int(port)


def _read(ticket: str) -> str:
    """Return a ticket itself; UserError where it is none."""
    try:
        text = Path(ticket[1:]).read_text().strip() if ticket.startswith("@") else ticket
        bytes.fromhex(text)
    except OSError as error:
        raise UserError(f"FAIRSHARE_TICKET: {error.filename}: {error.strerror}") from None
    except ValueError:
        raise UserError("FAIRSHARE_TICKET is not a ticket, nor @ and a file that has one") from None
    return text


def _proof(ticket: str | None, challenge: bytes, nonce: bytes) -> bytes:
    """Return what follows a hello: nothing without a ticket; else it, that its secret is known, and what the
    server is to sign."""
    if ticket is None:
        return b""
    return bytes.fromhex(ticket)[: wire.TICKET.size] + _signed(ticket, challenge) + nonce


def _answered(ticket: str, challenge: bytes, nonce: bytes) -> bytes:
    """Return how a server shows that it knows a ticket's secret."""
    return _signed(ticket, wire.ANSWER + challenge + nonce)


def _signed(ticket: str, message: bytes) -> bytes:
    return hmac.digest(bytes.fromhex(ticket)[wire.TICKET.size :], message, hashlib.sha256)


def accelerated(library: Path, mount: Path | str, preloaded: str = "") -> dict[str, str]:
    """Return the variables that make a program move large data of files in `mount` past the kernel.

    `preloaded`: what the user has the program preload, which comes first: a tracer sees those calls.
    """
    libraries = f"{preloaded}:{library}" if preloaded else str(library)
    return {"LD_PRELOAD": libraries, "FAIRSHARE_MOUNT": str(mount)}
