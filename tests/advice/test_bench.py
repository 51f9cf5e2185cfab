"""Copies of a working set between runs: equal to the original again; nothing is removed before the end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.placement.test_staging import state
from tiercel.advice import bench
from tiercel.advice.bench import _Copy


@pytest.fixture
def copy(tmp_path: Path) -> _Copy:
    """A copy of a folder with a file, a hard link and a folder; a run then changes much of it."""
    home = tmp_path / "home"
    (home / "deep").mkdir(parents=True)
    (home / "in").write_bytes(bytes(5000))
    (home / "linked").hardlink_to(home / "in")
    (home / "deep" / "stays").write_text("as it is")
    found = _Copy(str(home), str(tmp_path / "place"))
    found.restore()
    return found


def run(copy: _Copy) -> set[int]:
    """Change the copy as a program may; return the inode numbers of the files that it made."""
    place = Path(copy.place)
    (place / "in").write_text("changed")  # its other name, too
    (place / "out").mkdir()
    (place / "out" / "new").write_text("x")
    (place / "deep" / "more").write_text("y")
    return {(place / name).stat().st_ino for name in ("out/new", "deep/more")}


@pytest.mark.parametrize("quick", [True, False])
def test_a_copy_is_as_the_original_again(copy: _Copy, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long copy (here: any) keeps the files that the run did not change."""
    monkeypatch.setattr(bench, "_QUICK_S", 1e9 if quick else -1.0)
    copy.quick = quick
    run(copy)
    place, stays = copy.place, Path(copy.place, "deep/stays").stat().st_ino
    copy.restore()
    assert (copy.place != place) is quick
    assert state(Path(copy.place)) == state(Path(copy.source))
    assert (Path(copy.place, "deep/stays").stat().st_ino == stays) is not quick


@pytest.mark.parametrize("quick", [True, False])
def test_old_files_are_kept_empty_until_the_end(copy: _Copy, quick: bool) -> None:
    """ext4 would give their inode numbers to no new file, and look at each for every file that is made."""
    made = run(copy)
    copy.quick = quick
    copy.restore()
    kept = [Path(root, name) for root, _, names in os.walk(Path(copy.place).parent) for name in names]
    old = {path.stat().st_ino: path for path in kept if ".old" in str(path)}
    assert made <= old.keys()
    assert all(path.stat().st_size == 0 for number, path in old.items() if number in made)


def test_what_was_copied_is_known(copy: _Copy) -> None:
    """Warm: these files are read from the storage before the run."""
    assert copy.fresh >= {"in", "linked", "deep/stays"}
    copy.fresh.clear()
    copy.quick = False
    run(copy)
    copy.restore()
    assert "in" in copy.fresh and "deep/stays" not in copy.fresh and "out/new" not in copy.fresh
