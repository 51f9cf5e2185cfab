"""`tiercel share doctor`: what keeps a fairshare server, or its clients, from working on this machine."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.layers.fairshare.namespace import may_have_users
from tiercel.layers.fairshare.programs import NOT_BUILT, find_programs
from tiercel.layers.fairshare.protocol import Connection
from tiercel.units import format_share, format_size

OK, WARN, FAIL = "ok", "warn", "fail"
#: Fewer descriptors than this are shared by all users of a server (it takes the hard limit).
_FEW_DESCRIPTORS = 65536
#: A part of the storage, or of its inodes, that is still free.
_NEARLY_FULL = 0.05
#: A mount or a server that answers later than this does not answer (seconds).
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: ok, warn (something will not work) or fail (nothing will)."""

    state: str
    what: str
    said: str


def examine(sockets: tuple[Path, ...] = (), data: Path | None = None) -> list[Check]:
    """Look at this machine, the servers behind `sockets` (default: in the runtime folders), and `data`."""
    found = list(_machine())
    for socket in sockets or tuple(usual_sockets()):
        found += _server(socket)
    if not sockets and not any(check.what.startswith("server") for check in found):
        folders = " and ".join(str(folder) for folder in _runtime_folders())
        found.append(Check(WARN, "server", f"none in {folders} (--socket names another)"))
    if data is not None:
        found += _data(data)
    return found


def _runtime_folders() -> list[Path]:
    own = os.environ.get("XDG_RUNTIME_DIR")
    return [Path("/run/fairshare"), *([Path(own) / "fairshare"] if own else [])]


def usual_sockets() -> Iterator[Path]:
    """Yield the sockets in the folders where servers put them."""
    for folder in _runtime_folders():
        if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
            yield from sorted(folder.glob("*.socket"))


def _machine() -> Iterator[Check]:
    programs = find_programs()
    yield (
        Check(OK, "programs", f"{programs.server}, {programs.version}")
        if programs
        else Check(FAIL, "programs", NOT_BUILT)
    )
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        yield Check(WARN, "mount", "/dev/fuse is not there or not ours: no program can see a server's files")
    elif os.geteuid() != 0 and not (may_have_users() or shutil.which("fusermount3")):
        yield Check(WARN, "mount", "without root it needs user namespaces or fusermount3 (package fuse3)")
    else:
        yield Check(OK, "mount", "/dev/fuse can be used")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    few = hard != resource.RLIM_INFINITY and hard < _FEW_DESCRIPTORS
    said = f"a server started here has {hard} for all users (RLIMIT_NOFILE, hard)"
    yield Check(
        WARN if few else OK, "descriptors", said + (f": raise it to {_FEW_DESCRIPTORS}" if few else "")
    )
    slurm = shutil.which("scontrol")
    yield Check(
        OK, "slurm", f"jobs are sized by {slurm}" if slurm else "no scontrol: processes count to users"
    )


def _server(socket: Path) -> Iterator[Check]:
    what = f"server {socket}"
    yield from _place(socket.parent, what)
    begin = time.perf_counter()
    try:
        with Connection(socket) as connection:
            status = connection.status()
    except UserError as error:
        yield Check(FAIL, what, str(error).removeprefix(f"{socket}: "))
        return
    took = time.perf_counter() - begin
    active = sum(1 for job in status["jobs"] if job["clients"])
    rate = f", at {format_size(status['rate'])}/s" if status["rate"] else ""
    said = (
        f"{status['policy']} by {status['scheduler']}{rate}; {active} jobs, {status['open_files']} open files"
    )
    yield Check(OK if took < 1 else WARN, what, f"{said}; answered in {took * 1e3:.0f} ms")
    if status.get("mount"):
        yield _mount(Path(status["mount"]), what)


def _mount(place: Path, what: str) -> Check:
    """Ask a mount for its space. One that hangs keeps its thread, and not us."""
    answer: list[Any] = []

    def ask() -> None:
        try:
            answer.append(os.statvfs(place))
        except OSError as error:
            answer.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    if not answer:
        return Check(FAIL, what, f"its mount {place} has not answered for {_PATIENCE_S:.0f} s")
    if isinstance(answer[0], OSError):
        return Check(FAIL, what, f"its mount {place}: {answer[0].strerror}")
    if not place.is_mount():
        return Check(
            WARN, what, f"{place} is no mount here: it is in a namespace of its own, or was unmounted"
        )
    return Check(OK, what, f"its mount {place} answers")


def _place(folder: Path, what: str) -> Iterator[Check]:
    """Say of each folder on the way that others could put something else in its place."""
    for each in (folder.absolute(), *folder.absolute().parents):
        try:
            found = each.stat()
        except OSError:
            continue
        others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if others or found.st_uid not in (0, os.geteuid()):
            who = f"user {found.st_uid}" if not others else "others"
            yield Check(FAIL, what, f"{who} can change {each} (mode {stat.S_IMODE(found.st_mode):o})")


def _data(data: Path) -> Iterator[Check]:
    what = f"data {data}"
    try:
        found = data.stat()
    except OSError as error:
        state = WARN if error.errno == errno.ENOENT else FAIL
        yield Check(state, what, f"{error.strerror}: a server makes it when it starts")
        return
    if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid not in (0, os.geteuid()):
        mode, owner = stat.S_IMODE(found.st_mode), found.st_uid
        yield Check(FAIL, what, f"mode {mode:o}, of user {owner}: it must be its server's alone (0700)")
    yield from _place(data.parent, what)
    space = os.statvfs(data)
    free, nodes = space.f_bavail / max(space.f_blocks, 1), space.f_ffree / max(space.f_files, 1)
    tight = free < _NEARLY_FULL or (space.f_files and nodes < _NEARLY_FULL)
    said = f"{format_size(space.f_bavail * space.f_frsize)} free ({format_share(free)})"
    yield Check(
        WARN if tight else OK,
        what,
        said + (f", {format_share(nodes)} of its inodes" if space.f_files else ""),
    )
    try:
        os.getxattr(data, "user.fairshare.absent")
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            yield Check(WARN, what, "its file system has no user attributes: no extended attributes")
