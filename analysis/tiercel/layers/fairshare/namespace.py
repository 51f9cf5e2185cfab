"""A mount that a server and one program see, and nobody else: it is gone with them, however they end.

As ``preexec_fn`` of subprocess; only system calls are made there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from tiercel.errors import UserError

_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded here, so that a child between fork and exec need not
_CLONE_NEWNS, _CLONE_NEWUSER, _MS_REC, _MS_PRIVATE = 0x20000, 0x10000000, 0x4000, 1 << 18


@cache
def may_have_users() -> bool:
    """Whether this user may make a user namespace, and mount in it: a child of ours tries."""
    child = os.fork()
    if child == 0:
        os._exit(0 if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def is_own(path: Path) -> bool:
    """Whether a folder is root's or our own, and nobody else's to write to, who could put another there."""
    found = path.stat(follow_symlinks=False)
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def leave() -> None:
    """In the child: mounts made from now on are its own and its children's."""
    _must(_LIBC.unshare(_CLONE_NEWNS))
    _must(_LIBC.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))


def join(process: int) -> Callable[[], None]:
    """Return what makes a child see the mounts that a process sees, in its own working directory.

    Where that is in a user namespace, the child is in that, too: as the same user, with no more rights.
    """
    names = {"user": _CLONE_NEWUSER, "mnt": _CLONE_NEWNS}
    others = [
        (os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC), kind)
        for name, kind in names.items()
        if Path(f"/proc/{process}/ns/{name}").readlink() != Path(f"/proc/self/ns/{name}").readlink()
    ]
    folder = Path.cwd()

    def enter() -> None:
        for other, kind in others:
            _must(_LIBC.setns(other, kind))
        os.chdir(folder)  # setns goes to the root

    return enter


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def take_away_dead(path: Path) -> None:
    """Unmount what a server that was killed has left at a path: it answers nobody."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            words = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
            with suppress(OSError):
                subprocess.run([*words, str(path)], check=False)


@contextmanager
def mount_point(path: Path) -> Iterator[None]:
    """Make the folder to mount on; it goes with the last that holds it. UserError where it is not empty."""
    try:
        held = _hold(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        if any(path.iterdir()):
            raise UserError(
                f"{path}: there is something in it: --prefix names a path of which nothing is there"
            )
        yield
    finally:
        # Another server's mount on it would go with the folder. Of two that end at once, both may have let go
        # before one of them asks, never none.
        fcntl.flock(held, fcntl.LOCK_UN)
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(path, held):
                path.rmdir()
        os.close(held)


def _hold(path: Path) -> int:
    """Return a descriptor of the folder, made where it is not there, that keeps others from removing it."""
    while True:
        with suppress(FileExistsError):
            path.mkdir(mode=0o755)
        try:
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # somebody removed it meanwhile
        fcntl.flock(held, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if _is(path, held):
                return held
        os.close(held)


def _is(path: Path, held: int) -> bool:
    """Whether an open folder is the one that has its path now, and not one that was removed."""
    return os.path.samestat(os.fstat(held), path.stat())
