"""Renders a deep-learning workload as DLIO's command line: overrides of Hydra, its configuration library.

Everything is said on the command line and nothing is left to DLIO's own workload files (``~workload`` drops
them), so a run's record holds the whole configuration. Names and meaning: DLIO 2.0.0, and its renamed keys
since (``dlio_benchmark/utils/config.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Duration

_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")
_WORDS = {"true", "false", "null", "inf", "nan"}
#: New name of a key of the dataset to that of DLIO 2.0.0.
_OLD_NAMES = {f"record_length_bytes{part}": f"record_length{part}" for part in ("", "_stdev", "_resize")}
#: What DLIO 2.0.0 does not know, with the value that means the same as its absence.
_LATER = {
    "reader.odirect": False,
    "checkpoint.fsync": False,
    "checkpoint.mode": "default",
    "checkpoint.num_checkpoints_read": -1,
    "checkpoint.recovery_rank_shift": False,
    "model.parallelism.zero_stage": 0,
    "dataset.hdf5.chunk_dims": [],
    "dataset.hdf5.max_shape": [],
    "dataset.hdf5.num_dset_per_record": 1,
    "dataset.record_element_type": "uint8",
    "reader.transformed_record_dims": [],
}


#: Of Parquet only MLPerf Storage's fork of DLIO has one.
_NO_READER = ("hdf5_opt", "parquet")


def unsupported(workload: DLWorkload, renamed_keys: bool) -> str | None:
    """Return what of `workload` DLIO cannot do, or None. `renamed_keys`: a DLIO later than 2.0.0."""
    data, reader = workload.dataset, workload.reader
    if workload.storage.storage_type not in ("local_fs", "parallel_fs"):
        return f"storage.storage_type: {workload.storage.storage_type} is no mounted storage"
    if workload.loader not in ("tensorflow", "pytorch", "synthetic"):
        return f"reader.data_loader: {workload.loader} is not in DLIO's environment here"
    if reader.file_access == "collective":
        return "reader.file_access: collective: DLIO takes the key and reads independently"
    if data.format in _NO_READER:
        return f"dataset.format: {data.format}: DLIO has no reader for it"
    if data.format == "csv" and data.compression != "none":
        return "dataset.compression with format: csv: DLIO does not find the files that it writes"
    if not workload.workflow.train:
        return "workflow.train: false: DLIO would only generate data"
    if renamed_keys:
        return None
    for key, absent in _LATER.items():
        if _at(workload, key) != absent:
            return f"{key}: needs a DLIO later than 2.0.0"
    if workload.model.transformer is not None:
        return "model.transformer: needs a DLIO later than 2.0.0"
    for name, time in _times(workload).items():
        if time.type != "normal":
            return f"{name}.type: {time.type}: needs a DLIO later than 2.0.0"
    return None


def overrides(
    workload: DLWorkload,
    data: Path,
    checkpoints: Path,
    output: Path,
    *,
    renamed_keys: bool = False,
) -> list[str]:
    """Return DLIO's arguments. `data` holds the dataset, ``train/`` and ``valid/``; `output` gets results."""
    tree: dict[str, Any] = {
        "framework": workload.framework,
        "workflow": {
            # Of samples that are made in memory it wants files to be there, and makes them itself.
            "generate_data": workload.dataset.format == "synthetic",
            "train": True,
            "evaluation": workload.workflow.evaluation,
            "checkpoint": workload.workflow.checkpoint,
            "profiling": False,
        },
        "dataset": {**_dataset(workload, renamed_keys), "data_folder": str(data)},
        "reader": _reader(workload),
        "train": {
            "epochs": workload.train.epochs,
            "total_training_steps": workload.train.total_training_steps,
            "seed": workload.train.seed,
            "seed_change_epoch": workload.train.seed_change_epoch,
            **_time("computation_time", workload.train.computation_time),
        },
        "evaluation": {
            "eval_after_epoch": workload.evaluation.eval_after_epoch,
            "epochs_between_evals": workload.evaluation.epochs_between_evals,
            **_time("eval_time", workload.evaluation.eval_time),
        },
        "checkpoint": {**_checkpoint(workload), "checkpoint_folder": str(checkpoints)},
        "output": {"folder": str(output)},
        "metric": {"au": workload.metric.au},
    }
    if renamed_keys:
        tree["model"] = _new_model(workload)
    else:
        tree["model"] = workload.model.name
        tree["checkpoint"] |= _old_model(workload)
        tree["dataset"] = {_OLD_NAMES.get(k, k): v for k, v in tree["dataset"].items()}
    words = [f"++workload.{key}={_word(value)}" for key, value in _flat(tree)]
    return ["~workload", *words, f"hydra.run.dir={_word(str(output))}"]


def _dataset(workload: DLWorkload, renamed_keys: bool) -> dict[str, Any]:
    data = workload.dataset
    whole_file = data.sample_bytes * data.num_samples_per_file
    found: dict[str, Any] = {
        "format": data.format, "file_prefix": data.file_prefix, "keep_files": True,
        "num_files_train": data.num_files_train, "num_files_eval": data.num_files_eval,
        "num_samples_per_file": data.num_samples_per_file,
        # DLIO makes no folder for one subfolder, and then misses it.
        "num_subfolders_train": data.num_subfolders_train if data.num_subfolders_train > 1 else 0,
        "num_subfolders_eval": data.num_subfolders_eval if data.num_subfolders_eval > 1 else 0,
        # Without `record_dims` DLIO 2.0.0 makes a square sample of as many bytes.
        "record_length_bytes": data.record_length_bytes if renamed_keys else data.sample_bytes,
        "record_length_bytes_stdev": data.record_length_bytes_stdev,
        "record_length_bytes_resize": data.record_length_bytes_resize,
        # DLIO fills a buffer of this size with random numbers for every HDF5 file, however small.
        "generation_buffer_size": min(data.generation_buffer_size, whole_file),
    }  # fmt: skip
    if data.enable_chunking:
        found |= {"enable_chunking": True, "chunk_size": data.chunk_size}
    if data.compression != "none":
        found |= {"compression": data.compression, "compression_level": data.compression_level}
    if data.record_dims and renamed_keys:
        found |= {"record_dims": list(data.record_dims)}
    if data.record_element_type != "uint8":
        found |= {"record_element_type": data.record_element_type}
    if data.hdf5.chunk_dims or data.hdf5.max_shape or data.hdf5.num_dset_per_record > 1:
        found["hdf5"] = {k: v for k, v in data.hdf5.model_dump().items() if v}
    return found


def _reader(workload: DLWorkload) -> dict[str, Any]:
    reader = workload.reader
    found: dict[str, Any] = {
        "data_loader": workload.loader, "batch_size": reader.batch_size,
        "batch_size_eval": reader.batch_size_eval, "read_threads": reader.read_threads,
        "computation_threads": reader.computation_threads, "prefetch_size": reader.prefetch_size,
        "file_shuffle": reader.file_shuffle, "sample_shuffle": reader.sample_shuffle,
        "shuffle_size": reader.shuffle_size, "read_type": reader.read_type,
        "multiprocessing_context": reader.multiprocessing_context,
        **_time("preprocess_time", reader.preprocess_time),
    }  # fmt: skip
    if reader.transfer_size is not None:
        found["transfer_size"] = reader.transfer_size
    for name in ("odirect", "dont_use_mmap"):
        if getattr(reader, name):
            found[name] = True
    return found


def _checkpoint(workload: DLWorkload) -> dict[str, Any]:
    checkpoint = workload.checkpoint
    found: dict[str, Any] = {
        "checkpoint_after_epoch": checkpoint.checkpoint_after_epoch,
        "epochs_between_checkpoints": checkpoint.epochs_between_checkpoints,
        "steps_between_checkpoints": checkpoint.steps_between_checkpoints,
        "type": checkpoint.type,
    }
    for name, absent in (("fsync", False), ("mode", "default"), ("recovery_rank_shift", False)):
        if getattr(checkpoint, name) != absent:
            found[name] = getattr(checkpoint, name)
    return found


def _old_model(workload: DLWorkload) -> dict[str, Any]:
    """Return the model as DLIO 2.0.0 wants it: its sizes are part of the checkpoint.

    It builds the state of a checkpoint even where none is written, so without one the sizes are nothing.
    """
    model, wanted = workload.model, workload.workflow.checkpoint
    layers = list(model.layer_parameters) if wanted and model.num_layers != 0 else []
    return {
        "model_size": (model.model_size_bytes or 0) if wanted else 0,
        "optimization_groups": list(model.optimization_groups) if wanted else [],
        "layer_parameters": layers,
        "num_layers": max(1, model.num_layers) if wanted else 1,
        "tensor_parallelism": model.parallelism.tensor if wanted else 1,
        "pipeline_parallelism": model.parallelism.pipeline if wanted else 1,
    }


def _new_model(workload: DLWorkload) -> dict[str, Any]:
    found = workload.model.model_dump(exclude_none=True)
    return {key: value for key, value in found.items() if value not in ([], {})}


def _time(name: str, time: Duration) -> dict[str, Any]:
    if time.type != "normal":
        return {name: time.model_dump(exclude_none=True)}
    return {name: time.mean, f"{name}_stdev": time.stdev}


def _times(workload: DLWorkload) -> Mapping[str, Duration]:
    return {
        "train.computation_time": workload.train.computation_time,
        "reader.preprocess_time": workload.reader.preprocess_time,
        "evaluation.eval_time": workload.evaluation.eval_time,
    }


def _at(workload: Any, key: str) -> Any:
    for part in key.split("."):
        workload = getattr(workload, part)
    return workload


def _flat(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, value))
    return found


def _word(value: Any) -> str:
    """Return a value in the grammar of Hydra's overrides; a text that could be read as more is quoted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_word(v) for v in value) + "]"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not _number(text):
        return text
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", text)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f"'{escaped}'"


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
