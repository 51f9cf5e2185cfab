"""POSIX behaviour of what is served, in the manner of pjdfstest; the same checks on an ordinary folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import PREFIX, Share, let_through
from .posix_checks import CHECKS

SCRIPT = Path(__file__).with_name("posix_checks.py")


@pytest.mark.parametrize("name", CHECKS)
def test_served(open_to_all_or_own: Share, name: str) -> None:
    share = open_to_all_or_own
    (share.tree / "own").mkdir()
    done = share.run(sys.executable, str(SCRIPT), name, f"{PREFIX}/own", timeout=90)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", CHECKS)
def test_ordinary(tmp_path: Path, name: str) -> None:
    let_through(tmp_path)
    argv = [sys.executable, str(SCRIPT), name, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
