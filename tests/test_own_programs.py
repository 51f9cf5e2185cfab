"""Programs that a user names: `tiercel` is found without its environment on PATH, others as a shell does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiercel import programs
from tiercel.errors import UserError
from tiercel.programs import as_started, own_program

from .cli.test_bad_input import asked


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A PATH of one empty folder, and a `tiercel` and a `python` beside the Python that runs."""
    beside, path = tmp_path / "venv", tmp_path / "path"
    for folder in (beside, path):
        folder.mkdir()
    for name in ("tiercel", "python"):
        program = beside / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.delenv("TIERCEL_STACK", raising=False)
    programs.program.cache_clear()
    yield path
    programs.program.cache_clear()


def test_tiercel_is_this_one_where_path_has_none(elsewhere: Path, tmp_path: Path) -> None:
    ours = tmp_path / "venv" / "tiercel"
    assert as_started(["tiercel", "dl", "list"]) == [str(ours), "dl", "list"]
    assert own_program("tiercel") == ours
    assert as_started(["python", "x.py"]) == ["python", "x.py"]  # the user's own, or none
    with pytest.raises(UserError, match="no such program on PATH"):
        own_program("python")


def test_a_tiercel_on_path_stands(elsewhere: Path) -> None:
    other = elsewhere / "tiercel"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    assert as_started(["tiercel"]) == ["tiercel"] and own_program("tiercel") == other


def test_what_prepares_an_experiment_must_be_there_before_anything_runs() -> None:
    code, out, err = asked(["share", "experiment", "--prepare", "no-such-program {folder}", "--", "true"])
    assert (code, out) == (2, "") and err == "tiercel: no-such-program: no such program on PATH\n"
