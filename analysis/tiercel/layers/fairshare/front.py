"""How a program reaches a server's files: through a mount (FUSE), or through the preload library.

The mount serves every program, since the kernel is in between. The library costs less for a request, but a
program can do what it does not know (docs/sharing.md lists it). So the mount is what a program gets where it
can be mounted, and the library is for those that are known to do with it.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError

MOUNT, LIBRARY = "mount", "library"
#: Programs that the tests run through the library, and that start nothing else.
KNOWN = frozenset({
    "cat", "cp", "dd", "du", "fairshare-load", "fio", "head", "iokernel", "ior", "ls", "md5sum", "mdtest",
    "mkdir", "mv", "rm", "sha256sum", "sqlite3", "stat", "tail", "tar", "touch", "wc",
})  # fmt: skip


@dataclass(frozen=True)
class Front:
    """A way to the files, and in a sentence why it was taken."""

    way: str
    why: str


@dataclass(frozen=True)
class Asked:
    """What decides: the program, where it is to see the files, and what `share run` was told."""

    program: str
    prefix: str
    front: str | None = None
    #: Whether a job, size or weight is given, which only a ticket says.
    ticket: bool = False
    #: Servers that run already, and where the only one of them has its files mounted.
    servers: int = 0
    mounted: str | None = None


def choose(asked: Asked) -> Front:
    """Return the front end for a program; UserError with what to do where the one asked for cannot be."""
    no_mount, no_library = without_mount(asked), without_library(asked.program)
    if asked.front == MOUNT:
        if no_mount:
            raise UserError(f"--front mount: {no_mount}")
        return Front(MOUNT, "asked for by --front")
    if asked.front == LIBRARY:
        if no_library:
            raise UserError(f"--front library: {no_library}")
        return Front(LIBRARY, "asked for by --front")
    if no_mount is None:
        if no_library is None and (name := Path(asked.program).name) in KNOWN:
            return Front(LIBRARY, f"{name} is known to do with it, and it costs less")
        return Front(MOUNT, no_library or "it serves every program")
    if no_library:
        raise UserError(f"neither front end can serve it: {no_library}; {no_mount}")
    return Front(LIBRARY, no_mount)


def without_mount(asked: Asked) -> str | None:
    """Say why the files cannot be mounted at the prefix; None where nothing is in the way."""
    if asked.ticket:
        return "a job, size or weight is said by a ticket, which the mount has no place for"
    if asked.servers > 1:
        return "a mount shows the files of one server"
    if asked.servers == 1:
        if asked.mounted == asked.prefix:
            return None
        where = f"its files are mounted on {asked.mounted}, not on" if asked.mounted else "it has no mount on"
        return f"the server runs already, and {where} {asked.prefix}"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "this machine has no usable /dev/fuse"
    if os.geteuid() == 0 and not _may_administer():
        return "root may not mount here (no CAP_SYS_ADMIN, as in a container)"
    if os.geteuid() != 0 and not shutil.which("fusermount3"):
        return "mounting without root needs fusermount3 (package fuse3)"
    folder = Path(asked.prefix).parent
    if not os.access(folder, os.W_OK):
        return f"only who may write to {folder} can mount on {asked.prefix} (--prefix names another place)"
    return None


def _may_administer() -> bool:
    """Whether this process may mount, and have a namespace of mounts (CAP_SYS_ADMIN, 21)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> 21 & 1)
    return True


def without_library(program: str) -> str | None:
    """Say why the preload library does not reach a program; None where nothing is known against it."""
    path = shutil.which(program)
    if path is None:
        return None  # whoever starts it says so
    with Path(path).open("rb") as file:
        head = file.read(1 << 16)
    if head.startswith(b"#!"):
        words = head[2 : head.index(b"\n") if b"\n" in head else None].decode(errors="replace").split()
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if words and Path(words[0]).name == "env" and named:
            return without_library(named[0])
        return without_library(words[0]) if words and words[0] != program else None
    mode = Path(path).stat().st_mode
    if mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        return f"{program} changes its user when it starts, and then takes no preload library"
    if not head.startswith(b"\x7fELF"):
        return None
    if b"Go buildinf:" in head or b".note.go.buildid" in head or _go_note(head):
        return f"{program} is a Go program, which calls the kernel by itself"
    return (
        None if _has_interpreter(head) else f"{program} is a static program, which takes no preload library"
    )


def _go_note(head: bytes) -> bool:
    """Whether an ELF file has Go's note of its build: name "Go", type 4."""
    return b"\x04\x00\x00\x00Go\x00\x00" in head


def _has_interpreter(head: bytes) -> bool:
    """Whether an ELF file names a dynamic linker (PT_INTERP is 3). Of other than 64 bits: taken to."""
    if head[4:6] != b"\x02\x01":
        return True
    table, size, count = (
        int.from_bytes(head[at : at + n], "little") for at, n in ((32, 8), (54, 2), (56, 2))
    )  # e_phoff, e_phentsize, e_phnum
    kinds = [int.from_bytes(head[table + i * size :][:4], "little") for i in range(count)]
    return 3 in kinds or not kinds


def explain(front: Front, command: Sequence[str], prefix: str) -> str:
    """Return the line that `share run --explain` prints."""
    way = "a mount (FUSE)" if front.way == MOUNT else "the preload library"
    return f"{Path(command[0]).name} reaches {prefix} through {way}: {front.why}"
