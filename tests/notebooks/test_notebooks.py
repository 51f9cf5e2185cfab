"""The notebooks run from top to bottom: on a small real result, on traces that they make or that lie in the
tree."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.programs import program

from ..conftest import Project

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "analysis" / "notebooks").glob("*.ipynb"))


#: Those on a project's results begin with a number.
ON_RESULTS = [path for path in NOTEBOOKS if path.name[0] == "0"]
OTHERS = [path for path in NOTEBOOKS if path.name[0] != "0"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Path], None]:
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))

    def execute(path: Path, folder: Path) -> None:
        notebook = nbformat.read(path, as_version=4)
        client = nbclient.NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        client.execute(env=dict(os.environ))  # raises CellExecutionError with the cell and its traceback
        assert [cell.source for cell in notebook.cells if any(map(_empty, cell.get("outputs", ())))] == []

    return execute


def _empty(output: Any) -> bool:
    """Return whether an output is a table without a cell: NaN in columns not shown once emptied one, and of a
    run without data the features of no file stood upright: names of rows alone."""
    page = output.get("data", {}).get("text/html", "")
    return any("<td" not in table for table in re.findall(r"<table.*?</table>", page, re.DOTALL))


@pytest.mark.parametrize("path", OTHERS, ids=lambda p: p.stem)
def test_a_notebook_runs(path: Path, run: Callable[[Path, Path], None]) -> None:
    run(path, path.parent)


@pytest.mark.parametrize("path", ON_RESULTS, ids=lambda p: p.stem)
def test_a_notebook_runs_on_results(path: Path, run: Callable[[Path, Path], None], measured: Project) -> None:
    if "sharing" in path.stem and not (program("fairshare-sim") and program("cachevol-log")):
        pytest.skip("fairshare and cachevol are not built (make layers)")
    run(path, measured.root)


def test_a_study_without_a_training_is_told_what_it_lacks(
    run: Callable[[Path, Path], None], measured: Project, tmp_path: Path
) -> None:
    shutil.copytree(measured.root, tmp_path / "project", symlinks=True)
    project = Project(tmp_path / "project")
    for folder in (project.results / "raw").glob("training.*"):
        shutil.rmtree(folder)
    assert project.tiercel("collect", "--study", "small").returncode == 0
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="study small has no training"):
        run(next(path for path in ON_RESULTS if path.stem == "04-deep-learning"), project.root)


def test_there_are_notebooks() -> None:
    assert [path.stem for path in ON_RESULTS] == [
        "01-first-look", "02-compare-storage", "03-traces", "04-deep-learning", "05-placement",
        "06-sharing-and-caching",
    ]  # fmt: skip
    assert len(OTHERS) >= 3
