"""`tiercel share run`: one program that sees a server's files, through the front end that serves it."""

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
from tiercel.layers.fairshare.front import LIBRARY, MOUNT, Asked, Front, choose, explain
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.layers.fairshare.protocol import Connection, Job, client_environment, counts_as_job
from tiercel.layers.fairshare.server import running_server


@dataclass(frozen=True)
class Request:
    """What to run, and how: `sockets` are servers that run (paths, or tcp:HOST:PORT, for which
    FAIRSHARE_TICKET has a ticket), `data` and `options` are for one of our own."""

    command: Sequence[str]
    prefix: str
    sockets: tuple[Path | str, ...] = ()
    data: Path | None = None
    options: tuple[str, ...] = ()
    job: Job | None = None
    #: Whether the job was named, rather than only its size or weight.
    named: bool = False
    front: str | None = None
    explain: bool = False


@dataclass(frozen=True)
class _Way:
    """What the program needs to see the files: variables, and what is done before it starts."""

    environment: dict[str, str]
    prepare: Callable[[], None] = ended_with_parent


def run_program(request: Request) -> int:
    """Run the program; its exit code, as subprocess has it. UserError where it cannot be served."""
    request = replace(request, prefix=request.prefix.rstrip("/"))
    programs = required_programs()
    mounted = _mounted(request)
    if not request.prefix.startswith("/") or (
        os.path.lexists(request.prefix) and not _usable(request, mounted)
    ):
        raise UserError(
            f"--prefix {request.prefix or '/'}: must be an absolute path of which nothing is there yet"
        )
    program, servers = request.command[0], len(request.sockets)
    asked = Asked(program, request.prefix, request.front, request.job is not None, servers, mounted)
    front = choose(asked)
    with ExitStack() as stack:
        way, front = _way(stack, programs, request, front)
        if request.explain:
            print(f"tiercel: {explain(front, request.command, request.prefix)}", file=sys.stderr)
        try:
            process = subprocess.Popen(
                request.command,
                env={**os.environ, **way.environment},
                preexec_fn=way.prepare,  # noqa: PLW1509
            )
        except OSError as error:
            raise UserError(f"{request.command[0]}: {error.strerror}") from None
        return followed(process)


def _mounted(request: Request) -> str | None:
    """Return where the servers that run have their files mounted; UserError where one does not answer."""
    found = None
    for socket in request.sockets:  # else the program would find no file, and not say why
        if isinstance(socket, Path):
            with Connection(socket) as connection:
                found = connection.status().get("mount")
            continue
        if request.job:
            raise UserError(
                f"--socket {socket}: over TCP the ticket describes the job: remove the options for it"
            )
        if not (ticket := os.environ.get("FAIRSHARE_TICKET")):
            raise UserError(
                f"--socket {socket}: needs a ticket in FAIRSHARE_TICKET: `tiercel share ticket` prints one "
                "on the server's machine"
            )
        with Connection(socket, ticket):
            pass
    return found


def _usable(request: Request, mounted: str | None) -> bool:
    """Whether what lies at the prefix is no hindrance: the server's mount, or the place of another run's."""
    if request.sockets and request.prefix == mounted:
        return True
    try:  # an empty folder is what a run leaves that was killed with its mount
        return (
            (bool(request.sockets) or namespace.may_have_own())
            and namespace.is_own(Path(request.prefix))
            and not os.path.ismount(request.prefix)
            and not any(Path(request.prefix).iterdir())
        )
    except OSError:
        return False


def _way(stack: ExitStack, programs: Programs, request: Request, front: Front) -> tuple[_Way, Front]:
    """Start what has to be started; the way that came of it, which is the library where mounting failed."""
    if front.way == MOUNT and request.sockets:
        return _Way({}), front
    if front.way == MOUNT:
        folder = _data(stack, request)
        try:
            return _own_mount(stack, programs, folder, request), front
        except UserError as error:
            if request.front == MOUNT or "mount" not in str(error):
                raise
            front = Front(LIBRARY, str(error).removeprefix("fairshare-server: "))
            request = replace(request, data=folder)
    return _library(stack, programs, request), front


def _data(stack: ExitStack, request: Request) -> Path:
    if request.data:
        return request.data
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tiercel-share-")))


def _own_mount(stack: ExitStack, programs: Programs, data: Path, request: Request) -> _Way:
    alone = namespace.may_have_own()
    with ExitStack() as attempt:
        attempt.enter_context(namespace.mount_point(Path(request.prefix)))
        options = [*request.options, "--mount", request.prefix]
        server = attempt.enter_context(running_server(programs, data, options, own_mounts=alone))
        stack.push(attempt.pop_all())
    if not alone:
        return _Way({})
    join = namespace.join(server.process.pid)

    def prepare() -> None:
        ended_with_parent()
        join()

    return _Way({}, prepare)


def _library(stack: ExitStack, programs: Programs, request: Request) -> _Way:
    sockets: list[Path | str] = list(request.sockets)
    if not sockets:
        data = _data(stack, request)
        sockets = [stack.enter_context(running_server(programs, data, request.options)).socket]
    ticket = None
    if request.job:
        with Connection(sockets[0]) as connection:
            ticket = connection.ticket(request.job)
            if request.named and not counts_as_job(ticket, connection.status()):
                said = f"its administrator makes the jobs; {request.job.name} counts to your one job"
                print(f"tiercel: {sockets[0]}: {said}", file=sys.stderr)
    servers = ",".join(str(each.resolve() if isinstance(each, Path) else each) for each in sockets)
    preloaded = os.environ.get("LD_PRELOAD", "")
    return _Way(client_environment(programs.library, request.prefix, servers, ticket, preloaded))
