"""What lies beside a file is the word of whoever may write there: it opens no way to this user's rights.

A marker names a log by its path. Logs of others, folders that are none, and logs of other files are never
brought to a file, and never removed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

from tiercel.caching.logs import logs
from tiercel.layers.cachevol import log_program

from .conftest import Node, needs_connector
from .test_crash import WRITER, killed

pytestmark = needs_connector

STRANGER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")

READ = """
try:
    with h5py.File("f.h5", "r") as f:
        print(f["x"][0])
except OSError as error:
    sys.exit(str(error))
"""
EMPTY = 'h5py.File("f.h5", "w").close()'


def whole_file(node: Node) -> Path:
    path = node.base / "f.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(10) + 7
    return path


def lay_marker(node: Node, folder: Path) -> Path:
    marker = node.base / ".f.h5.cachevol"
    marker.write_text(f"{socket.gethostname()}\n{folder.name}\n4000000\n{folder}\n")
    return marker


def left(node: Node, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave a log of f.h5; where it lies."""
    killed(node, WRITER, 20, 0.01, monkeypatch)
    (log,) = node.logs
    return log


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("program", [READ, EMPTY])
def test_a_folder_that_is_no_log_is_left_alone(node: Node, tmp_path: Path, program: str) -> None:
    whole_file(node)
    valued = tmp_path / "valued"
    valued.mkdir()
    (valued / "thesis").write_text("years")
    lay_marker(node, valued)
    node.run(program)
    logs("drop", node.local, file=node.base / "f.h5")
    assert content(valued) == {"thesis": b"years"}
    assert not node.markers


def test_a_log_of_another_file_is_neither_applied_nor_removed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(node, WRITER.replace("f.h5", "g.h5"), 20, 0.01, monkeypatch)
    (log,) = node.logs
    whole_file(node)
    lay_marker(node, log)
    before = content(log)
    refused = node.run(READ)
    assert refused.returncode != 0 and "another file" in refused.stderr
    assert node.run(EMPTY).returncode == 0
    assert content(log) == before


@needs_root
def test_a_strangers_log_is_never_brought_to_a_file(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    log = left(node, monkeypatch)
    for path in [log, *log.iterdir()]:
        os.chown(path, STRANGER, STRANGER)
    before = (node.base / "f.h5").read_bytes()
    refused = node.run(READ)
    assert refused.returncode != 0 and "another user" in refused.stderr
    assert (node.base / "f.h5").read_bytes() == before
    marker = (node.base / ".f.h5.cachevol").read_text()
    assert [log["state"] for log in logs("drop", node.local, file=node.base / "f.h5")] == ["dropped"]
    assert not node.markers and log.is_dir()
    (node.base / ".f.h5.cachevol").write_text(marker)
    assert node.run(EMPTY).returncode == 0
    assert log.is_dir(), "it is not this user's to remove"


def test_a_log_that_others_could_have_written_is_none(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    log = left(node, monkeypatch)
    log.chmod(0o777)
    before = (node.base / "f.h5").read_bytes()
    assert node.run(READ).returncode != 0
    assert (node.base / "f.h5").read_bytes() == before


def test_a_replay_does_not_follow_a_link_that_took_the_files_place(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(node, monkeypatch)
    elsewhere = tmp_path / "elsewhere"
    (node.base / "f.h5").rename(elsewhere)
    (node.base / "f.h5").symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    program = log_program()
    assert program is not None
    assert subprocess.run([program, "replay", node.local], capture_output=True, check=False).returncode == 1
    assert elsewhere.read_bytes() == before


def test_logs_in_a_storage_folder_that_is_anothers_are_not_looked_at(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = left(node, monkeypatch)
    log.parents[1].chmod(0o777)
    program = log_program()
    assert program is not None
    for verb in ("inspect", "replay", "drop"):
        done = subprocess.run([program, verb, node.local], capture_output=True, text=True, check=False)
        assert (done.returncode, "only its owner" in done.stderr) == (2, True)
    assert log.is_dir()


def test_a_marker_that_is_a_pipe_keeps_nobody_waiting(node: Node) -> None:
    whole_file(node)
    os.mkfifo(node.base / ".f.h5.cachevol")
    assert node.good(READ) == "7\n"


@needs_root
def test_in_a_sticky_folder_only_who_could_replace_the_file_marks_it(node: Node, tmp_path: Path) -> None:
    path = whole_file(node)
    node.base.chmod(0o1777)
    marker = lay_marker(node, tmp_path / "nowhere")
    os.chown(marker, STRANGER, STRANGER)
    assert node.good(READ) == "7\n"
    os.chown(path, STRANGER, STRANGER)
    refused = node.run(READ)
    assert refused.returncode != 0 and "which is gone" in refused.stderr
    shutil.rmtree(node.local)


def test_another_user_sees_the_marker_whatever_the_umask(node: Node) -> None:
    """Who may read the file must be told that data are missing in it."""
    done = node.run("""
        os.umask(0o077)
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(100_000)
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    assert done.returncode == -9, done.stderr
    assert node.markers[0].stat().st_mode & 0o777 == 0o644
