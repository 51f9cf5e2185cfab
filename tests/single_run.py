"""A single run of the real iokernel on a folder of the test's; without MPI where a test asks for none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tiercel.engines import engines
from tiercel.launchers import resolve
from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment
from tiercel.site.model import Stack, Storage
from tiercel.site.mounts import mount_of, read_mounts
from tiercel.study.plan import Configuration, Run
from tiercel.study.workloads import DataWorkload, MetadataWorkload


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return stack_on(tmp_path / "scratch")


def stack_on(folder: Path, **keys: Any) -> Stack:
    folder.mkdir(exist_ok=True)
    mount = mount_of(folder, read_mounts())
    assert mount is not None
    content = {"type": mount.type, "mount": str(mount.point), "medium": mount.medium, **keys}
    return Stack("main", Storage(scratch=str(folder).replace("$", "$$"), **content))


@pytest.fixture
def new_run(stack: Stack) -> Callable[..., Run]:
    def make(on: Stack | None = None, launcher: str = "fork", processes: int = 2, **workload: Any) -> Run:
        content = {"operation": "write", "transfer_size": "64KiB", "data_per_process": "1MiB", **workload}
        kind = MetadataWorkload if content["operation"] == "metadata" else DataWorkload
        if kind is MetadataWorkload:
            del content["transfer_size"], content["data_per_process"]
        installation = engines.get("iokernel")().find()
        return Run(
            Configuration(
                site="s", study="t", experiment="e", name="w", workload=kind(**content), stack=on or stack,
                engine="iokernel", engine_version=installation.version if installation else "",
                launcher=resolve(launcher).name, nodes=1, processes_per_node=processes, seed=1,
            )
        )  # fmt: skip

    return make


@pytest.fixture
def equipment(tmp_path: Path) -> Callable[..., Equipment]:
    def make(launcher: str = "fork", timeout: float = 60.0) -> Equipment:
        engine = engines.get("iokernel")()
        installation = engine.find()
        if installation is None:
            pytest.skip("iokernel is not built (make setup builds it)")
        return Equipment(engine, installation, resolve(launcher), RawStore(tmp_path / "results"), timeout)

    return make
