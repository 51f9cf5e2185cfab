"""User namespaces, in which a process says itself who it is: rootless containers, and who pretends.

Who the process is outside, the kernel knows all the same.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tiercel.layers.fairshare import namespace

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_PR_SET_DUMPABLE = 4
_MS_BIND = 4096

#: First number inside, first number outside, how many.
Range = tuple[int, int, int]


def leave() -> None:
    """Go into a user namespace of one's own, in which nobody has a number yet; OSError where it may not."""
    _must(_LIBC.unshare(_CLONE_NEWUSER))


def pretend(user: int) -> None:
    """Go into one in which this process is `user`, its group of the same number. It needs no right."""
    uid, gid = os.getuid(), os.getgid()
    # Who came down from root is root's in /proc until it starts a program, as a real user has.
    _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    leave()
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "gid_map").write_text(f"{user} {gid} 1")
    (own / "uid_map").write_text(f"{user} {uid} 1")


def with_lines(folder: Path, lines: dict[str, str]) -> None:
    """This process and its children see files of the system with a line more each, in mounts of their own."""
    namespace.leave()
    for path, line in lines.items():
        changed = folder / Path(path).name
        changed.write_text(f"{Path(path).read_text()}{line}\n")
        changed.chmod(0o644)
        _must(_LIBC.mount(bytes(changed), path.encode(), None, _MS_BIND, None))


def unmount(path: Path) -> None:
    _must(_LIBC.umount2(bytes(path), 0))


def _must(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def child_in(ranges: Sequence[Range], before: Callable[[], object], then: Callable[[], int]) -> int:
    """Start a child that goes into a namespace with these users and groups, as newuidmap lets it; its number.

    The child calls `before`, leaves, and ends with what `then` returns. Needs root, as newuidmap has it.
    """
    left, told = os.pipe(), os.pipe()
    if not (pid := os.fork()):
        code = 1
        try:
            before()
            leave()
            os.write(left[1], b".")
            os.close(told[1])
            if os.read(told[0], 1):
                code = then()
        finally:
            os._exit(code)
    os.close(left[1])
    os.close(told[0])
    if os.read(left[0], 1):
        text = "".join(f"{inside} {outside} {count}\n" for inside, outside, count in ranges)
        with suppress(ProcessLookupError):
            for name in ("uid_map", "gid_map"):
                Path(f"/proc/{pid}/{name}").write_text(text)
            os.write(told[1], b".")
    os.close(left[0])
    os.close(told[1])
    return pid
