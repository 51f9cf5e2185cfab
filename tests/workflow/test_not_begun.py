"""A study of which nothing was ever done: it has no page, and no other study's is lost."""

from __future__ import annotations

import pytest

import tiercel as tc
from tiercel.cli import results as commands
from tiercel.errors import UserError
from tiercel.runs.begun import check_begun
from tiercel.runs.stamps import stamps_folder

from ..conftest import ONE, Project, needs_iokernel

pytestmark = needs_iokernel


def test_what_was_never_begun_has_no_page(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.study("tiny", ONE)
    project.study("other", ONE.replace("study: tiny", "study: other"))
    done = project.tiercel("evaluate", "--study", "tiny")
    assert done.returncode == 0, done.stderr
    page = project.results / "report" / "index.html"
    before = page.read_bytes()

    monkeypatch.chdir(project.root)
    for command in (commands.report, commands.show):
        with pytest.raises(UserError, match="nothing of it was measured on site local: run"):
            command(study="other")
    with pytest.raises(UserError, match="nothing of it was measured on site local: run"):
        tc.results("local", "other")
    assert page.read_bytes() == before

    # As an evaluation leaves it that was interrupted before its first run.
    stamps_folder(project.results, "other").mkdir(parents=True)
    commands.report(study="other")
    assert "This study is not finished: 0 of" in page.read_text()

    # Measured elsewhere: rows, and no stamps.
    folder = stamps_folder(project.results, "tiny")
    folder.rename(folder.with_name("away"))
    check_begun(project.results, "local", "tiny")
