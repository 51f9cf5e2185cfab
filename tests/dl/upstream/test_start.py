"""The start module and the search for environments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.dl.upstream.environment import START, environments
from tiercel.errors import UserError


def test_versions_of_a_python_without_dlio() -> None:
    answer = subprocess.run([sys.executable, START, "--versions"], capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["dlio"] == "" and found["renamed_keys"] is False


def test_a_named_python_without_dlio_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIERCEL_DLIO_PYTHON", sys.executable)
    with pytest.raises(UserError, match=r"TIERCEL_DLIO_PYTHON: .* has no DLIO"):
        environments()
    monkeypatch.setenv("TIERCEL_DLIO_PYTHON", str(tmp_path / "none"))
    with pytest.raises(UserError, match="No such file"):
        environments()
