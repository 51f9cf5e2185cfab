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
from tiercel.layers.fairshare.mounting import Way
from tiercel.layers.fairshare.programs import Programs

#: Longest path of a Unix socket (sockaddr_un), without its NUL.
_SOCKET_PATH = 107
_PORT = re.compile(r", TCP port (\d+)")
_HOLDER = re.compile(r", to be joined by process (\d+)")
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
    holder: int | None = None
    """The process in whose namespaces its mount is seen, where these are not ours."""
    mounted: Path | None = None
    """Where its files are mounted."""

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
    mount: Path | None = None,
    way: Way = Way.OPEN,
) -> Iterator[Server]:
    """Run a server on folder `data` and end it on leaving; UserError with its sentence if it does not start.

    `options` are the server's own. `log` gets what it prints on standard error. Its files are mounted on the
    empty folder `mount`, in that way.
    """
    with tempfile.TemporaryDirectory(prefix="tiercel-share-") as folder:
        # Not in the data folder: its path may be too long for a socket, or on a file system without them.
        socket = Path(folder) / "socket"
        if len(str(socket)) > _SOCKET_PATH:
            raise UserError(f"{socket}: too long for a socket; set TMPDIR to a shorter folder")
        # A file, since nobody reads a pipe while the server runs, and a full one would stop it.
        log = log or Path(folder) / "log"
        words = [str(programs.server), "--data", str(data), "--socket", str(socket), *options]
        if mount:
            words += ["--mount", str(mount), *_apart(way)]
        with _running(words, log, way, mount) as (process, said):
            port = _PORT.search(said)
            yield Server(
                process, socket, data, int(port[1]) if port else None, _holder(process, said, way), mount
            )


@contextmanager
def running_mount(
    programs: Programs, address: Path | str, folder: Path, ticket: str | None = None, way: Way = Way.OPEN
) -> Iterator[int | None]:
    """Mount a server's files on an empty folder as one job's; the process in whose namespaces it is seen."""
    environment = {**os.environ, "FAIRSHARE_TICKET": ticket} if ticket else None
    words = [str(programs.mount), "--server", str(address), "--mount", str(folder), *_apart(way)]
    with (
        tempfile.TemporaryDirectory(prefix="tiercel-share-") as place,
        _running(words, Path(place) / "log", way, folder, environment) as (process, said),
    ):
        yield _holder(process, said, way)


def _apart(way: Way) -> list[str]:
    return ["--apart"] if way is Way.APART else []


def _holder(process: subprocess.Popen[str], said: str, way: Way) -> int | None:
    if way is Way.OWN:
        return process.pid
    holder = _HOLDER.search(said)
    return int(holder[1]) if holder else None


@contextmanager
def _running(
    words: Sequence[str],
    log: Path,
    way: Way,
    mount: Path | None,
    environment: dict[str, str] | None = None,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a server or mount; its process, and the line in which it says that it is ready."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            words, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=_in_own_namespace if way is Way.OWN else ended_with_parent,  # noqa: PLW1509
            # Ctrl-C is for programs, which may have something to save in the files that it serves.
            process_group=0,
        )  # fmt: skip
    try:
        yield process, _await_ready(process, log)
    finally:
        end(process)
        if mount and way is Way.OPEN:
            namespace.take_away_dead(mount)


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
            raise UserError(f"fairshare is not ready after {_START_S:.0f} s") from None
    lines = log.read_text().strip().splitlines()
    raise UserError(lines[-1] if lines else f"the server ended with {process.wait()}")


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
