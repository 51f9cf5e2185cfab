"""Keys that dlkernel carries out, and that do nothing in one file, because of what else the file says."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import CURRENT_ORDER

#: Formats that a library reads by calls of its own sizes.
_LIBRARIES = {"hdf5": "HDF5's library", "hdf5_opt": "HDF5's library", "jpeg": "Pillow", "png": "Pillow",
              "mmap_indexed_binary": "the kernel"}  # fmt: skip
_NO_LOADER = {"parquet": "its row groups are read in the order of the files",
              "tfrecord": "its files are read from the first sample to the last"}  # fmt: skip


def idle(workload: DLWorkload) -> dict[str, str]:
    """Return keys that do nothing in this file, with the reason; whether the file states them is not asked.

    Parts that `workflow` switches off as a whole are not here: see `switched_off`.
    """
    parts = _dataset(workload), _reader(workload), _train(workload), _checkpoint(workload), _model(workload)
    return {key: reason for part in parts for key, reason in part}


def switched_off(workload: DLWorkload, key: str) -> str | None:
    """Return why a key does nothing where `workflow` leaves out what it is about, or None."""
    work, group = workload.workflow, key.partition(".")[0]
    about_eval = group == "evaluation" or key in (
        "reader.batch_size_eval", "dataset.num_files_eval", "dataset.num_subfolders_eval"
    )  # fmt: skip
    if about_eval and not work.evaluation:
        return "workflow.evaluation is false"
    if group == "checkpoint" and not work.checkpoint:
        return "workflow.checkpoint is false"
    if group == "model" and key != "model.name" and not work.checkpoint:
        return "only checkpoints ask for it, and workflow.checkpoint is false"
    if group == "reader" and not (work.train or work.evaluation):
        return "nothing is trained or evaluated"
    if group == "train" and not work.train and key not in ("train.epochs", "train.seed"):
        return "workflow.train is false"
    return None


def _dataset(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    data, options = workload.dataset, "storage.storage_options."
    if data.format != "parquet":
        for key in ("columns", "prefetch_workers", "coalesce_rgs"):
            yield options + key, f"of format: parquet (here: {data.format})"
        if not workload.object_window:
            one = (
                "; a reader asks for one object after the other"
                if workload.storage.storage_type == "s3" else ""
            )  # fmt: skip
            yield options + "prefetch_window", f"of format: parquet (here: {data.format}{one})"
            yield options + "storage_library", "there is one client of S3 here"
        for key in ("row_group_size", "generation_batch_size"):
            yield f"dataset.parquet.{key}", f"of format: parquet (here: {data.format})"
    elif workload.storage.storage_options.storage_library == "s3dlio":
        yield options + "prefetch_window", "s3dlio: prefetch_workers says it"
    else:
        yield options + "coalesce_rgs", "of storage_library: s3dlio"
    if data.format not in ("hdf5", "hdf5_opt"):
        yield "dataset.hdf5.num_dset_per_record", f"of format: hdf5 (here: {data.format})"
    if (data.format, data.compression) not in _WITH_LEVELS:
        yield "dataset.compression_level", f"compression: {data.compression} of {data.format} has no levels"
    if data.record_dims or data.parquet.columns:
        other = "record_dims" if data.record_dims else "parquet.columns"
        yield "dataset.record_length_bytes", f"{other} says what a sample is"
    if data.parquet.columns:
        yield "dataset.record_element_type", "parquet.columns says what a sample is"
    if data.format == "synthetic":
        for key in ("data_folder", "file_prefix", "num_subfolders_train", "num_subfolders_eval",
                    "keep_files"):  # fmt: skip
            yield f"dataset.{key}", "samples of format: synthetic are made in memory"


#: Compressions to which dlkernel gives a level.
_WITH_LEVELS = {("hdf5", "gzip"), ("hdf5_opt", "gzip"), ("csv", "gzip"), ("csv", "bz2"), ("csv", "xz"),
                ("csv", "zip")}  # fmt: skip


def _reader(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    data, reader = workload.dataset, workload.reader
    streams = data.format == "tfrecord"
    if library := _LIBRARIES.get(data.format):
        yield "reader.transfer_size", f"{library} reads {data.format} in sizes of its own"
    if data.format == "synthetic":
        yield "reader.transfer_size", "samples of format: synthetic are made in memory"
    if not streams:
        yield "reader.computation_threads", f"of format: tfrecord; readers of {data.format} prepare samples"
        yield "reader.shuffle_size", f"of format: tfrecord (here: {data.format})"
    elif reader.sample_shuffle == "off":
        yield "reader.shuffle_size", "sample_shuffle is off"
    if streams and not reader.read_threads:
        yield "reader.computation_threads", "with read_threads: 0 the training process prepares samples"
    elif streams and not reader.preprocess_time.takes_time:
        yield "reader.computation_threads", "preparing samples takes no time (preprocess_time)"
    if data.format in _NO_LOADER:
        yield "reader.data_loader_sampler", f"{data.format}: {_NO_LOADER[data.format]}"
    if data.format == "parquet":
        yield "reader.sample_shuffle", f"{data.format}: {_NO_LOADER[data.format]}"
    yield from _unshuffled(workload)
    if not reader.read_threads:
        yield "reader.prefetch_size", "with read_threads: 0 nobody reads ahead"


def _unshuffled(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    """Yield the keys of shuffles that the program of `reader.order` does not do."""
    if workload.object_window:
        for key in ("sample_shuffle", "data_loader_sampler", "transfer_size"):
            yield f"reader.{key}", "whole objects are read in the order of the files, by one request each"
        return
    order = workload.reader.order or CURRENT_ORDER
    streams = workload.dataset.format in ("tfrecord", "parquet")
    reason = f"order: {order} does not shuffle so with this loader and format"
    if order == "distributed-sampler":
        return
    if (streams or workload.sampler == "index") and order != "mlperf-3.0-resharding":
        yield "reader.file_shuffle", reason
    if not streams and workload.sampler == "index" and order != "dlio-2.0":
        yield "reader.sample_shuffle", reason


def _train(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    reader = workload.reader
    if reader.file_shuffle == reader.sample_shuffle == "off":
        yield "train.seed_change_epoch", "nothing is shuffled"


def _checkpoint(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    point, work = workload.checkpoint, workload.workflow
    if work.train:
        for key in ("num_checkpoints_write", "time_between_checkpoints"):
            yield f"checkpoint.{key}", "of runs that do not train: here training says when"
    if not work.train:
        for key in ("steps_between_checkpoints", "epochs_between_checkpoints", "checkpoint_after_epoch"):
            yield f"checkpoint.{key}", "of runs that train"
    elif point.steps_between_checkpoints > 0:
        for key in ("epochs_between_checkpoints", "checkpoint_after_epoch"):
            yield f"checkpoint.{key}", "steps_between_checkpoints says when"
    if not workload.model.layer_by_layer:
        yield "checkpoint.type", "of models without parallelism, whose sizes are stated"


def _model(workload: DLWorkload) -> Iterator[tuple[str, str]]:
    model, ones = workload.model, not workload.checkpoint.randomize_tensor
    if model.model_size_bytes and model.type == "transformer":
        yield "model.model_size_bytes", "type: transformer has no file for it"
    if model.num_layers <= 0:
        yield "model.layer_parameters", "there are no layers (num_layers)"
    layers = model.num_layers > 0 and not model.layer_parameters
    derived = model.num_layers > 0 and not model.optimization_groups and not model.layer_by_layer
    if not (layers or ones):
        yield "model.model_datatype", "sizes are stated in bytes"
    if not (derived or ones):
        yield "model.optimizer_datatype", "sizes are stated in bytes"
    if not (layers or derived):
        for key in ("vocab_size", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_kv_heads"):
            yield f"model.transformer.{key}", "sizes are stated in bytes"
