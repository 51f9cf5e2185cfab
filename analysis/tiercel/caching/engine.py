"""h5kernel, the embedded HDF5 programs (tiercel.caching.kernel): checkpoints and repeated reads with h5py."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tiercel
from tiercel.caching.workload import CheckpointWorkload, StreamWorkload
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.digest import digest_of
from tiercel.errors import RunFailed
from tiercel.study.workloads import Workload

_MODULE = "tiercel.caching.kernel"


@engines.register("h5kernel")
class H5Kernel(Engine):
    name = "h5kernel"
    needs_mpi = False

    def find(self) -> Installation | None:
        if importlib.util.find_spec("h5py") is None:
            return None
        kernel = Path(__file__).with_name("kernel.py")
        spelled = f"{tiercel.__version__}+{digest_of([kernel])}+h5py-{version('h5py')}"
        return Installation(self.name, spelled, {"python": Path(sys.executable)})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, CheckpointWorkload | StreamWorkload):
            return f"h5kernel does HDF5 checkpoints and streams, not {workload.operation}"
        return "h5kernel starts its processes on one node" if nodes > 1 else None

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        w, python = task.workload, str(installation.programs["python"])
        common = {"processes": task.processes, "answer": str(task.output / "h5kernel.json")}
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
            answers = json.loads((output / "h5kernel.json").read_text())
            if isinstance(task.workload, CheckpointWorkload):
                return [_checkpoint(answers, task.workload)]
            assert isinstance(task.workload, StreamWorkload)
            return _epochs(answers, task.workload)
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, IndexError) as error:
            raise RunFailed(f"h5kernel.json is not a whole result: {error!r}") from None


def _command(python: str, spec: dict[str, Any]) -> tuple[str, ...]:
    return (python, "-m", _MODULE, json.dumps(spec, separators=(",", ":")))


def _checkpoint(answers: list[list[dict[str, float]]], w: CheckpointWorkload) -> Measurement:
    """Return the observed bandwidth: all bytes over the slowest process's time without computation."""
    runs = [process[0] for process in answers]
    moved, slowest = int(sum(r["bytes"] for r in runs)), max(r["observed"] for r in runs)
    return Measurement(
        operation="hdf5-write", access="WO", bandwidth=moved / slowest, bytes_moved=moved,
        bytes_expected=len(runs) * w.steps * w.datasets * w.dataset_size,
        operations=len(runs) * w.steps * w.datasets, total_time=slowest,
        metrics={"compute_time": w.compute},
    )  # fmt: skip


def _epochs(answers: list[list[dict[str, float]]], w: StreamWorkload) -> list[Measurement]:
    """Return two rows: the first epoch, and all later ones together, which a cache serves otherwise.

    An epoch takes as long as its slowest process; each process reads all samples in it.
    """
    whole = len(answers) * w.samples * w.sample_size
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
