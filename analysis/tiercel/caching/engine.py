"""h5kernel, the embedded HDF5 programs: checkpoints and repeated reads.

Processes with a file of their own, or that each read a whole one, run h5py (tiercel.caching.kernel) on one
node. Processes that share a file, or its samples, are iokernel's (``iokernel-mpi steps``), on any number of
nodes: they need an HDF5 library with MPI, which h5py's wheel has not.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tiercel
from tiercel.caching.engine_answers import OWN, SHARED, Answers, answers_of
from tiercel.caching.workload import CheckpointWorkload, StreamWorkload
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.digest import digest_of
from tiercel.engines.hdf5_library import HOW, hdf5_library
from tiercel.engines.iokernel import version_of
from tiercel.errors import RunFailed
from tiercel.programs import program
from tiercel.study.workloads import Workload

_MODULE = "tiercel.caching.kernel"
#: Seeds of iokernel are 1 to this.
_SEEDS = 2**31 - 1


@engines.register("h5kernel")
class H5Kernel(Engine):
    name = "h5kernel"
    needs_mpi = False

    def find(self) -> Installation | None:
        if importlib.util.find_spec("h5py") is None:
            return None
        kernel = Path(__file__).with_name("kernel.py")
        spelled = f"{tiercel.__version__}+{digest_of([kernel])}+h5py-{version('h5py')}"
        programs = {"python": Path(sys.executable)}
        if shared := program("iokernel-mpi"):
            programs["shared"] = shared
            spelled += f"+iokernel-{version_of(shared)}"
        return Installation(self.name, spelled, programs)

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, CheckpointWorkload | StreamWorkload):
            return f"h5kernel does HDF5 checkpoints and streams, not {workload.operation}"
        if workload.needs_mpi:
            return _no_shared_file()
        return "h5kernel starts processes that share nothing on one node" if nodes > 1 else None

    def unsupported_started_by(self, workload: Workload, launcher: str) -> str | None:
        shares = getattr(workload, "needs_mpi", False)
        return (
            "processes that share a file need MPI, which fork has not"
            if shares and launcher == "fork"
            else None
        )

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        w, python = task.workload, str(installation.programs["python"])
        if getattr(w, "needs_mpi", False):
            return _shared_steps(task, str(installation.programs["shared"]))
        common = {"processes": task.processes, "answer": str(task.output / OWN)}
        if isinstance(w, CheckpointWorkload):
            spec: dict[str, Any] = {
                "kernel": "checkpoint", "folder": str(task.data), "steps": w.steps, "datasets": w.datasets,
                "dataset_bytes": w.dataset_size, "computes": [w.compute], **common,
            }  # fmt: skip
            return [Step("write", _command(python, spec), launch="once")]
        assert isinstance(w, StreamWorkload)
        path = str(task.data / "samples.h5")
        make = {"kernel": "make", "path": path, "samples": w.samples, "sample_bytes": w.sample_size}
        spec = {
            "kernel": "stream", "path": path, "epochs": w.epochs, "batch": w.batch, "seed": task.seed,
            "shuffled": w.pattern == "random", "compute": w.compute, **common,
        }  # fmt: skip
        return [
            Step("make", _command(python, make), launch="once"),
            Step("read", _command(python, spec), launch="once"),
        ]

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        try:
            answers, size = answers_of(output)
            if isinstance(task.workload, CheckpointWorkload):
                return [_checkpoint(answers, task.workload, size)]
            assert isinstance(task.workload, StreamWorkload)
            return _epochs(answers, task.workload)
        except (ValueError, KeyError, TypeError, ZeroDivisionError, IndexError) as error:
            raise RunFailed(f"the answers are incomplete: {error!r}") from None


def _no_shared_file() -> str | None:
    """Return why no processes can share an HDF5 file here, or None."""
    if program("iokernel-mpi") is None:
        return "processes that share a file need iokernel-mpi, which is not built (no MPI compiler)"
    library = hdf5_library()
    if library is None or not library.parallel:
        return f"processes that share a file need an HDF5 library with MPI: {HOW}"
    return None


def _shared_steps(task: Task, iokernel: str) -> list[Step]:
    """Return the commands of processes that share a file."""
    w, library = task.workload, hdf5_library()
    common = ["--hdf5.library", library.path] if library else []

    def step(name: str, *argv: object) -> Step:
        return Step(name, (iokernel, "steps", *map(str, argv), *common))

    answer = ("--summary-file", task.output / SHARED)
    if isinstance(w, CheckpointWorkload):
        much = ("--steps", w.steps, "--datasets", w.datasets, "-t", w.dataset_size)
        how = ("--compute", f"{w.compute / w.steps:.9f}", *["-c"] * w.collective)
        return [step("write", "--checkpoint", "-o", task.data / "checkpoint.h5", *much, *how, *answer)]
    assert isinstance(w, StreamWorkload)
    file = ("-o", task.data / "samples.h5", "--count", w.samples, "--sample-size", w.sample_size)
    batches = ("--batch", w.batch)
    order = ("-z", "--random-offset-seed", str(task.seed % _SEEDS + 1)) if w.pattern == "random" else ()
    how = ("--epochs", str(w.epochs), "--compute", f"{w.compute:.9f}", "--evict", *order)
    made = ("-k", "--summary-file", task.output / "samples.json")
    return [
        step("make", "--samples", *file, *batches, *made),
        step("read", "--stream", *file, *batches, *how, *answer),
    ]


def _command(python: str, spec: dict[str, Any]) -> tuple[str, ...]:
    return (python, "-m", _MODULE, json.dumps(spec, separators=(",", ":")))


def _checkpoint(answers: Answers, w: CheckpointWorkload, size: int | None) -> Measurement:
    """Return the observed bandwidth: all bytes over the slowest process's time without computation.

    `size` is that of the file that all share: no more was written than it holds.
    """
    runs = [process[0] for process in answers]
    moved, slowest = int(sum(r["bytes"] for r in runs)), max(r["observed"] for r in runs)
    moved = moved if size is None else min(moved, size)
    return Measurement(
        operation="hdf5-write", access="WO", bandwidth=moved / slowest, bytes_moved=moved,
        bytes_expected=len(runs) * w.steps * w.datasets * w.dataset_size,
        operations=len(runs) * w.steps * w.datasets, total_time=slowest,
        metrics={"compute_time": w.compute},
    )  # fmt: skip


def _epochs(answers: Answers, w: StreamWorkload) -> list[Measurement]:
    """Return two rows: the first epoch, and all later ones together, which a cache serves otherwise.

    An epoch takes as long as its slowest process; each process reads all samples in it, or all do together.
    """
    whole = (1 if w.divided else len(answers)) * w.samples * w.sample_size
    epochs = [
        (sum(r["bytes"] for r in runs), max(r["seconds"] for r in runs))
        for runs in zip(*answers, strict=True)
    ]
    rows: list[Measurement] = []
    for operation, part in (("hdf5-read-first", epochs[:1]), ("hdf5-read-later", epochs[1:])):
        moved, seconds = int(sum(e[0] for e in part)), sum(e[1] for e in part)
        rows.append(
            Measurement(
                operation=operation,
                phase=len(rows),
                access="RO",
                bandwidth=moved / seconds,
                bytes_moved=moved,
                bytes_expected=len(part) * whole,
                total_time=seconds,
                metrics={"epochs": len(part)},
            )
        )
    return rows
