"""What the mount's kernel keeps of names and attributes: never older than a change that was answered."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tiercel.layers.fairshare import wire
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.layers.fairshare.wire import Op

from .conftest import Share
from .test_mount import needs_mount

#: Bit of `mask`: the mode is set.
MODE = 1


class Client:
    """A client that does not come through the mount, as a process on this machine or another node does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, op: Op, path: str, second: str = "", **fields: int) -> None:
        """Carry out one request that names its files by path."""
        given = {"flags": 0, "size": 0, "mode": 0, "mask": 0, **fields}
        request = wire.REQUEST.pack(
            op, given["flags"], 0, 0, 0, given["size"], len(path.encode()), len(second.encode()),
            given["mode"], given["mask"], 0, 0, 0, 0, 0, 0,
        )  # fmt: skip
        self._connection._send(request + path.encode() + second.encode())
        self._connection._answer(f"does not {op.name} {path}")


@pytest.fixture
def mounted(serve: Callable[..., Share], tmp_path: Path) -> tuple[Share, Path]:
    needs_mount()
    place = tmp_path / "mount"
    place.mkdir()
    return serve("--mount", str(place), "--listen", "127.0.0.1:0"), place


@pytest.fixture(params=["same node", "other node"])
def other(request: pytest.FixtureRequest, mounted: tuple[Share, Path]) -> Iterator[Client]:
    server = mounted[0].server
    with Connection(server.socket) as local:
        if request.param == "same node":
            yield Client(local)
            return
        ticket = local.ticket(Job("other"))
        with Connection(f"tcp:127.0.0.1:{server.port}", ticket) as remote:
            yield Client(remote)


def test_names_that_others_change(mounted: tuple[Share, Path], other: Client) -> None:
    place = mounted[1]
    for name in "abc":
        (place / name).write_text(name)
    assert (place / "a").stat().st_nlink == 1
    other.ask(Op.LINK, "/a", "/hard")
    assert (place / "a").stat().st_nlink == 2
    other.ask(Op.UNLINK, "/a")
    assert not (place / "a").exists()
    assert (place / "hard").stat().st_nlink == 1
    other.ask(Op.RENAME, "/b", "/c")
    assert not (place / "b").exists()
    assert (place / "c").read_text() == "b"
    os.utime(place, (1, 1))
    assert place.stat().st_mtime == 1
    other.ask(Op.MAKE_DIRECTORY, "/folder", mode=0o700)
    assert place.stat().st_mtime > 1, "a new name changes its folder"
    assert (place / "folder").is_dir()
    os.utime(place, (1, 1))
    assert place.stat().st_mtime == 1
    other.ask(Op.UNLINK, "/folder", flags=0x200)  # AT_REMOVEDIR
    assert place.stat().st_mtime > 1
    assert not (place / "folder").exists()
    other.ask(Op.SYMLINK, "/link", "hard")
    assert (place / "link").readlink() == Path("hard")


def test_attributes_that_others_change(mounted: tuple[Share, Path], other: Client) -> None:
    place = mounted[1]
    (place / "d").mkdir()
    file = place / "d" / "file"
    file.write_text("x")
    with file.open("rb") as opened:
        for size in range(2, 40):
            other.ask(Op.TRUNCATE, "/d/file", size=size)
            assert (file.stat().st_size, os.fstat(opened.fileno()).st_size) == (size, size)
            other.ask(Op.SET_ATTRIBUTES, "/d/file", mask=MODE, mode=0o600 + size)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600 + size


def test_a_change_while_others_look(mounted: tuple[Share, Path], other: Client) -> None:
    """A lookup that is under way may bring what a change has made old: the kernel must not keep that."""
    place = mounted[1]
    stopped = threading.Event()

    def look() -> None:
        while not stopped.is_set():
            for name in ("one", "two"):
                with suppress(FileNotFoundError):
                    (place / name).stat()

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in lookers:
        thread.start()
    try:
        (place / "one").write_text("")
        for size in range(1, 150):
            other.ask(Op.TRUNCATE, "/one", size=size)
            assert (place / "one").stat().st_size == size
            other.ask(Op.RENAME, "/one", "/two")
            assert not (place / "one").exists()
            assert (place / "two").stat().st_size == size
            other.ask(Op.RENAME, "/two", "/one")
            assert not (place / "two").exists()
    finally:
        stopped.set()
        for thread in lookers:
            thread.join()


def test_the_kernel_keeps_what_nobody_changes(mounted: tuple[Share, Path]) -> None:
    share, place = mounted
    (place / "file").write_text("x")
    with Connection(share.server.socket) as asks:

        def operations() -> int:
            return sum(job["operations"] for job in asks.status()["jobs"])

        (place / "file").stat()
        before = operations()
        for _ in range(100):
            (place / "file").stat()
        assert operations() - before < 100, "without keeping it is one lookup and one question each"
