"""Traced runs of the real iokernel: two processes, each 1 MiB in transfers of 64 KiB, under DFTracer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest

from tiercel.runs.execute import Equipment, execute
from tiercel.runs.tracing import preload_library
from tiercel.study.plan import Run


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # But matplotlib's list of fonts, which takes long to make, is the user's.
    monkeypatch.setenv("MPLCONFIGDIR", matplotlib.get_cachedir())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def carry_out(new_run: Callable[..., Run], equipment: Callable[..., Equipment]) -> Callable[..., list[Run]]:
    """Return a function that carries out `plain` untraced repetitions and a traced one of a workload."""
    if preload_library() is None:
        pytest.skip("DFTracer is not installed")

    # By MPI: of forked processes DFTracer has one.
    def make(plain: int = 0, **workload: object) -> list[Run]:
        first = new_run(launcher="auto", **workload)
        runs = [*(replace(first, repetition=r) for r in range(plain)), replace(first, traced=True)]
        tools = equipment("auto")
        for run in runs:
            assert execute(run, tools).reason == ""
        return runs

    return make
