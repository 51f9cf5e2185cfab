"""Shrinks a workload to a machine: data and computation together, and says by how much.

A run on a small machine keeps what matters for the comparison of storage systems: the bytes that one second
of computation asks for. So first there are fewer samples (and with them fewer steps, each as before); when
so few are left that a run would be mere start-up, samples and the computation of a step shrink alike.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tiercel.dl.files.dataset import Dataset
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Checkpoint, Model, Transformer
from tiercel.errors import UserError
from tiercel.units import format_share

#: Steps of an epoch and process that a scaled workload keeps, where it had as many.
LEAST_STEPS = 10
#: Bytes below which a sample is not shrunk.
LEAST_SAMPLE = 4096


@dataclass(frozen=True)
class Scale:
    """What a scaled workload is of the file's: 1 is unchanged. Every result carries it."""

    asked: float = 1.0
    samples: float = 1.0
    """Share of the file's samples (of an epoch)."""
    record: float = 1.0
    """A sample's bytes, as a share of the file's; the computation of a step shrinks by the same factor."""
    data: float = 1.0
    """Bytes that an epoch reads, as a share of the file's."""
    compute: float = 1.0
    """Computation of an epoch over all processes, as a share of the file's."""
    of: str = "data"
    """What `data` is the share of: checkpoints, where a workload reads nothing else."""

    @property
    def full(self) -> bool:
        return self.asked == 1.0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.full:
            return "full size"
        data, compute = _share(self.data), _share(self.compute)
        return f"scale {self.asked:g}: {data} of the {self.of}, {compute} of the computation"


def _share(share: float) -> str:
    """Return a share with two digits after the point, or two that say something where these would not."""
    return format_share(share, 2) if not 0 < share < 0.0001 else f"{100 * share:.2g} %"


def scaled(workload: DLWorkload, factor: float, processes: int = 1) -> tuple[DLWorkload, Scale]:
    """Return `workload` with about `factor` of its bytes and computation, and the factors really used.

    `processes` is the number of ranks that will run it: each keeps some steps, and as many do as a checkpoint
    of the model takes. Checkpoints shrink by `factor` too. UserError unless 0 < factor <= 1.
    """
    if not 0 < factor <= 1:
        raise UserError(f"scale {factor:g}: must be above 0 and at most 1")
    if factor == 1:
        return workload, Scale()
    data, steps = workload.dataset, workload.train.total_training_steps
    processes = max(processes, _ranks_of_a_model(workload))
    fewer = max(min(LEAST_STEPS, steps), round(steps * factor)) if steps > 0 else steps
    files, per_file = _counts(workload, factor, processes, fewer)
    samples = files * per_file / data.samples_train
    done = fewer / steps if steps > 0 else samples
    # What fewer steps leave to shrink, a step takes over: its bytes and its computation alike.
    left = min(1.0, factor / done)
    record = 1.0 if data.format == "synthetic" else _record(data, left)
    smaller = _dataset(data, files, per_file, record, samples)
    if data.parquet.columns:  # numbers one by one cannot be less
        record = smaller.sample_bytes / data.sample_bytes
    time = left if data.format == "synthetic" else record
    changed = workload.model_copy(
        update={
            "dataset": smaller,
            "train": workload.train.model_copy(
                update={
                    "computation_time": workload.train.computation_time.times(time),
                    "total_training_steps": fewer,
                }
            ),
            "reader": workload.reader.model_copy(
                update={"preprocess_time": workload.reader.preprocess_time.times(time)}
            ),
            "evaluation": workload.evaluation.model_copy(
                update={"eval_time": workload.evaluation.eval_time.times(time)}
            ),
            "checkpoint": _checkpoint(workload, done, factor),
            "model": _model(workload, factor),
        }
    )
    if not (workload.workflow.train or workload.workflow.evaluation or workload.workflow.generate_data):
        whole = workload.model.checkpoint_bytes
        share = changed.model.checkpoint_bytes / whole if whole else 1.0
        return changed, Scale(factor, 1.0, 1.0, share, factor, "checkpoints")
    content = smaller.sample_bytes / data.sample_bytes
    return changed, Scale(factor, samples, record, done * content, done * time)


def _ranks_of_a_model(workload: DLWorkload) -> int:
    """Return the ranks without which the workload cannot write its checkpoints."""
    parallel = workload.model.parallelism
    whole = workload.workflow.checkpoint and workload.checkpoint.mode != "subset"
    return parallel.tensor * parallel.pipeline if whole else 1


def _checkpoint(workload: DLWorkload, done: float, factor: float) -> Checkpoint:
    checkpoint, between = workload.checkpoint, workload.checkpoint.steps_between_checkpoints
    return checkpoint.model_copy(
        update={
            "steps_between_checkpoints": max(1, round(between * done)) if between > 0 else between,
            "time_between_checkpoints": checkpoint.time_between_checkpoints.times(factor),
        }
    )


def _counts(workload: DLWorkload, factor: float, processes: int, steps: int) -> tuple[int, int]:
    """Return files and samples in each: fewer files first, then fewer samples in a file."""
    data, batch = workload.dataset, workload.reader.batch_size
    least = min(data.samples_train, batch * processes * (steps if steps > 0 else LEAST_STEPS))
    wanted = max(least, round(data.samples_train * factor))
    least_files = min(data.num_files_train, processes * max(1, workload.reader.read_threads))
    files = max(least_files, min(data.num_files_train, round(data.num_files_train * factor)))
    files = max(files, -(-wanted // data.num_samples_per_file))
    per_file = max(1, min(data.num_samples_per_file, math.ceil(wanted / files)))
    return files, per_file


def _record(data: Dataset, left: float) -> float:
    """Return the factor of a sample's bytes: what is left to shrink, but no sample below 4 KiB."""
    least = min(1.0, LEAST_SAMPLE / data.sample_bytes)
    return max(left, least)


def _dataset(data: Dataset, files: int, per_file: int, record: float, samples: float) -> Dataset:
    update: dict[str, Any] = {
        "num_files_train": files,
        "num_samples_per_file": per_file,
        "num_files_eval": min(data.num_files_eval, max(1, round(data.num_files_eval * samples)))
        if data.num_files_eval
        else 0,
        "num_subfolders_train": min(data.num_subfolders_train, files),
    }
    if record < 1:
        update["record_length_bytes"] = max(1, round(data.record_length_bytes * record))
        update["record_length_bytes_stdev"] = round(data.record_length_bytes_stdev * record)
        update["record_length_bytes_resize"] = round(data.record_length_bytes_resize * record)
        if data.record_dims:  # the first dimension: the others give the sample its shape
            first = max(data.hdf5.num_dset_per_record, round(data.record_dims[0] * record))
            first -= first % data.hdf5.num_dset_per_record
            update["record_dims"] = [first, *data.record_dims[1:]]
        update["parquet"] = data.parquet.model_copy(
            update={
                "columns": [
                    one.model_copy(update={"size": max(1, round(one.size * record))})
                    for one in data.parquet.columns
                ]
            }
        )
    return data.model_copy(update=update)


def _model(workload: DLWorkload, factor: float) -> Model:
    model = workload.model
    update: dict[str, Any] = {}
    if model.model_size_bytes:
        update["model_size_bytes"] = max(1, round(model.model_size_bytes * factor))
    for name in ("optimization_groups", "layer_parameters"):
        update[name] = [max(1, round(n * factor)) if n else 0 for n in getattr(model, name)]
    if model.parameters:
        # Fewer parameters in each layer, not fewer layers: the number of files is part of the pattern.
        side = math.sqrt(factor)
        t = model.transformer or Transformer()
        heads = t.num_attention_heads
        update["transformer"] = t.model_copy(
            update={
                "hidden_size": max(heads, round(t.hidden_size * side / heads) * heads),
                "ffn_hidden_size": max(1, round(t.ffn_hidden_size * side)),
                "vocab_size": max(1, round(t.vocab_size * side)),
            }
        )
    return model.model_copy(update=update)
