"""Upstream DLIO (argonne-lcf/dlio_benchmark): the engine that `dlkernel` is measured against.

It runs in an environment of its own, with TensorFlow or PyTorch (see `dlio_environment`), from the same
workload files, and reads the same dataset: dlkernel makes it (DLIO 2.0.0 cannot make all that it reads: it
fails on chunked HDF5). Then the dataset is dropped from the page cache, and DLIO trains.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.dl.engine import deep_learning_of, generating_step
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.upstream.environment import FOLDERS, START, environment_for, environments
from tiercel.dl.upstream.overrides import overrides, unsupported
from tiercel.dl.upstream.results import DLIOResults, Span, read_results
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.errors import RunFailed, UserError
from tiercel.study.workloads import Workload

#: What DLIO prints for every step is of no use, and what TensorFlow says of the processor neither.
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONNOUSERSITE": "1"}
_EVICT = "tiercel.dl.upstream.evict"
RESULTS = "dlio"
"""Folder of DLIO's own results within a run's output."""


@engines.register("dlio")
class DLIO(Engine):
    name = "dlio"

    def find(self) -> Installation | None:
        found = environments()
        if not found:
            return None
        programs = {
            framework: environment.python
            for framework in ("tensorflow", "pytorch")
            if (environment := environment_for(framework))
        }
        return Installation(self.name, "; ".join(e.version for e in found), programs) if programs else None

    def unsupported(self, workload: Workload, nodes: int) -> str | None:
        if not isinstance(workload, DeepLearningWorkload):
            return f"dlio does deep-learning workloads, not {workload.operation}"
        if workload.data_folder is not None:
            return "data_folder: its runs have datasets of their own: use dlkernel"
        found, _ = workload.resolved(nodes)
        environment = environment_for(found.framework)
        if environment is None:
            return f"framework {found.framework} is in no environment of DLIO ({_how(found.framework)})"
        if workload.cold == "every":
            return "cold: every: DLIO reads all its epochs in one go, so only the first can be cold"
        return unsupported(found, environment.renamed_keys)

    def steps(self, task: Task, installation: Installation) -> list[Step]:
        workload = deep_learning_of(task.workload, self.name)
        found, scale = workload.resolved(task.nodes, task.processes_per_node)
        if found.dataset.format == "synthetic":
            return [self.step(task, found)]
        cold = Step(
            "evict",
            (sys.executable, "-m", _EVICT, str(task.output / "evict.json"), str(_dataset(task) / "train")),
        )
        made = generating_step(task, found, scale)
        return [made, *([cold] if workload.cold == "first" else []), self.step(task, found)]

    def tracing(self, folder: Path) -> Mapping[str, str] | None:
        # DFTracer inside Python: spans and system calls in one log, which knows the ranks.
        if not all(e.dftracer for e in environments()):
            return None
        (folder / "trace").mkdir(parents=True, exist_ok=True)
        return {
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "FUNCTION",
            "DFTRACER_LOG_FILE": str(folder / "trace" / "run"),
            "DFTRACER_INC_METADATA": "1",
        }

    def step(self, task: Task, found: DLWorkload) -> Step:
        """Return DLIO's command that trains on the dataset that is there."""
        environment = environment_for(found.framework)
        if environment is None:
            raise UserError(f"dlio: no environment with {found.framework}: {_how(found.framework)}")
        seeded = found.model_copy(update={"train": found.train.model_copy(update={"seed": task.seed})})
        arguments = overrides(
            seeded, _dataset(task), task.folder("checkpoints"), task.output / RESULTS,
            renamed_keys=environment.renamed_keys,
        )  # fmt: skip
        return Step("train", (str(environment.python), str(START), *arguments), environment=_QUIET)

    def parse(self, task: Task, output: Path) -> list[Measurement]:
        workload = deep_learning_of(task.workload, self.name)
        found, _ = workload.resolved(task.nodes, task.processes_per_node)
        results = read_results(output / RESULTS, task.processes)
        if results.epochs != found.train.epochs:
            raise RunFailed(f"summary.json has {results.epochs} epochs of {found.train.epochs}")
        return _measurements(results, found, task.processes, _evicted(output / "evict.json"))


def _how(framework: str) -> str:
    command = list(FOLDERS.values())[framework == "pytorch"]
    return f"run `{command}`, or name a Python that has it in TIERCEL_DLIO_PYTHON"


def _dataset(task: Task) -> Path:
    return task.folder("dataset")


def _evicted(path: Path) -> dict[str, Any]:
    """Return what was found of the dataset before training; empty where nobody looked."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise RunFailed(f"{path.name} is not a complete result: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("bytes"), int):
        raise RunFailed(f"{path.name} does not contain the number of bytes")
    return content


def _measurements(
    results: DLIOResults, found: DLWorkload, processes: int, evicted: dict[str, Any]
) -> list[Measurement]:
    """Return the rows of dlkernel's adapter: the first epoch, the later ones, evaluations, checkpoints.

    DLIO does not count bytes: `bytes_expected` is what the files of the epoch's samples hold, and `bandwidth`
    is of those.
    """
    data = found.dataset
    each = evicted["bytes"] / data.samples_train if evicted else data.sample_bytes
    rows: list[Measurement] = []
    epochs = range(1, results.epochs + 1)
    for operation, group in (("train", epochs[:1]), ("train-later", epochs[1:])):
        if not group:
            continue
        steps = [s for epoch in group for s in results.steps_of(epoch)]
        row = _timed(operation, [_span(results, epoch, "epoch") for epoch in group])
        samples = sum(len(s.process) for s in steps) * found.reader.batch_size
        row.metrics = {
            "epochs": len(group), "samples": samples, "au_goal": found.metric.au,
            "au": sum(results.utilisation[e - 1] for e in group) / len(group) / 100,
            "samples_per_second": sum(results.throughput[e - 1] for e in group) / len(group),
        }  # fmt: skip
        if operation == "train":
            for name in ("resident_fraction", "resident_method", "resident_unknown", "memory_backed"):
                setattr(row, name, evicted.get(name))
        row.access = "RO" if operation == "train" and evicted else "RAR"
        rows.append(_rates(row, samples, each if data.format != "synthetic" else 0))
    evaluations = [s for s in results.spans if s.name == "eval"]
    if evaluations:
        row = _timed("evaluate", evaluations)
        taken = [s for s in results.steps if s.block == "eval"]
        samples = sum(len(s.process) for s in taken) * found.reader.batch_size_eval
        row.metrics = {"epochs": len(evaluations), "samples": samples}
        rows.append(_rates(row, samples, each if data.format != "synthetic" else 0))
    checkpoints = [s for s in results.spans if "ckpt" in s.name]
    if checkpoints:
        row = _timed("checkpoint-write", checkpoints)
        rows.append(_rates(row, len(checkpoints), _checkpoint_bytes(found, processes)))
    for phase, row in enumerate(rows):
        row.phase = phase
    return rows


def _span(results: DLIOResults, epoch: int, name: str) -> Span:
    found = results.span(epoch, name)
    if found is None:
        raise RunFailed(f"per_epoch_stats.json has no end of epoch {epoch}")
    return found


def _timed(operation: str, spans: list[Span]) -> Measurement:
    seconds = sum(s.seconds for s in spans)
    if seconds <= 0:
        raise RunFailed(f"per_epoch_stats.json: {operation} took no time")
    return Measurement(operation, total_time=seconds, began=min(s.began for s in spans))


def _rates(row: Measurement, count: int, each: float) -> Measurement:
    """Fill in what follows from a number of things of `each` bytes in the row's time."""
    assert row.total_time is not None
    row.operations, row.operation_rate = count, count / row.total_time
    if each:
        row.bytes_expected = round(count * each)
        row.bandwidth = row.bytes_expected / row.total_time
    return row


def _checkpoint_bytes(found: DLWorkload, processes: int) -> int:
    """Return the bytes of one checkpoint, by DLIO 2.0.0: optimizer states are kept three times."""
    model = found.model
    if model.transformer is not None:
        return 0  # only DLIO knows
    size = (model.model_size_bytes or 0) + 3 * sum(model.optimization_groups)
    size += max(0, model.num_layers) * sum(model.layer_parameters)
    return size * (processes if found.checkpoint.type == "all_ranks" else 1)
