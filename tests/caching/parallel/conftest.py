"""Parallel HDF5 programs on a few ranks, each of which may have a node-local folder of its own: be a node."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tests.caching.conftest import EAGER
from tiercel.engines.hdf5_library import prefixes
from tiercel.layers.cachevol import settings, throttle
from tiercel.programs import program

HOW = (
    "no parallel HDF5 >= 1.14 with an MPI of MPICH's binary interface: `make parallel-hdf5`, or name its "
    "folder in TIERCEL_PARALLEL_HDF5, or put its h5pcc on PATH (Spack: hdf5 +mpi ^mpich)"
)

#: Seconds that a rank waits for another one's answer: on a busy machine, too, it must come from there.
PATIENT = {"patience": 60.0, "recheck": 3600.0}


@dataclass(frozen=True)
class ParallelHDF5:
    include: Path
    library: Path
    mpicc: Path
    mpiexec: Path


@cache
def parallel_hdf5() -> ParallelHDF5 | None:
    """Find a parallel HDF5 and the MPI that it was built with."""
    mpicc, mpiexec = program("mpicc"), program("mpiexec")
    for prefix in prefixes() if mpicc and mpiexec else ():
        include = prefix / "include"
        library = next((f.parent for d in ("lib", "lib64") for f in (prefix / d).glob("libhdf5.so")), None)
        if library is None or not (include / "H5VLconnector.h").is_file():
            continue
        if mpicc and mpiexec and "define H5_HAVE_PARALLEL 1" in (include / "H5pubconf.h").read_text():
            return ParallelHDF5(include, library, mpicc, mpiexec)
    return None


def built(source: str, folder: Path) -> Path:
    """Build a program of this folder against the parallel HDF5; skip the test where there is none."""
    hdf5 = parallel_hdf5()
    if hdf5 is None:
        pytest.skip(HOW)
    program = folder / Path(source).stem
    subprocess.run(
        [hdf5.mpicc, "-O1", "-g", "-Wall", "-o", program, Path(__file__).with_name(source),
         f"-I{hdf5.include}", f"-L{hdf5.library}", f"-Wl,-rpath,{hdf5.library}", "-lhdf5"],
        check=True,
    )  # fmt: skip
    return program


@pytest.fixture(scope="session")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("play.c", tmp_path_factory.mktemp("player"))


def end_after_a_kill(child: subprocess.Popen[str]) -> None:
    """Wait for a program of which a rank kills itself; it must not end well."""
    try:
        child.communicate(timeout=300)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode != 0


def slow_storage(folder: Path, rate: float) -> dict[str, str]:
    """Environment that limits a folder to `rate` bytes a second, for all processes together."""
    return {
        "LD_PRELOAD": str(throttle()),
        "CACHEVOL_THROTTLE_FOLDER": str(folder),
        "CACHEVOL_THROTTLE_RATE": str(rate),
        "CACHEVOL_THROTTLE_LATE": "yes",
        "CACHEVOL_THROTTLE_STATE": str(folder.parent / "throttle"),
    }


@dataclass
class Nodes:
    """Ranks on nodes that are told apart by their node-local folders, and one base file for all of them."""

    folder: Path
    player: Path
    file: Path = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.file = self.folder / "base" / "f.h5"
        self.file.parent.mkdir()

    def make(self, rows: int = 1003, columns: int = 257, shift: int = 0, name: str = "f.h5") -> None:
        """Write the file: row r, column c holds r * columns + c + shift; divisible by nothing."""
        data = (np.arange(rows * columns) + shift).reshape(rows, columns)
        with h5py.File(self.file.with_name(name), "w", libver=("earliest", "v114")) as file:
            file.create_dataset("x", data=data.astype("<i4"))
            file.create_dataset("swapped", data=data.astype(">i4"))
            file.create_dataset("chunked", data=data.astype("<i4"), chunks=(50, 60), compression="gzip")
            file["link"] = h5py.ExternalLink("linked.h5", "/x")

    def local(self, node: int) -> Path:
        path = self.folder / f"node{node}"
        path.mkdir(exist_ok=True)
        return path

    def start(
        self,
        scripts: Sequence[str],
        nodes: Sequence[int] | None = None,
        each: Sequence[Mapping[str, Any]] | None = None,
        rate: float | None = None,
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a program with one script for each rank.

        `nodes` gives each rank's node; one of its own if left out. `each` holds
        further settings of the connector for each rank, `options` those of all of them.
        `rate`: bytes a second of the base storage, if it is to be a slow one.
        """
        hdf5 = parallel_hdf5()
        assert hdf5 is not None
        self.runs += 1
        paths = []
        for rank, script in enumerate(scripts):
            path = self.folder / f"script{self.runs}.{rank}"
            path.write_text("".join(f"{line.strip()}\n" for line in script.split(";") if line.strip()))
            paths.append(str(path))
        command = [str(hdf5.mpiexec)]
        for rank in range(len(scripts)):
            node = rank if nodes is None else nodes[rank]
            own = {
                **EAGER,
                **PATIENT,
                "stats": str(self.stats(rank)),
                **options,
                **(each[rank] if each else {}),
            }
            command += [":"] if rank else []
            command += ["-n", "1"]
            for name, value in settings(self.local(node), own).items():
                command += ["-env", name, value]
            command += [str(self.player), str(self.file), *paths]
        plain = {k: v for k, v in os.environ.items() if not k.startswith("HDF5_")}
        plain |= slow_storage(self.file.parent, rate) if rate else {}
        return subprocess.Popen(
            command,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=plain,
            start_new_session=True,
        )

    def run(self, scripts: Sequence[str], *args: Any, **options: Any) -> list[dict[str, int]]:
        """Run a program that must end well; return the counts of each rank."""
        for rank in range(len(scripts)):
            self.stats(rank).unlink(missing_ok=True)
        child = self.start(scripts, *args, **options)
        _, errors = child.communicate(timeout=300)
        assert child.returncode == 0, errors
        return [json.loads(self.stats(rank).read_text().splitlines()[-1]) for rank in range(len(scripts))]

    def stats(self, rank: int) -> Path:
        return self.folder / f"stats.{rank}"


@pytest.fixture
def cluster(tmp_path: Path, player: Path) -> Nodes:
    return Nodes(tmp_path, player)
