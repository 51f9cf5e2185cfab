"""A workload as plain values for the program that runs it (`tiercel.dl.kernel`), which parses no YAML."""

from __future__ import annotations

from typing import Any

from tiercel.dl.files.dataset import ELEMENT_BYTES
from tiercel.dl.files.keys import refusals
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import CURRENT_ORDER, Duration, Transformer
from tiercel.dl.files.scale import Scale
from tiercel.errors import UserError

#: Loaders by how they read: processes as PyTorch's, threads as tf.data's.
_LOADERS = {"pytorch": "processes", "tensorflow": "threads", "dali": "threads", "native_dali": "threads",
            "synthetic": "threads", "none": "threads"}  # fmt: skip


def cannot(workload: DLWorkload) -> str | None:
    """Return why dlkernel cannot run `workload`, or None."""
    return next((f"{key}: {reason}" for key, reason in refusals(workload).items()), None)


def spec_of(workload: DLWorkload, scale: Scale | None = None) -> dict[str, Any]:
    """Return the values of `workload`; UserError where dlkernel cannot run it."""
    reason = cannot(workload)
    if reason:
        raise UserError(f"workload {workload.model.name}: {reason}")
    data, reader, train = workload.dataset, workload.reader, workload.train
    evaluation, checkpoint = workload.evaluation, workload.checkpoint
    loader = "none" if reader.read_threads == 0 else _LOADERS[workload.loader]
    return {
        "name": workload.model.name,
        "framework": workload.framework,
        "format": data.format,
        "prefix": data.file_prefix,
        "files": data.num_files_train,
        "files_eval": data.num_files_eval if workload.workflow.evaluation else 0,
        "per_file": data.num_samples_per_file,
        "subfolders": data.num_subfolders_train,
        "subfolders_eval": data.num_subfolders_eval,
        "shape": list(data.shape),
        "element": data.record_element_type,
        "element_bytes": ELEMENT_BYTES[data.record_element_type],
        "record_length": data.stated_length,
        "stdev": data.record_length_bytes_stdev,
        "chunk_bytes": data.chunk_size if data.enable_chunking else 0,
        "chunk_dims": list(data.hdf5.chunk_dims),
        "max_shape": list(data.hdf5.max_shape),
        "datasets": data.hdf5.num_dset_per_record,
        "columns": [one.model_dump(exclude={"read"}) for one in data.parquet.columns],
        "read_columns": workload.storage.storage_options.columns,
        "row_group": data.parquet.row_group_size,
        "group_batch": data.parquet.generation_batch_size,
        "group_threads": workload.storage.storage_options.window[0],
        "group_window": workload.storage.storage_options.window[1],
        "groups_joined": workload.storage.storage_options.joined,
        "footers_kept": workload.storage.storage_options.storage_library == "s3dlio",
        "object_window": workload.object_window,
        "compression": data.compression,
        "compression_level": data.compression_level,
        "keep_files": data.keep_files,
        "loader": loader,
        "sampler": workload.sampler,
        "order": reader.order or CURRENT_ORDER,
        "batch": reader.batch_size,
        "batch_eval": reader.batch_size_eval,
        "read_threads": reader.read_threads,
        "compute_threads": reader.computation_threads,
        "prefetch": reader.prefetch_size,
        "file_shuffle": reader.file_shuffle,
        "sample_shuffle": reader.sample_shuffle,
        "shuffle_size": reader.shuffle_size,
        "access": reader.file_access,
        "memory": reader.read_type == "memory",
        "transfer": reader.transfer_size or 0,
        "direct": reader.odirect,
        "preprocess": _time(reader.preprocess_time),
        "generate": workload.workflow.generate_data,
        "existing": not workload.workflow.generate_data,
        "data_seed": train.seed,
        "train": workload.workflow.train,
        "evaluate": workload.workflow.evaluation,
        "checkpoint": workload.workflow.checkpoint,
        "epochs": train.epochs,
        "steps": max(0, train.total_training_steps),
        "seed": train.seed,
        "seed_change_epoch": train.seed_change_epoch,
        "compute": _time(train.computation_time),
        "eval_time": _time(evaluation.eval_time),
        "eval_after": evaluation.eval_after_epoch,
        "eval_every": evaluation.epochs_between_evals,
        "ckpt_after": checkpoint.checkpoint_after_epoch,
        "ckpt_epochs": checkpoint.epochs_between_checkpoints,
        "ckpt_steps": max(0, checkpoint.steps_between_checkpoints),
        "ckpt_type": checkpoint.type,
        "ckpt_subset": checkpoint.mode == "subset",
        "ckpt_random": checkpoint.randomize_tensor,
        "ckpt_fsync": checkpoint.fsync,
        "ckpt_sync_ranks": checkpoint.rank_sync,
        "ckpt_between": _time(checkpoint.time_between_checkpoints),
        "ckpt_write": max(0, checkpoint.num_checkpoints_write),
        "ckpt_read": max(0, checkpoint.num_checkpoints_read),
        "ckpt_shift": checkpoint.recovery_rank_shift,
        "model": {
            **workload.model.model_dump(),
            "parameters": workload.model.parameters,
            "transformer": (workload.model.transformer or Transformer()).model_dump(),
        },
        "exclude_start": workload.output.metric.exclude_start_steps,
        "exclude_end": workload.output.metric.exclude_end_steps,
        "au": workload.metric.au,
        "scale": (scale or Scale()).as_dict(),
    }


def needs_dataset(workload: DLWorkload) -> bool:
    """Return whether the workload reads or makes files of samples (one that only checkpoints does not)."""
    work = workload.workflow
    return workload.dataset.format != "synthetic" and (work.generate_data or work.train or work.evaluation)


def dataset_spec_of(workload: DLWorkload, scale: Scale | None = None) -> dict[str, Any]:
    """Return the values with which dlkernel makes the dataset of `workload` and does nothing else."""
    # It stays, whatever the file says of training's: somebody else is to read it.
    only = {"generate": True, "train": False, "evaluate": False, "checkpoint": False, "keep_files": True}
    return {**spec_of(workload, scale), **only}


def _time(time: Duration) -> dict[str, Any]:
    return {name: value for name, value in time.model_dump().items() if value is not None}
