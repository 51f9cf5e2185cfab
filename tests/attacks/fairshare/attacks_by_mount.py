"""What an attacker tries through the mount, where a mapping goes past the calls that a server sees."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from tiercel.layers.fairshare.wire import Op

from .attacks import Attacker
from .speech import request

_LIBC = ctypes.CDLL(None, use_errno=True)
_PAGES = 16
_WHOLE = _PAGES * mmap.PAGESIZE
#: As capabilities(7) has them: version 2, in force, all that are permitted.
_ALL_RIGHTS = struct.pack("<5I", 0x02000001, 2**32 - 1, 0, 0, 0)


def past_a_mapping(it: Attacker) -> None:
    """Writes to what it may only read, by mappings of every kind, and to what others have mapped."""
    if it.mount is None:
        return
    shared = it.mount / "shared"
    fd = os.open(shared, os.O_RDONLY)
    try:
        with suppress(OSError, ValueError):
            mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[0:8] = b"attacked"
            it.got("a shared mapping for writing of a file that it may only read")
        # Read first, and asked for more afterwards. Python's own mapping would ask for both.
        _LIBC.mmap.restype = ctypes.c_void_p
        found = _LIBC.mmap(None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, fd, ctypes.c_long(0))
        asked = ctypes.c_void_p(found), ctypes.c_size_t(mmap.PAGESIZE)
        if _LIBC.mprotect(*asked, mmap.PROT_READ | mmap.PROT_WRITE) == 0:
            it.got("the right to write to a mapping that was made for reading")
        _LIBC.munmap(*asked)
        # A copy: what is written there is nobody else's to see (the campaign compares the file).
        with mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as private:
            private[0:8] = b"attacked"
            private.flush()
        acts: dict[str, Callable[[], object]] = {
            "a way to write to it by its descriptor": lambda: os.open(f"/proc/self/fd/{fd}", os.O_WRONLY),
            "a shorter file of another's": lambda: os.truncate(shared, 0),
            "another owner of another's file": lambda: os.chown(shared, os.getuid(), -1),
            "another mode of another's file": lambda: shared.chmod(0o666),
            "an attribute of another's file": lambda: os.setxattr(shared, "user.x", b"attacked"),
            "a label that gives rights": lambda: os.setxattr(shared, "security.capability", _ALL_RIGHTS),
            "an hour of another's file": lambda: os.utime(shared, (1, 1)),
            "the victim's folder": lambda: list((shared.parent / "victim").iterdir()),
        }
        for what, act in acts.items():
            with suppress(OSError):
                act()
                it.got(what)
    finally:
        os.close(fd)


def pages_of_others(it: Attacker) -> None:
    """New files, grown without a byte written: their pages must be zeros, not what others had in theirs."""
    if it.mount is None:
        return
    name = f"grown-{os.getpid()}"
    path = it.mount / "attacker" / name
    with it.speaker() as s:
        for turn in range(8):
            if turn % 2:
                _, handle, _ = s.ask(
                    request(Op.OPEN, b"/attacker/" + name.encode(), flags=os.O_CREAT | os.O_RDWR, mode=0o600)
                )
                s.ask(request(Op.TRUNCATE, handle=handle, size=_WHOLE))
            else:
                fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
                os.ftruncate(fd, _WHOLE)
                os.close(fd)
            fd = os.open(path, os.O_RDWR)
            with mmap.mmap(fd, _WHOLE) as mapped:
                found = mapped[:]
                it.look(found)
                if found.strip(b"\0"):
                    it.got("bytes in a file that nobody wrote to")
                mapped[:8] = b"attacker"  # a page that comes back when its file has gone
                if turn % 3 == 0:
                    s.ask(request(Op.UNLINK, b"/attacker/" + name.encode()))
            os.close(fd)
            with suppress(OSError):
                path.unlink()


def cut_under_a_copy(it: Attacker) -> None:
    """Cuts a file of its own while the server copies from and to it, by requests and by a mapping."""
    name = b"/attacker/cut-%d" % os.getpid()
    with ExitStack() as stack:
        writer, cutter = (stack.enter_context(it.speaker()) for _ in range(2))
        handles = [
            s.ask(request(Op.OPEN, name, flags=os.O_CREAT | os.O_RDWR, mode=0o600))[1]
            for s in (writer, cutter)
        ]
        for turn in range(20):
            for at in range(0, 1 << 20, 1 << 18):
                writer.say(
                    request(Op.WRITE, handle=handles[0], data=b"x" * (1 << 16), offset=at, size=1 << 16)
                )
                writer.say(request(Op.READ, handle=handles[0], offset=at, size=1 << 16))
                cutter.say(request(Op.TRUNCATE, handle=handles[1], size=it.rng.choice([0, 1, 4097, 1 << 20])))
            if it.mount is not None and turn % 5 == 0:
                it.apart(lambda: _write_mapped(it.mount / name.decode().lstrip("/") if it.mount else Path()))
            for s, count in ((writer, 8), (cutter, 4)):
                for _ in range(count):
                    s.hear()
        writer.ask(request(Op.UNLINK, name))


def _write_mapped(path: Path) -> None:
    """Write to a mapping whose file may be cut by then: SIGBUS ends the process, as it should."""
    fd = os.open(path, os.O_RDWR)
    length = os.fstat(fd).st_size
    if length:
        with mmap.mmap(fd, length) as mapped:
            for at in range(0, length, mmap.PAGESIZE):
                mapped[at] = 1


ATTACKS = (past_a_mapping, pages_of_others, cut_under_a_copy)
