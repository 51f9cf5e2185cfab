"""The campaign of a second user on the node gets nothing; what it tries by chance is tried here by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.cachevol.attacks import ATTACKS
from tiercel.caching.logs import logs
from tiercel.errors import UserError

from .conftest import Node, needs_connector

#: From which `tests` is imported.
ROOT = Path(__file__).resolve().parents[2]
pytestmark = needs_connector
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as two users")


def attacked(minutes: float) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "tests.attacks.cachevol", "--minutes", str(minutes), "--seed", "7"]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=180 + 120 * minutes, cwd=ROOT
    )
    return done.returncode, json.loads(done.stdout)


@needs_root
def test_a_second_user_gets_nothing() -> None:
    code, found = attacked(0.2)
    assert (found["got"], found["victim"]["not_served"], code) == ([], 0, 0), found
    assert found["tried"].keys() == {attack.__name__ for attack in ATTACKS}
    assert found["victim"]["served"] > 0


@needs_root
@pytest.mark.nightly
def test_a_second_user_gets_nothing_in_five_minutes() -> None:
    code, found = attacked(5)
    assert (found["got"], found["victim"]["not_served"], code) == ([], 0, 0), found


WRITES = """
with h5py.File("f.h5", "w") as f: f["x"] = np.arange(100000)
with h5py.File("f.h5", "r") as f: print(f["x"][99999])
"""


@pytest.mark.parametrize(
    ("mode", "group", "used"),
    [(0o777, None, False), (0o1777, None, True), (0o775, 0, False), (0o775, None, True), (0o1775, 0, True)],
)
def test_a_storage_folder_in_which_others_replace_what_lies_there_is_not_used(
    node: Node, mode: int, group: int | None, used: bool
) -> None:
    """Between the look at the folder and its use another one could take its place."""
    if group is not None:
        if os.geteuid() != 0:
            pytest.skip("only root gives folders to other groups")
        os.chown(node.local, -1, os.getegid() + 1)
    node.local.chmod(mode)
    done = node.run(WRITES)
    assert (done.returncode, done.stdout) == (0, "99999\n"), done.stderr
    assert bool(list(node.local.iterdir())) == used
    assert ("make it sticky" in done.stderr) != used
    if not used:
        with pytest.raises(UserError, match="nobody else replace"):
            logs("inspect", node.local)


def test_a_storage_folder_below_one_in_which_others_replace_things_is_not_used(node: Node) -> None:
    """A forged copy in another folder of its name would be believed."""
    node.local = node.local / "everybody's" / "mine"
    node.local.mkdir(parents=True)
    node.local.parent.chmod(0o777)
    done = node.run(WRITES)
    assert (done.returncode, done.stdout) == (0, "99999\n"), done.stderr
    assert not list(node.local.iterdir())
    assert f"others may write to {node.local.parent} and replace" in done.stderr
    with pytest.raises(UserError, match="nobody else replace"):
        logs("inspect", node.local)
    node.local.parent.chmod(0o1777)
    assert not node.run(WRITES).stderr


@needs_root
def test_a_storage_folder_of_a_group_that_users_share_is_not_used(node: Node) -> None:
    """That it is the first group of this user makes nobody of its members him."""
    os.chown(node.local, -1, 54321)
    node.local.chmod(0o775)
    done = node.run(WRITES, wrap=("setpriv", "--regid=54321", "--clear-groups"))
    assert (done.returncode, done.stdout) == (0, "99999\n"), done.stderr
    assert not list(node.local.iterdir())
    assert "make it sticky" in done.stderr


def test_a_folder_named_as_a_log_is_left_alone(node: Node, tmp_path: Path) -> None:
    """Anybody lays markers; a folder without the file `control` was taken for a log that has just begun."""
    node.good('h5py.File("f.h5", "w")["x"] = np.arange(10) + 7')
    valued = tmp_path / f"{os.uname().nodename}-4000000-0-0"
    valued.mkdir()
    (valued / "thesis").write_text("years")
    marker = node.base / ".f.h5.cachevol"
    marker.write_text(f"{os.uname().nodename}\n{valued.name}\n4000000\n{valued}\n")
    node.good('h5py.File("f.h5", "w").close()')
    logs("drop", node.local, file=node.base / "f.h5")
    assert (valued / "thesis").read_text() == "years"


def test_what_a_marker_says_moves_no_cursor(node: Node) -> None:
    node.good('h5py.File("f.h5", "w")["x"] = np.arange(10)')
    (node.base / ".f.h5.cachevol").write_text("elsewhere\x1b[2J\nid\x07\n1\n/gone\n")
    refused = node.run('h5py.File("f.h5", "r")')
    assert refused.returncode != 0 and "elsewhere?[2J" in refused.stderr
    assert "\x1b" not in refused.stderr and "\x07" not in refused.stderr
