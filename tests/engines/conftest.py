"""Tasks for adapters, recorded outputs, and real runs where the programs are installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.engines import Task, engines
from tiercel.launchers import resolve
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, Outcome, execute
from tiercel.site.model import Stack, Storage
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.study.plan import Configuration, Run
from tiercel.study.workloads import DataWorkload, MetadataWorkload

RECORDED = Path(__file__).parent.parent / "data" / "engines"


def data(**keys: Any) -> DataWorkload:
    """Return a workload of 2 segments of 1 MiB in transfers of 64 KiB: 32 operations of a process."""
    keys.setdefault("transfer_size", 65536)
    keys.setdefault("block_size", 1048576)
    keys.setdefault("segments", 2)
    return DataWorkload(**keys)


def metadata(**keys: Any) -> MetadataWorkload:
    keys.setdefault("items_per_process", 20)
    return MetadataWorkload(operation="metadata", **keys)


@pytest.fixture
def task(tmp_path: Path) -> Callable[..., Task]:
    """Make a task of 2 processes on one node, launched by mpiexec, seed 7."""

    def make(workload: Any, nodes: int = 1, processes: int = 2, launcher: str = "mpiexec") -> Task:
        return Task(workload, nodes, processes, Path("/d"), tmp_path, 7, launcher)

    return make


@pytest.fixture
def really_run(tmp_path: Path) -> Callable[..., Outcome]:
    """Carry out a workload with a real engine; the test skips where engine or MPI launcher is missing."""

    def run(name: str, workload: Any, processes: int = 2, folder: Path | None = None) -> Outcome:
        engine, launcher = engines.get(name)(), resolve("auto")
        installation = engine.find()
        if installation is None:
            pytest.skip(f"{name} is not installed: {getattr(engine, 'note', '')}")
        if engine.needs_mpi and not launcher.mpi:
            pytest.skip(f"{name} needs MPI and there is no mpiexec")
        reason = engine.unsupported(workload, 1)
        if reason:
            pytest.skip(reason)
        scratch = folder or tmp_path / "scratch"
        scratch.mkdir(exist_ok=True, parents=True)
        mount = mount_of(scratch, read_mounts())
        assert mount is not None and mount.medium is not None
        storage = Storage(
            type=mount.type, mount=str(mount.point), medium=mount.medium,
            scratch=str(scratch).replace("$", "$$"),
        )  # fmt: skip
        configuration = Configuration(
            "here", "tests", "engines", "case", workload, Stack("main", storage), name,
            installation.version, launcher.name, 1, processes, 7,
        )  # fmt: skip
        store = RawStore(tmp_path / f"results-{name}")
        return execute(Run(configuration), Equipment(engine, installation, launcher, store, 60.0))

    return run
