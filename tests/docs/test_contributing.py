"""The ten minutes of CONTRIBUTING.md, literally: from a clone to a commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ..conftest import CHECKOUT
from .pages import File, matches, steps

PAGE = CHECKOUT / "CONTRIBUTING.md"
RULE = CHECKOUT / "docs" / "add" / "trace-rule.md"


def test_the_ten_minutes(tmp_path: Path) -> None:
    if not (CHECKOUT / ".git").exists():
        pytest.skip("this checkout is no git repository")
    [rule] = [s for s in steps(RULE) if isinstance(s, File) and s.path.startswith("analysis/")]
    own = {
        "GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "user.name", "GIT_CONFIG_VALUE_1": "A Contributor",
        "GIT_CONFIG_KEY_2": "user.email", "GIT_CONFIG_VALUE_2": "contributor@example.org",
    }  # fmt: skip
    clone, here, written = tmp_path / "tiercel", tmp_path, 0
    for step in steps(PAGE):
        if isinstance(step, File):
            for file in (rule, step) if step.path.endswith(".py") else (step,):
                (clone / file.path).write_text(file.text)
                written += 1
            continue
        words = step.words.replace("URL", str(CHECKOUT))
        if words.startswith("cd "):  # each command has a shell of its own
            here /= words.split()[1]
            continue
        done = subprocess.run(
            ["bash", "-c", words], cwd=here, env={**os.environ, **own},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{words}\n{done.stdout}"
        assert not step.prints.strip() or matches(step.prints, done.stdout), f"{words}\n{done.stdout}"
    assert written == 3
    log = subprocess.run(
        ["git", "log", "-1", "--stat", "--oneline"], cwd=clone, capture_output=True, text=True, check=True
    )
    assert "3 files changed" in log.stdout
