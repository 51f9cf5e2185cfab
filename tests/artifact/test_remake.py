"""Made again on another processor: libraries are held to what all processors of a kind have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tiercel.artifact.remake import plain_environment

_ADD = """
import numpy as np
found = np.show_config(mode="dicts")["SIMD Extensions"]
rng = np.random.default_rng(1)
values = rng.lognormal(size=(101, 1001)).astype("float64")
print(found.get("found", []), (values @ values.T).sum().hex())
print(np.log(values).sum().hex(), np.exp(values / 9).sum().hex())
"""


def test_no_processor_adds_up_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what this processor has beyond others off, as on an older one, the same digits come out."""
    more = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not more:
        pytest.skip("this processor has nothing that an older one has not: on another machine")
    said = []
    for off in ("", " ".join(more), more[-1]):
        monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", off)
        monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
        environment = plain_environment(tmp_path)
        done = subprocess.run(
            [sys.executable, "-c", _ADD], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        said.append(done.stdout)
    assert said[0] == said[1] == said[2] and said[0].startswith("[] ")


def test_the_users_settings_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    monkeypatch.setenv("MATPLOTLIBRC", str(tmp_path / "mine"))
    environment = plain_environment(tmp_path)
    assert "MPLBACKEND" not in environment and "MATPLOTLIBRC" not in environment
    assert environment["TZ"] == "UTC" and environment["OMP_NUM_THREADS"] == "1"
