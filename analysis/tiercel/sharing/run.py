"""`tiercel share run`: one program that sees a server's files in a mount."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tiercel.children import ended_with_parent, followed
from tiercel.errors import UserError
from tiercel.layers.fairshare import namespace
from tiercel.layers.fairshare.mounting import choose
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated, counts_as_job
from tiercel.layers.fairshare.server import running_mount, running_server


@dataclass(frozen=True)
class Request:
    """What to run, and how: `socket` is a server that runs (a path, or tcp:HOST:PORT, for which
    FAIRSHARE_TICKET has a ticket), `data` and `options` are for one of our own."""

    command: Sequence[str]
    prefix: str
    socket: Path | str | None = None
    data: Path | None = None
    options: tuple[str, ...] = ()
    job: Job | None = None
    #: Whether the job was named, rather than only its size or weight.
    named: bool = False
    accelerate: bool = False
    explain: bool = False


def run_program(request: Request) -> int:
    """Run the program; its exit code, as subprocess has it. UserError where it cannot be served."""
    request = replace(request, prefix=request.prefix.rstrip("/"))
    programs = required_programs()
    there = _mounted(request)
    if not request.prefix.startswith("/") or (
        os.path.lexists(request.prefix) and not there and not _usable(request.prefix)
    ):
        raise UserError(
            f"--prefix {request.prefix or '/'}: must be an absolute path of which nothing is there yet"
        )
    environment = dict(os.environ)
    with ExitStack() as stack:
        if there:
            said, prepare = f"the server's mount on {request.prefix}", ended_with_parent
            _join(stack, request, request.socket)
        else:
            said, prepare = _mount(stack, programs, request)
        if request.accelerate:
            said += "; large data through shared memory"
            environment |= accelerated(programs.library, request.prefix, os.environ.get("LD_PRELOAD", ""))
        if request.explain:
            print(
                f"tiercel: {Path(request.command[0]).name} reaches {request.prefix}: {said}", file=sys.stderr
            )
        try:
            process = subprocess.Popen(request.command, env=environment, preexec_fn=prepare)  # noqa: PLW1509
        except OSError as error:
            raise UserError(f"{request.command[0]}: {error.strerror}") from None
        return followed(process)


def _mounted(request: Request) -> bool:
    """Whether the running server has its mount at the prefix; UserError where it does not answer."""
    if request.socket is None:
        return False
    if isinstance(request.socket, Path):
        with Connection(request.socket) as connection:
            return bool(connection.status().get("mount") == request.prefix)
    if request.job:
        raise UserError(
            f"--socket {request.socket}: over TCP the ticket describes the job: remove the options for it"
        )
    if not (ticket := os.environ.get("FAIRSHARE_TICKET")):
        raise UserError(
            f"--socket {request.socket}: needs a ticket in FAIRSHARE_TICKET: `tiercel share ticket` prints "
            "one on the server's machine"
        )
    with Connection(request.socket, ticket):
        return False


def _usable(prefix: str) -> bool:
    """Whether what lies at the prefix is no hindrance: an empty folder, as a run leaves that was killed."""
    try:
        return (
            namespace.is_own(Path(prefix)) and not os.path.ismount(prefix) and not any(Path(prefix).iterdir())
        )
    except OSError:
        return False


def _mount(stack: ExitStack, programs: Programs, request: Request) -> tuple[str, Callable[[], None]]:
    """Mount, and start a server where there is none; what to say of it, and what lets the program in."""
    way, prefix = choose(request.prefix), Path(request.prefix)
    stack.enter_context(namespace.mount_point(prefix))
    if request.socket is None:
        data = request.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tiercel-share-")))
        server = stack.enter_context(running_server(programs, data, request.options, mount=prefix, way=way))
        holder = server.holder
        _join(stack, request, server.socket)
    else:
        ticket = os.environ.get("FAIRSHARE_TICKET")
        if request.job:
            ticket = _ticket(request, request.socket)
        holder = stack.enter_context(running_mount(programs, request.socket, prefix, ticket, way))
    if holder is None:
        return way.value, ended_with_parent
    join = namespace.join(holder)

    def prepare() -> None:
        ended_with_parent()
        join()

    return way.value, prepare


def _join(stack: ExitStack, request: Request, socket: Path | str | None) -> None:
    """Have the server's own mount count what we start to the job, if one is asked for."""
    if request.job and socket is not None:
        connection = stack.enter_context(Connection(socket, _ticket(request, socket)))
        connection.join(os.getpid())


def _ticket(request: Request, socket: Path | str) -> str:
    assert request.job is not None
    with Connection(socket) as connection:
        ticket = connection.ticket(request.job)
        if request.named and not counts_as_job(ticket, connection.status()):
            said = f"its administrator makes the jobs; {request.job.name} counts to your one job"
            print(f"tiercel: {socket}: {said}", file=sys.stderr)
    return ticket
