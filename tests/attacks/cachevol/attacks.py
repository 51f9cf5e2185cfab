"""What an attacker tries on a node: in the folder where copies and logs lie, and beside the files."""

from __future__ import annotations

import ctypes
import os
import random
import socket
import stat
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
#: Seconds for which two folders change places.
EXCHANGES_S = 1.0
#: A line that would move a terminal's cursor and clear it.
_ESCAPES = "\x1b[2J\x1b[H\x07"


@dataclass(frozen=True)
class Goal:
    """What is attacked: the victim's storage folders and base files, and what is not to change."""

    victim: int
    base: Path
    storages: tuple[Path, ...]
    #: Folders of the victim's own, with files that no program of cachevol made.
    valued: tuple[Path, ...]
    secret: bytes


class Attacker:
    def __init__(self, goal: Goal, seed: int) -> None:
        self.goal = goal
        self.rng = random.Random(seed)
        self.tried: Counter[str] = Counter()
        self.gains: list[str] = []

    def got(self, what: str) -> None:
        if what not in self.gains:
            self.gains.append(what)

    def look(self, path: Path) -> None:
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # other attackers lay FIFOs
            try:
                found = os.fstat(fd)
                if stat.S_ISREG(found.st_mode) and self.goal.secret in os.read(fd, found.st_size):
                    self.got(f"the victim's secret, in {path.name}")
            finally:
                os.close(fd)

    def folder(self, storage: Path) -> Path:
        """Where the connector has the victim's copies and logs."""
        return storage / f"cachevol-{self.goal.victim}"


def _thing(it: Attacker, place: Path) -> None:
    """Put something at `place`: link, FIFO, socket, file, or a folder that is ready to be used."""
    kind = it.rng.choice(["link to valued", "link to own", "dangling", "FIFO", "socket", "file", "folder"])
    own = place.parent / f"own-{os.getpid()}"
    if kind == "link to valued":
        place.symlink_to(it.rng.choice(it.goal.valued))
    elif kind == "link to own":
        _ready(own)
        place.symlink_to(own)
    elif kind == "dangling":
        place.symlink_to(place.parent / "nothing-there")
    elif kind == "FIFO":
        os.mkfifo(place, 0o666)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(place))
    elif kind == "file":
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    else:
        _ready(place)


def _ready(folder: Path) -> None:
    """A folder as the connector makes it, for everybody to write to."""
    for path in (folder, folder / "logs", folder / "read"):
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
    os.close(os.open(folder / "budget", os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o666))
    (folder / "budget").chmod(0o666)


def _away(it: Attacker, place: Path) -> None:
    """Remove what is there, or move it away where it is another's."""
    if place.is_symlink() or not place.is_dir():
        place.unlink()
    else:
        place.rename(place.parent / f"taken-{it.rng.getrandbits(32):08x}")


def first_there(it: Attacker) -> None:
    """Something else lies where the connector will make its folder."""
    for storage in it.goal.storages:
        place = it.folder(storage)
        with suppress(OSError):
            _away(it, place)
        with suppress(OSError):
            _thing(it, place)
            os.sched_yield()
            if it.rng.random() < 0.8:
                _away(it, place)


def between_look_and_use(it: Attacker) -> None:
    """The victim's folder and another one change places all the time, while programs look and use it."""
    storage = it.rng.choice(it.goal.storages)
    place, other = it.folder(storage), storage / f"other-{os.getpid()}"
    with suppress(OSError):
        other.mkdir()  # empty: what the victim's program makes in it passes the next looks
        other.chmod(0o777)
    with suppress(OSError):
        if place.lstat().st_uid != it.goal.victim:
            # One that the victim made and that was taken away passes the look.
            made = [p for p in storage.iterdir() if p.lstat().st_uid == it.goal.victim]
            if made:
                _away(it, place)
                it.rng.choice(made).rename(place)
    until = time.monotonic() + EXCHANGES_S
    while time.monotonic() < until:
        if _LIBC.renameat2(_AT_FDCWD, bytes(place), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) != 0:
            break
    with suppress(OSError):
        _away(it, other)


def inside_its_folder(it: Attacker) -> None:
    """Names within the victim's folder: read, changed, linked, listed."""
    for storage in it.goal.storages:
        with suppress(OSError, KeyError):
            # Held: by its name it may be the attacker's own one that takes turns with it.
            held = os.open(it.folder(storage), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid == it.goal.victim:
                    _inside(it, Path(f"/proc/self/fd/{held}"))
            finally:
                os.close(held)


def _inside(it: Attacker, folder: Path) -> None:
    acts: dict[str, Callable[[], object]] = {
        "a list of the victim's copies": lambda: list((folder / "read").iterdir()),
        "a log of its own there": (folder / "logs" / "forged").mkdir,
        "the budget": lambda: (folder / "budget").write_bytes(b"\xff" * 8),
        "another mode": lambda: folder.chmod(0o777),
    }
    for what, act in acts.items():
        with suppress(OSError):
            act()
            it.got(what)


def forged_markers(it: Attacker) -> None:
    """Beside the victim's files, a word of logs that are to be brought to them, or removed."""
    name = it.rng.choice(["shared.h5", "private.h5", "killed.h5"])
    place = it.goal.base / f".{name}.cachevol"
    kind = it.rng.choice(["valued", "own log", "FIFO", "link", "folder", "long", "escapes"])
    log = it.rng.choice(it.goal.valued)
    if kind == "own log":
        log = it.goal.base / f"{socket.gethostname()}-4000000-0-0"
        log.mkdir(exist_ok=True)
        (log / "control").write_bytes(it.rng.randbytes(16384))
    said = {
        "long": "x" * 100_000,
        "escapes": f"{_ESCAPES}\n{_ESCAPES}\n1\n/{_ESCAPES}\n",
    }.get(kind, f"{socket.gethostname()}\n{log.name}\n4000000\n{log}\n")
    with suppress(FileExistsError, FileNotFoundError):
        if kind == "FIFO":
            os.mkfifo(place, 0o666)
        elif kind == "link":
            place.symlink_to(log / "thesis")
        elif kind == "folder":
            place.mkdir()
        else:
            fd = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            os.write(fd, said.encode())
            os.close(fd)
    os.sched_yield()
    with suppress(OSError):
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
        elif place.lstat().st_uid == os.getuid():
            place.unlink()


def thefts(it: Attacker) -> None:
    """All that it can read below storage and base; the victim's files by hard links of its own."""
    for top in (*it.goal.storages, it.goal.base):
        for path in top.rglob("*"):
            it.look(path)
        for name in ("private.h5", "killed.h5"):
            link = top / f"link-{os.getpid()}"
            with suppress(OSError):
                os.link(it.goal.base / name, link)
                it.got("a hard link to the victim's file")
                link.unlink()


ATTACKS = (first_there, between_look_and_use, inside_its_folder, forged_markers, thefts)
