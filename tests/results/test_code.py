"""Which code the numbers of an engine hang on: what changed is read again, and nothing else."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tiercel.results import code


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package of an adapter, what that imports in each way there is, and what it does not import."""
    name = "made_for_code"
    for module, text in {
        "__init__": f"from {name}.handed import thing\n",
        "adapter": f"import {name}.whole\nfrom {name} import thing\nfrom {name}.numbers import LIMIT\n",
        "whole": f"from {name} import deeper\n",
        "deeper": "", "handed": "def thing(): ...\n", "numbers": "LIMIT = 4\n", "other": "",
    }.items():  # fmt: skip
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("adapter", "other"):
        importlib.import_module(f"{name}.{module}")
    return name


def test_an_adapter_hangs_on_all_that_it_imports(package: str) -> None:
    """A number that is imported by its name alone, and what a package hands on, are among it."""
    found = code._closure(f"{package}.adapter", (package,))
    assert found == {f"{package}.{name}" for name in ("adapter", "whole", "deeper", "handed", "numbers")}


def test_engines_are_told_apart_and_an_unknown_one_is_empty() -> None:
    assert len({code.of_engine(name) for name in ("iokernel", "ior", "fio")}) == 3
    assert code.of_engine("no-such-engine") == ""
