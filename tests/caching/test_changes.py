"""A file that changes, however it is changed, and its copy: what the file holds is what is read."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .conftest import Node, needs_connector
from .shims import build_shim

pytestmark = needs_connector

MIB = 1024**2
SIZE = MIB // 8  # elements: more than HDF5 keeps of a dataset


def make(path: Path) -> int:
    """Write a file of ones; return where its data lie."""
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(SIZE, "<i8")
        offset: int = file["x"].id.get_offset()
    return offset


Change = Callable[[int], None]


@contextmanager
def by_writing(path: Path, offset: int) -> Iterator[Change]:
    """Each time opened, written, synced and closed."""

    def change(value: int) -> None:
        fd = os.open(path, os.O_WRONLY)
        os.pwrite(fd, np.full(SIZE, value, "<i8").tobytes(), offset)
        os.fsync(fd)
        os.close(fd)

    yield change


@contextmanager
def by_mapping(path: Path, offset: int) -> Iterator[Change]:
    """By a mapping whose pages are written to again and again: then the file's times do not change."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:

        def change(value: int) -> None:
            memory[offset : offset + 8 * SIZE] = np.full(SIZE, value, "<i8").tobytes()

        change(1)
        yield change


@contextmanager
def by_mapping_and_syncing(path: Path, offset: int) -> Iterator[Change]:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:

        def change(value: int) -> None:
            memory[offset : offset + 8 * SIZE] = np.full(SIZE, value, "<i8").tobytes()
            memory.flush()

        yield change


#: Opens the file, has it copied where it can be, and reads it once more when it is told to; again and again.
READER = """
for line in sys.stdin:
    with h5py.File(line.strip(), locking=False) as f:
        for _ in range(2):
            f["x"][...]
            time.sleep({pause})
        print("read", flush=True)
        sys.stdin.readline()
        found = np.unique(f["x"][...])
        print(*found, flush=True)
"""


class Reader:
    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child

    def tell(self, line: str) -> str:
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()


@pytest.fixture(scope="module")
def no_lease(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim("no_lease", tmp_path_factory.mktemp("lease"))


def each_shows(reader: Reader, change: Change, values: range) -> None:
    """Each change shows in the file that the reader holds open; then the reader ends."""
    for value in values:
        assert reader.tell("f.h5") == "read"
        change(value)
        assert reader.tell("") == str(value)
    reader.child.communicate()
    assert reader.child.returncode == 0


@pytest.mark.parametrize("how", [by_writing, by_mapping, by_mapping_and_syncing])
@pytest.mark.parametrize("quiet", [0, 0.02])
def test_a_change_shows_at_once(
    node: Node, how: Callable[[Path, int], AbstractContextManager[Change]], quiet: float, no_lease: Path
) -> None:
    """In the file that is held open, and in the one that is opened next.

    Where nobody says who has it open for writing, only dirty pages and times tell.
    """
    path = node.base / "f.h5"
    offset = make(path)
    reader = Reader(node.start(READER.format(pause=0.1), quiet=quiet, extra={"LD_PRELOAD": str(no_lease)}))
    with how(path, offset) as change:
        each_shows(reader, change, range(2, 12))
    if how is not by_mapping or not quiet:
        assert node.counts()["files_cached"] > 0  # it was a test


@pytest.fixture
def seconds(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system whose times are whole seconds."""
    image, folder = tmp_path / "image", tmp_path / "seconds"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    made = shutil.which("mkfs.ext2") and subprocess.run(
        ["mkfs.ext2", "-q", "-F", "-I", "128", image], capture_output=True, check=False
    )
    mounted = made and subprocess.run(
        ["mount", "-o", "loop", image, folder], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("no file system with whole seconds can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_change_within_a_second_shows_where_times_are_whole_seconds(node: Node, seconds: Path) -> None:
    """Whatever HDF5_CACHE_QUIET says: the time of the first change may be that of the second one, too."""
    node.base = seconds
    path = seconds / "f.h5"
    offset = make(path)
    reader = Reader(node.start(READER.format(pause=0.02), quiet=0))
    with by_writing(path, offset) as change:
        each_shows(reader, change, range(2, 8))


def test_a_copy_outlives_no_mapped_change(node: Node) -> None:
    """The pages are dirty while one program makes the copy, and change before the next one comes."""
    path = node.base / "f.h5"
    with by_mapping(path, make(path)) as change:
        for value in range(1, 6):
            change(value)
            for _ in range(2):
                out = node.good("for _ in range(2): print(*np.unique(h5py.File('f.h5')['x'][...]))")
                assert out.split() == [str(value)] * 2


@pytest.mark.parametrize("mapped", [False, True])
def test_a_file_that_is_open_for_writing_is_not_copied(node: Node, mapped: bool) -> None:
    """A write changes the file's times when it begins: what it brings later does not show in them."""
    path = node.base / "f.h5"
    make(path)
    os.sync()
    writer = os.open(path, os.O_RDWR)
    memory = mmap.mmap(writer, 0) if mapped else None
    if mapped:
        os.close(writer)
    read_twice = "f = h5py.File('f.h5', locking=False); f['x'][...]; time.sleep(0.3); f['x'][...]"
    node.good(read_twice, quiet=0.02)
    counts: dict[str, Any] = node.counts()
    assert counts["files_cached"] == 0
    assert "not yet: a program has it open for writing" in [r["why"] for r in counts["reasons"]]
    if memory:
        memory.close()
    else:
        os.close(writer)
    node.good(read_twice, quiet=0.02)
    assert node.counts()["files_cached"] == 1


def test_a_file_in_memory_is_not_copied(node: Node) -> None:
    """On tmpfs, nothing ever tells of what a mapping wrote; and nothing is nearer than memory."""
    shm = Path("/dev/shm")
    if "tmpfs /dev/shm" not in Path("/proc/mounts").read_text() or not os.access(shm, os.W_OK):
        pytest.skip("no tmpfs at /dev/shm")
    path = shm / f"tiercel-test-{os.getpid()}.h5"
    try:
        offset = make(path)
        reader = Reader(node.start(READER.format(pause=0)))
        with by_mapping(path, offset) as change:
            for value in (2, 3):
                assert reader.tell(str(path)) == "read"
                change(value)
                assert reader.tell("") == str(value)
        _, errors = reader.child.communicate()
    finally:
        path.unlink()
    counts: dict[str, Any] = node.counts()
    assert counts["files_cached"] == 0
    why = "it lies in memory, where mapped writes do not show in its times"
    assert errors == f"cachevol: {path}: not cached: {why}\n"
    assert counts["reasons"] == [{"file": str(path), "what": "not cached", "why": why, "times": 2}]


# ---- What is not needed any more goes. ----


def read(node: Node, *names: str) -> None:
    node.good(f"for n in {names}: h5py.File(n)['x'][...]\ncopied({len(names)} * 8 * {SIZE})")


@pytest.mark.parametrize("how", ["deleted", "rewritten", "replaced"])
def test_the_copy_of_a_changed_file_goes_with_the_next_program(node: Node, how: str) -> None:
    for name in "abc":
        make(node.base / name)
    read(node, "a", "b")
    if how == "deleted":
        (node.base / "a").unlink()
    elif how == "rewritten":
        make(node.base / "a")
    else:
        (node.base / "c").replace(node.base / "a")
        make(node.base / "c")
    read(node, "c")
    assert names(node) == {"b", "c"}
    assert sum(f.stat().st_blocks * 512 for c in node.copies for f in c.iterdir()) < 3 * MIB


def test_the_copy_goes_when_its_file_is_written_by_the_program(node: Node) -> None:
    for name in "abc":
        make(node.base / name)
    read(node, "a", "b", "c")
    node.good("""
        def left(): return len(glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/read/*"))
        assert left() == 3
        with h5py.File("a", "r+") as f: f["x"][7] = 7
        assert left() == 2
        with h5py.File("b", "w"): pass
        assert left() == 1
        """)
    assert names(node) == {"c"}


def test_the_copy_goes_while_a_reader_has_the_file_open(node: Node) -> None:
    make(node.base / "a")
    node.good("""
        f = h5py.File("a")
        f["x"][...]
        copied(1024**2)
        os.unlink("a")
        assert (f["x"][...] == 1).all()
        assert not glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/read/*")
        """)


def names(node: Node) -> set[str]:
    """The names of the files that have copies."""
    heads = [(copy / "map").read_bytes()[:8192] for copy in node.copies]
    base = str(node.base).encode() + b"/"
    return {head[head.index(base) + len(base) :].split(b"\0")[0].decode() for head in heads}
