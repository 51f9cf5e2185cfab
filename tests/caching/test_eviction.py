"""Making room: what a kill leaves at any step is no copy, and gets cleaned up."""

from __future__ import annotations

import signal
from pathlib import Path

import h5py
import numpy as np
import pytest

from .conftest import Node, needs_connector
from .shims import build_shim

pytestmark = needs_connector

MIB = 1024**2
BYTES = 4 * MIB

#: Reads a file and says whether it holds what it must.
READ = """
def look(name, value):
    with h5py.File(name, locking=False) as f:
        if not (f["x"][...] == value).all(): sys.exit("wrong data in " + name)
"""


@pytest.fixture(scope="session")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim("kill_at", tmp_path_factory.mktemp("killer"))


def make(node: Node, name: str, value: int) -> None:
    with h5py.File(node.base / name, "w") as file:
        file["x"] = np.full(BYTES // 8, value)


def test_a_kill_at_any_step_of_making_room(node: Node, killer: Path) -> None:
    room = {"size": 10 * MIB}
    for value, name in enumerate("abcd", 1):
        make(node, name, value)
    killed = 0
    for step in range(1, 40):
        # The copies of a and b fill the room; that of c goes away since the file changed; then d needs room.
        node.good(READ + "look('a', 1); look('b', 2); copied(8 * 1024**2)", **room)
        extra = {
            "LD_PRELOAD": str(killer),
            "KILL_AT": str(step),
            "KILL_BELOW": str(node.copies[0].parent),
        }
        done = node.run(
            READ + "look('c', 3); copied(4 * 1024**2); look('d', 4); time.sleep(0.1)", extra=extra, **room
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        killed += done.returncode != 0
        # Everybody reads what is in the files, with what was left.
        node.good(READ + "for v, n in enumerate('abcd', 1): look(n, v)", size=100 * MIB)
        assert not list(node.copies[0].parent.glob(".*"))
        if done.returncode == 0:
            break
        for copy in node.copies[2:]:  # room again
            for file in copy.iterdir():
                file.unlink()
            copy.rmdir()
    else:
        pytest.fail("it never ended")
    # c and d each: a copy made (folder, two files, name), another removed (name, two files, folder).
    assert killed >= 14
