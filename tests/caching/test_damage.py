"""Whatever happens to a copy's files, readers get the base file's bytes, and a copy that is whole again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from .conftest import Node, needs_connector
from .shims import build_shim

pytestmark = needs_connector

MIB = 1024**2
SIZE = MIB // 8  # elements


def make(node: Node, name: str, shift: int) -> None:
    with h5py.File(node.base / name, "w") as file:
        file["x"] = np.arange(SIZE) + shift


# ---- What may happen to a file of a copy; `older` and `others` are the same file of other copies. ----


def cut(file: Path, older: bytes, others: Path) -> None:
    os.truncate(file, file.stat().st_size // 3)


def emptied(file: Path, older: bytes, others: Path) -> None:
    os.truncate(file, 0)


def cut_and_extended(file: Path, older: bytes, others: Path) -> None:
    size = file.stat().st_size
    os.truncate(file, size // 2 + 9)
    os.truncate(file, size)


def removed(file: Path, older: bytes, others: Path) -> None:
    file.unlink()


def zeros(file: Path, older: bytes, others: Path) -> None:
    with file.open("r+b") as open_file:
        open_file.write(bytes(file.stat().st_size))


def zeros_behind_the_head(file: Path, older: bytes, others: Path) -> None:
    with file.open("r+b") as open_file:
        open_file.seek(8192)
        open_file.write(bytes(file.stat().st_size - 8192))


def bytes_flipped(file: Path, older: bytes, others: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(40, len(content), 1021):
        content[at] ^= 0x10
    with file.open("r+b") as open_file:
        open_file.write(content)


def one_bit(file: Path, older: bytes, others: Path) -> None:
    at = file.stat().st_size // 2 + 1
    with file.open("r+b") as open_file:
        open_file.seek(at)
        byte = open_file.read(1)[0]
        open_file.seek(at)
        open_file.write(bytes([byte ^ 1]))


def an_older_one_written_over_it(file: Path, older: bytes, others: Path) -> None:
    with file.open("r+b") as open_file:
        open_file.write(older)


def an_older_one_in_its_place(file: Path, older: bytes, others: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(older)
    other.replace(file)


def swapped(file: Path, older: bytes, others: Path) -> None:
    other = file.with_name("other")
    file.rename(other)
    others.rename(file)
    other.rename(others)


def contents_swapped(file: Path, older: bytes, others: Path) -> None:
    ours, theirs = file.read_bytes(), others.read_bytes()
    for path, content in ((file, theirs), (others, ours)):
        with path.open("r+b") as open_file:
            open_file.write(content)


DAMAGES: list[Callable[[Path, bytes, Path], None]] = [
    cut, emptied, cut_and_extended, removed, zeros, zeros_behind_the_head, bytes_flipped, one_bit,
    an_older_one_written_over_it, an_older_one_in_its_place, swapped, contents_swapped,
]  # fmt: skip

#: Reads all, in large and small pieces, and says which elements are wrong.
READ = f"""
def look(name, shift):
    with h5py.File(name, locking=False) as f:
        look_at(f, shift)

def look_at(f, shift):
    right = np.arange({SIZE}) + shift
    for step in ({SIZE}, 1000):
        found = np.concatenate([f["x"][at : at + step] for at in range(0, {SIZE}, step)])
        if not (found == right).all():
            sys.exit(f"{{(found != right).sum()}} wrong of {SIZE} in pieces of {{step}}")
"""


def copy_of(node: Node, name: str) -> Path:
    """The folder of a file's copy."""
    path = str(node.base / name).encode() + b"\0"
    (found,) = (c for c in node.copies if path in (c / "map").read_bytes()[:8192])
    return found


def prepared(node: Node, which: str) -> tuple[bytes, Path, Path]:
    """Make two files with copies; return what `which` of the first was once, its place, and the second's."""
    make(node, "f.h5", 10**6)
    node.good(READ + f"look('f.h5', {10**6}); copied({MIB})")
    older = (copy_of(node, "f.h5") / which).read_bytes()
    make(node, "f.h5", 0)
    make(node, "g.h5", 5)
    node.good(READ + f"look('f.h5', 0); look('g.h5', 5); copied({2 * MIB})")
    return older, copy_of(node, "f.h5") / which, copy_of(node, "g.h5") / which


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("which", ["data", "map"])
def test_a_damaged_copy_is_not_believed(
    node: Node, which: str, damage: Callable[[Path, bytes, Path], None]
) -> None:
    older, file, others = prepared(node, which)
    damage(file, older, others)
    for _ in range(2):  # the second finds the copy made again
        node.good(READ + "look('f.h5', 0); look('g.h5', 5); look('f.h5', 0); copied(2 * 1024**2)")
    assert node.counts()["damaged_copies"] == 0
    assert node.counts()["hit_bytes"] > 5 * MIB  # three times two epochs of it


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("which", ["data", "map"])
def test_a_copy_damaged_while_it_is_read_is_not_believed(
    node: Node, which: str, damage: Callable[[Path, bytes, Path], None]
) -> None:
    older, file, others = prepared(node, which)
    reader = node.start(READ + """
f, g = (h5py.File(name, locking=False) for name in ("f.h5", "g.h5"))
for _ in range(3):
    look_at(f, 0), look_at(g, 5)
    time.sleep(0.03)  # now all of it has proved itself, and need not do so again
print("read", flush=True)
sys.stdin.readline()
for _ in range(3):
    look_at(f, 0), look_at(g, 5)
    copied(1024**2)
""")  # fmt: skip
    assert reader.stdout is not None
    assert reader.stdout.readline() == "read\n", reader.communicate()
    damage(file, older, others)
    _, errors = reader.communicate("\n", timeout=120)
    assert reader.returncode == 0, errors
    node.good(READ + "look('f.h5', 0); look('g.h5', 5); look('f.h5', 0); copied(2 * 1024**2)")


def test_a_damaged_block_costs_the_copy_once(node: Node) -> None:
    make(node, "f.h5", 0)
    node.good(READ + "look('f.h5', 0); copied(1024**2)")
    one_bit(copy_of(node, "f.h5") / "data", b"", Path())
    node.good(READ + "look('f.h5', 0); copied(1024**2); look('f.h5', 0)")
    counts = node.counts()
    assert counts["damaged_copies"] == 1
    assert counts["dropped_copies"] == 1
    assert len(node.copies) == 1
    node.good(READ + "look('f.h5', 0)")
    assert node.counts()["damaged_copies"] == 0
    assert node.counts()["miss_bytes"] == 0


@pytest.mark.parametrize("which", ["data", "map"])
def test_a_pipe_in_the_place_of_a_copys_file_keeps_nobody_waiting(node: Node, which: str) -> None:
    make(node, "f.h5", 0)
    make(node, "g.h5", 5)
    node.good(READ + "look('f.h5', 0); copied(1024**2)")
    (copy_of(node, "f.h5") / which).unlink()
    os.mkfifo(node.copies[0] / which)
    node.good(READ + "look('g.h5', 5); copied(1024**2)", size=int(1.2 * MIB))  # makes room
    node.good(READ + "look('f.h5', 0); look('g.h5', 5); copied(2 * 1024**2)")


@pytest.mark.parametrize("name", ["budget", "read"])
def test_a_store_that_lost_a_part_while_it_is_used(node: Node, name: str) -> None:
    make(node, "f.h5", 0)
    make(node, "g.h5", 5)
    node.good(READ + f"""
import shutil
look("f.h5", 0)
copied(1024**2)
(part,) = glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/{name}")
os.truncate(part, 0) if os.path.isfile(part) else shutil.rmtree(part)
look("f.h5", 0)
look("g.h5", 5)
""")  # fmt: skip
    node.good(READ + "look('f.h5', 0); look('g.h5', 5); copied(2 * 1024**2)")


def test_cleaning_up_leaves_the_copy_that_has_just_been_made(node: Node, tmp_path: Path) -> None:
    """The sweep sees a folder without a map; before it takes that away, the program puts a new copy there."""
    shim = build_shim("late_look", tmp_path)
    make(node, "f.h5", 0)
    node.good(READ + "look('f.h5', 0); copied(1024**2)")
    (copy_of(node, "f.h5") / "map").unlink()
    done = node.run(READ + "look('f.h5', 0)\ntime.sleep(1.5)", extra={"LD_PRELOAD": str(shim)})
    assert done.returncode == 0, done.stderr
    assert len(node.copies) == 1
