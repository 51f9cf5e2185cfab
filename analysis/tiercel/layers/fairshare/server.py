"""Starts and ends fairshare servers for a run, a command or a benchmark."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tiercel.children import ended_with_parent
from tiercel.errors import UserError
from tiercel.layers.fairshare import namespace
from tiercel.layers.fairshare.programs import Programs

#: Longest path of a Unix socket (sockaddr_un), without its NUL.
_SOCKET_PATH = 107
_PORT = re.compile(r", TCP port (\d+)$", re.MULTILINE)
_START_S = 15.0
_END_S = 10.0


@dataclass(frozen=True)
class Server:
    """A server that runs: its process and where clients find it."""

    process: subprocess.Popen[str]
    socket: Path
    data: Path
    port: int | None = None
    """Of TCP, where `options` let it listen there."""

    @property
    def tree(self) -> Path:
        """The folder that holds the served files, as the server keeps them."""
        return self.data / "tree"


@contextmanager
def running_server(
    programs: Programs,
    data: Path,
    options: Sequence[str] = (),
    log: Path | None = None,
    own_mounts: bool = False,
) -> Iterator[Server]:
    """Run a server on folder `data` and end it on leaving; UserError with its sentence if it does not start.

    `options` are the server's own. `log` gets what it prints on standard error. With `own_mounts` nobody else
    sees what it mounts (:mod:`~tiercel.layers.fairshare.namespace`).
    """
    with tempfile.TemporaryDirectory(prefix="tiercel-share-") as folder:
        # Not in the data folder: its path may be too long for a socket, or on a file system without them.
        socket = Path(folder) / "socket"
        if len(str(socket)) > _SOCKET_PATH:
            raise UserError(f"{socket}: too long for a socket; set TMPDIR to a shorter folder")
        # A file, since nobody reads a pipe while the server runs, and a full one would stop it.
        log = log or Path(folder) / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [str(programs.server), "--data", str(data), "--socket", str(socket), *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                preexec_fn=_in_own_namespace if own_mounts else ended_with_parent,  # noqa: PLW1509
                # Ctrl-C is for programs, which may have something to save in the files that it serves.
                process_group=0,
            )  # fmt: skip
        try:
            said = _await_ready(process, log)
            port = _PORT.search(said)
            yield Server(process, socket, data, int(port[1]) if port else None)
        finally:
            end(process)


def _in_own_namespace() -> None:
    ended_with_parent()
    namespace.leave()


def _await_ready(process: subprocess.Popen[str], log: Path) -> str:
    """Return the line in which the server says where it listens."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], _START_S)
    line = process.stdout.readline() if ready else ""
    if "ready" in line:
        return line
    if process.poll() is None and not line:
        try:
            process.wait(1.0)
        except subprocess.TimeoutExpired:
            raise UserError(f"fairshare-server is not ready after {_START_S:.0f} s") from None
    lines = log.read_text().strip().splitlines()
    raise UserError(lines[-1] if lines else f"fairshare-server ended with {process.wait()}")


def end(process: subprocess.Popen[str]) -> None:
    """End a server that we started: by SIGTERM, and by SIGKILL where that does not help."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()


def memory_folder() -> Path | None:
    """Return a folder in memory (tmpfs) that this user may write to, None where there is none."""
    for place in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        if place and os.access(place, os.W_OK):
            return Path(place)
    return None
