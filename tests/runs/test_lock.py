"""One measuring process on a site: also on file systems that know no locks."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import tempfile
from pathlib import Path

import pytest

from tiercel import locked as locks
from tiercel.errors import UserError
from tiercel.runs.lock import EvaluationLock, SiteLock


def hold(results: Path, ready: object, release: object) -> None:
    with SiteLock(results):
        ready.set()  # type: ignore[attr-defined]
        release.wait(60)  # type: ignore[attr-defined]


def test_a_second_one_waits_then_is_told(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready, release = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, ready, release))
    other.start()
    assert ready.wait(30)
    try:
        with (
            pytest.raises(UserError, match="another tiercel still measures on this site"),
            SiteLock(tmp_path, 0.5),
        ):
            pass
    finally:
        release.set()
        other.join(30)
    with SiteLock(tmp_path, patience=0.0):
        pass


class NoLocks:
    """A file system without flock(2), such as Lustre mounted without -o flock: under `folder` only."""

    def __init__(self, folder: Path, number: int) -> None:
        self._folder, self._number = folder, number
        self._real = fcntl.flock

    def flock(self, descriptor: int, operation: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        if place.is_relative_to(self._folder):
            raise OSError(self._number, os.strerror(self._number))
        self._real(descriptor, operation)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_flock_the_lock_is_this_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    results, temporary = tmp_path / "results", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(locks.fcntl, "flock", NoLocks(results, number).flock)
    with SiteLock(results) as held:
        (own,) = temporary.iterdir()
        assert own.name.startswith(f"tiercel-{os.getuid()}-")
        assert Path(f"/proc/self/fd/{held.descriptor}").readlink() == own
        # Another process of this node finds the same lock, and that it is taken.
        with pytest.raises(UserError, match=str(own)), SiteLock(results, patience=0.3):
            pass
    with SiteLock(results, patience=0.0):
        pass
    # Another site has another lock.
    with SiteLock(results), SiteLock(tmp_path / "results2", patience=0.0):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_project_of_another_user_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir(mode=0o555)
    with (
        pytest.raises(UserError, match=r"results/.lock: cannot be written: .*tiercel init"),
        SiteLock(tmp_path / "results"),
    ):
        pass


def test_other_errors_are_not_taken_for_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks.fcntl, "flock", NoLocks(tmp_path, errno.EIO).flock)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)), SiteLock(tmp_path / "results"):
        pass


def test_a_second_evaluation_is_refused_at_once_and_its_batches_are_not(tmp_path: Path) -> None:
    with EvaluationLock(tmp_path):
        with (
            pytest.raises(UserError, match="another `tiercel evaluate` runs on this site"),
            EvaluationLock(tmp_path),
        ):
            pass
        with SiteLock(tmp_path, patience=0.0):  # the first one's own
            pass
    with EvaluationLock(tmp_path):
        pass
