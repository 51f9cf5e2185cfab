"""Files are written completely or not at all; what is no regular file is written through."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tiercel.atomic_file import drafted, write_text


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_text(tmp_path / "a", "old")
    with pytest.raises(ValueError, match="torn"), drafted(path) as draft:
        draft.write_text("half")
        raise ValueError("torn")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a", "old")]


def test_no_space_is_told_with_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as raised, drafted(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / "a")
    with pytest.raises(FileNotFoundError) as refused:
        write_text(tmp_path / "none" / "a", "text")
    assert refused.value.filename == str(tmp_path / "none" / "a")


def test_two_writers_do_not_share_a_draft(tmp_path: Path) -> None:
    """The last to end wins, whole; neither takes the other's draft away."""
    path = tmp_path / "a"
    with drafted(path) as first, drafted(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_goes_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".a.1-x.partial", tmp_path / ".a.2-x.partial"
    for left in (old, new):
        left.write_text("left")
    os.utime(old, (0, 0))
    write_text(tmp_path / "a", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.2-x.partial", "a"]


def test_a_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        write_text(pipe, "text")
        assert reader.communicate(timeout=60)[0] == "text"
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    """As root a rename onto /dev/null would replace it for the whole machine: here, a node of our own."""
    device, link = tmp_path / "null", tmp_path / "link"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"x")
    except PermissionError:
        pytest.skip("no right to make or open device nodes here")
    link.symlink_to("null")
    for name in (device, link):
        write_text(name, "text")
        assert device.is_char_device() and link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "null"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_keeps_pointing_to_what_is_written(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a", tmp_path / "link"
    link.symlink_to("there/a")
    if exists:
        target.write_text("old")
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == ["a"]
