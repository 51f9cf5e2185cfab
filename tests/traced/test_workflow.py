"""The rule `traces` in a real workflow: with traced runs, and without a tracer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Project, needs_iokernel
from tiercel.runs.tracing import preload_library

pytestmark = needs_iokernel

STUDY = """
study: tiny
title: A study of seconds
repetitions: {minimum: 1, maximum: 1}
twins: false
trace: TRACE
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 512KiB}
"""


def _evaluated(project: Project, trace: str, env: dict[str, str] | None = None) -> str:
    project.study("tiny", STUDY.replace("TRACE", trace))
    done = project.tiercel("evaluate", "--study", "tiny", env=env)
    assert done.returncode == 0, done.stderr
    return (project.results / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.skipif(preload_library() is None, reason="DFTracer is not installed")
def test_a_study_that_traces(new_project: Callable[..., Project]) -> None:
    project = new_project("scratch", "auto")  # of forked processes DFTracer has one
    page = _evaluated(project, "true")
    assert 'id="traces"' in page and "1 traced" in page
    (row,) = pd.read_parquet(project.results / "traces.parquet").to_dict("records")
    assert row["writes"] == 16  # two processes, 512 KiB in transfers of 64 KiB
    assert (project.results / "traces.nc").is_file()
    # Made again from the raw files alone, by the command.
    for name in ("traces.parquet", "trace-groups.parquet"):
        (project.results / name).unlink()
    done = project.tiercel("trace", "collect", "--study", "tiny")
    assert done.returncode == 0 and done.stdout == "1 traced run of study tiny, 0 incomplete\n"
    (again,) = pd.read_parquet(project.results / "traces.parquet").to_dict("records")
    assert again["writes"] == 16


def test_without_a_tracer(project: Project, tmp_path: Path) -> None:
    """DFTracer hidden by a module of its name without a library: traced runs are left out."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "dftracer.py").write_text("")
    assert 'id="traces"' not in _evaluated(project, "true", {"PYTHONPATH": str(tmp_path / "hidden")})
