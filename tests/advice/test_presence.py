"""What was in the page cache before a program ran is looked at, where its command line names it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiercel.advice.presence import Presence
from tiercel.pagecache import evict, memory_backed, residency
from tiercel.placement.recipe import FileRecord

SIZE = 1 << 20


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_bytes(os.urandom(SIZE))
    evict([str(folder / "a"), str(folder / "b")])
    if memory_backed(str(folder)) or residency([str(folder / "a")]).fraction != 0:
        pytest.skip("the temporary folder cannot be made cold")
    return folder


def record(path: Path) -> FileRecord:
    return FileRecord(str(path), size=SIZE, existed=True)


def test_cold_and_warm_inputs(data: Path) -> None:
    both = [record(data / "a"), record(data / "b")]
    assert Presence.take(["program", str(data)]).cached(both) is False
    for name in ("a", "b"):
        (data / name).read_bytes()
    assert Presence.take(["program", f"--in={data}"]).cached(both) is True


def test_what_was_not_looked_at_says_nothing(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Presence.take(["program", str(data / "a")])
    assert set(seen.resident) >= {str(data / "a")}
    # Half of the bytes are known: enough. With another file unseen they are less than half.
    assert seen.cached([record(data / "a"), record(data / "b")]) is False
    assert seen.cached([record(data / "a"), record(data / "b"), record(tmp_path / "c")]) is None
    assert seen.cached([]) is None
    # A program may mean the files of its working folder without naming them.
    monkeypatch.chdir(data)
    assert set(Presence.take(["program"]).resident) == {str(data / "a"), str(data / "b")}
