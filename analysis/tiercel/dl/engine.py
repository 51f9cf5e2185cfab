"""dlkernel, the embedded deep-learning engine (tiercel.dl.kernel): DLIO's workloads without frameworks."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tiercel
from tiercel import native
from tiercel.dl.files.keys import refusals_on_objects, without_effect
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.scale import Scale
from tiercel.dl.files.spec import cannot, dataset_spec_of, needs_dataset, spec_of
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.digest import digest_of
from tiercel.errors import RunFailed, UserError
from tiercel.s3.endpoint import Location
from tiercel.site.model import ONLY_DL
from tiercel.study.workloads import Workload

_MODULE = "tiercel.dl.kernel"
#: The variable that makes dlkernel write a trace into ``trace/`` beside its results.
TRACE = "TIERCEL_TRACE"
_LIBRARIES = {"hdf5": "h5py", "hdf5_opt": "h5py", "jpeg": "PIL", "png": "PIL"}
_OPERATIONS = {
    "eval": "evaluate",
    "checkpoint-write": "checkpoint-write",
    "checkpoint-read": "checkpoint-read",
}


@engines.register("dlkernel")
class DLKernel(Engine):
    name = "dlkernel"
    needs_mpi = False

    def find(self) -> Installation | None:
        return Installation(self.name, f"{tiercel.__version__}+{_digest()}", {"python": Path(sys.executable)})

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, DeepLearningWorkload):
            return f"dlkernel does deep-learning workloads, not {workload.operation}"
        found, _ = workload.resolved()
        library = _LIBRARIES.get(found.dataset.format)
        if library and importlib.util.find_spec(library) is None:
            return f"format {found.dataset.format} needs {library}, which is not installed"
        if nodes > 1 and not has_mpi4py():
            return "several nodes need mpi4py, which is not installed"
        return cannot(found)

    def unsupported_on_objects(self, workload: Workload) -> str | None:
        if not isinstance(workload, DeepLearningWorkload):
            return ONLY_DL
        found, _ = workload.resolved()
        return next((f"{key}: {reason}" for key, reason in refusals_on_objects(found).items()), None)

    def without_effect(self, workload: Workload) -> list[str]:
        return without_effect(deep_learning_of(workload, self.name).resolved()[0])

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        return [self.step(task, installation)]

    def tracing(self, folder: Path) -> Mapping[str, str]:
        # Its own events and its calls on files, in one log; a preload library would know only the calls.
        return {TRACE: "1"}

    def step(self, task: Task, installation: Installation, cold: str | None = None) -> Step:
        """Return the command of a run; `cold` in place of the workload's."""
        workload = deep_learning_of(task.workload, self.name)
        found, scale = workload.resolved(task.nodes, task.processes_per_node)
        # The dataset is made first, where it is not there: a run of a study has an empty folder of its own,
        # unless the study names a dataset, of which nothing is written.
        make = needs_dataset(found) and workload.data_folder is None
        spec = {**spec_of(found, scale), "generate": make}
        more = "--checkpoints", str(task.place("checkpoints")), "--cold", cold or workload.cold
        return _step("train", task, spec, task.output, *more)

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        content = _content(output / "dlkernel.json")
        workload = deep_learning_of(task.workload, self.name)
        try:
            found, _ = workload.resolved(task.nodes, task.processes_per_node)
            return _measurements(content, workload, found)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise RunFailed(f"dlkernel.json is not a complete result: {error!r}") from None


def generating_step(task: Task, found: DLWorkload, scale: Scale) -> Step:
    """Return the command that makes a workload's dataset, for engines that read the files of this one."""
    return _step("generate", task, dataset_spec_of(found, scale), task.output / "generate")


def _step(name: str, task: Task, spec: Mapping[str, Any], output: Path, *more: str) -> Step:
    mpi = task.launcher != "fork" and has_mpi4py()
    dataset = task.place("dataset")
    server = ["--endpoint", json.dumps(dataset.endpoint.as_dict())] if isinstance(dataset, Location) else []
    argv = [
        sys.executable, "-m", _MODULE,
        "--spec", json.dumps({**spec, "seed": task.seed, "data_seed": task.seed}, separators=(",", ":")),
        "--data", str(dataset), "--output", str(output), *more, *server,
        *(["--mpi"] if mpi else ["--processes", str(task.processes)]),
    ]  # fmt: skip
    return Step(name, tuple(argv), launch="parallel" if mpi else "once")


@cache
def has_mpi4py() -> bool:
    """Return whether processes can find each other by MPI."""
    return importlib.util.find_spec("mpi4py") is not None


@cache
def _digest() -> str:
    """Identify the engine's code, with the C library where there is one: it scans many times faster."""
    library = next((place for place in native.places("dlkernel") if place.is_file()), Path("none"))
    return digest_of([Path(tiercel.__file__).parent / "dl" / "kernel", library])


def deep_learning_of(workload: Workload, engine: str) -> DeepLearningWorkload:
    """Return `workload` as the one kind that the deep-learning engines do; UserError for another."""
    if not isinstance(workload, DeepLearningWorkload):
        raise UserError(f"{engine} does deep-learning workloads, not {workload.operation}")
    return workload


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunFailed(f"{path.name} is missing: the engine wrote no result") from None
    except (OSError, ValueError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error}") from None
    if not isinstance(content, dict):
        raise RunFailed(f"{path.name} is not a result of dlkernel")
    return content


def _measurements(
    content: dict[str, Any], workload: DeepLearningWorkload, whole: DLWorkload
) -> list[Measurement]:
    """Return the dataset's generation, the first epoch, the later ones together, evaluations, checkpoints.

    The first epoch is apart because it alone reads from a cold storage.
    """
    found: list[Measurement] = []
    made, work = content["generated"], whole.workflow
    only = work.generate_data and not (work.train or work.evaluation or work.checkpoint)
    if made and (made["files"] or only):
        found.append(
            Measurement(
                "generate", "setup", bytes_moved=made["bytes"],
                bandwidth=made["bytes"] / made["seconds"] if made["files"] else None,
                operations=made["files"], total_time=made["seconds"],
            )
        )  # fmt: skip
    rows = content["rows"]
    train = [r for r in rows if r["kind"] == "train"]
    groups = [("train", train[:1]), ("train-later", train[1:])]
    groups += [(name, [r for r in rows if r["kind"] == kind]) for kind, name in _OPERATIONS.items()]
    for operation, group in groups:
        if group:
            cold = workload.cold == "every" or (workload.cold == "first" and operation == "train")
            one = _together(operation, group, content, cold or operation == "checkpoint-read")
            one.phase = len(found)
            found.append(one)
    if not rows and not only:
        raise RunFailed("dlkernel reported no epoch and no checkpoint")
    return found


def _together(operation: str, rows: list[dict[str, Any]], content: dict[str, Any], cold: bool) -> Measurement:
    seconds, moved = sum(r["seconds"] for r in rows), sum(r["bytes"] for r in rows)
    one = Measurement(
        operation, bandwidth=moved / seconds, bytes_moved=moved, total_time=seconds,
        began=min(r["began"] for r in rows), clock_skew=content["clock_skew"],
    )  # fmt: skip
    resident = [r["resident_fraction"] for r in rows if r["resident_method"] is not None]
    if resident:
        one.resident_fraction = None if None in resident else max(resident)
        one.resident_method = rows[0]["resident_method"]
        one.resident_unknown = next((why for r in rows if (why := r.get("resident_unknown"))), None)
        one.memory_backed = any(r["memory_backed"] for r in rows)
    if operation != "checkpoint-write" and moved:
        one.access = "RO" if cold else "RAR"
    if "samples" not in rows[0]:
        one.operations, one.operation_rate = len(rows), len(rows) / seconds
        return one
    samples = sum(r["samples"] for r in rows)
    blocks = sum(r.get("blocks", 0) for r in rows)
    one.operations, one.operation_rate = samples, samples / seconds
    one.cpu_user = sum(r["cpu"] for r in rows)
    io, felt = (sum(r[key] for r in rows) for key in ("io", "nonoverlapped_io"))
    one.metrics = {
        "epochs": len(rows), "samples": samples,
        "samples_per_second": sum(r["samples_per_second"] for r in rows) / len(rows),
        "au": sum(r["au"] for r in rows) / len(rows), "au_goal": content["au_goal"],
        "au_short": sum(r["short_blocks"] for r in rows) / blocks if blocks else None,
        "io_time": io, "nonoverlapped_io": felt,
        "overlapped_io": sum(r["overlapped_io"] for r in rows),
        "compute_time": sum(r["compute"] for r in rows),
        "compute_alone": sum(r["compute_alone"] for r in rows),
        "app_throughput": moved / felt if felt else None,
        "system_throughput": moved / io if io else None,
    }  # fmt: skip
    if len(rows) == 1:  # percentiles of several epochs do not add up
        for name in ("mean", "p50", "p90", "p99", "p999", "max"):
            setattr(one, f"latency_{name}", rows[0].get(f"latency_{name}"))
    return one
