"""The worked pages (docs/add/) are true: their files and commands as they stand, on a copy of tiercel."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tiercel

from ..conftest import CHECKOUT, Project, needs_iokernel
from .pages import Command, File, matches, steps

PAGES = sorted(path for path in (CHECKOUT / "docs" / "add").glob("*.md") if path.stem != "index")
_PACKAGE = "analysis/tiercel/"
_NEEDS = {"trace-rule": "strace", "launcher": "mpiexec.hydra"}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a checkout with a copy of the package, to which all pages add what they add: side by side."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "Snakefile", "workflows", "site-configs"):
        (folder / name).symlink_to(CHECKOUT / name)
    here = Path(tiercel.__file__).parent
    # With what Python compiled of it: that is judged by size and time, which a copy keeps.
    shutil.copytree(here, folder / "analysis" / "tiercel", copy_function=shutil.copy2)
    yield folder
    shutil.rmtree(folder)


def _write(step: File, copied: Path, project: Path) -> None:
    in_package = step.path.startswith(_PACKAGE)
    path = (copied if in_package else project) / step.path
    assert not in_package or not (CHECKOUT / step.path).exists(), f"{step.path} is a file of tiercel"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text)


#: Others go the same ways through a study and its report.
NIGHTLY = {"report-finding", "workload-kind"}


@needs_iokernel
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.nightly] if p.stem in NIGHTLY else []) for p in PAGES],
)
def test_a_page_does_what_it_says(
    page: Path, copied: Path, new_project: Callable[[str], Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path(sys.executable).parent
    needed = _NEEDS.get(page.stem)
    if needed and not shutil.which(needed, path=f"{beside}{os.pathsep}{os.environ['PATH']}"):
        pytest.skip(f"{needed} is not installed")
    project = new_project("scratch")
    python_path = filter(None, (str(copied / "analysis"), os.environ.get("PYTHONPATH")))
    environment = {
        **os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200",
        "PYTHONPATH": os.pathsep.join(python_path), "USER": os.environ.get("USER", getpass.getuser()),
    }  # fmt: skip
    did = 0
    for step in steps(page):
        if isinstance(step, File):
            _write(step, copied, project.root)
            continue
        assert isinstance(step, Command)
        done = subprocess.run(
            ["bash", "-c", step.words], cwd=project.root, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=900, check=False,
        )  # fmt: skip
        printed = done.stdout
        assert done.returncode == 0, f"{step.words}\n{printed}"
        assert matches(step.prints, printed), f"{step.words}\nexpected:\n{step.prints}\nprinted:\n{printed}"
        did += 1
    assert did
