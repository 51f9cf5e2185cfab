"""Folders that take no file are told before any job is started: one line, exit code 2, nothing lost."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tiercel.cli.console import Logged
from tiercel.errors import UserError
from tiercel.runs.lock import EvaluationLock
from tiercel.workflow.writable import check_writable

from ..conftest import Project, needs_iokernel
from .test_evaluate import snakemake


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "site-configs").mkdir()
    (tmp_path / "Snakefile").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("place", ["results", "results/local/raw", "results/local/logs/tiny"])
def test_a_folder_of_somebody_else(root: Path, place: str) -> None:
    (root / place).mkdir(parents=True)
    (root / place).chmod(0o555)
    with pytest.raises(
        UserError, match=rf"{place}.*: Permission denied: this is not yours .*chmod g\+w.*init"
    ):
        check_writable(root, "local", "tiny")
    (root / place).chmod(0o755)
    check_writable(root, "local", "tiny")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_folder(root: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tempfile.TemporaryFile

    def full(*words: Any, dir: Path, **more: Any) -> Any:
        if dir.name == "logs":
            raise OSError(number, os.strerror(number))
        return whole(*words, dir=dir, **more)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(UserError, match=r"results/local/logs: .*: make room there; nothing is lost"):
        check_writable(root, "local", "tiny")


def test_nothing_is_left_where_it_looked(root: Path) -> None:
    check_writable(root, "local", "tiny")
    assert not [path for path in root.rglob("*") if path.is_file() and path.name != "Snakefile"]


@needs_iokernel
def test_snakemake_and_evaluate_say_so(project: Project) -> None:
    """A file stands where the logs should be, which root cannot write into either."""
    (project.results).mkdir(parents=True, exist_ok=True)
    (project.results / "logs").touch()
    for ended in (project.tiercel("evaluate", "--study", "tiny"), snakemake(project)):
        assert ended.returncode == 2, ended.stderr
        said = [line for line in ended.stderr.splitlines() if line.startswith("tiercel: ")]
        assert said == [f"tiercel: {project.results}/logs: File exists"], ended.stderr
    assert not list(project.results.glob("raw/*"))


def test_a_log_that_takes_no_more_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    logged = Logged(said, Path("/dev/full"))
    logged.write("one\n")
    logged.write("two\n")
    assert said.getvalue() == (
        "tiercel: /dev/full: No space left on device: what follows is not in it\none\ntwo\n"
    )


def test_a_group_that_shares_a_project_shares_its_locks(root: Path) -> None:
    """The first of its users made a lock that the second could not open, whatever his umask said."""
    before = os.umask(0o002)
    try:
        with EvaluationLock(root):
            assert (root / EvaluationLock.name).stat().st_mode & 0o777 == 0o664
    finally:
        os.umask(before)
