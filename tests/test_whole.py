"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tiercel.whole import drafted, write_text


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
