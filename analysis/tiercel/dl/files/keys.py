"""What dlkernel makes of each key of a workload file: carried out, of no effect on storage, or refused.

The table is complete: every key of the schema has an entry (a test compares them), and what a page of the
documentation and `tiercel dl check` say is made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from tiercel.dl.files.idle import idle, switched_off
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Duration

Outcome = Literal["carried out", "no effect", "refused"]


@dataclass(frozen=True)
class Key:
    """What becomes of a key, and what is to be said of it."""

    outcome: Outcome
    note: str = ""


def _done(note: str = "") -> Key:
    return Key("carried out", note)


def _nothing(note: str) -> Key:
    return Key("no effect", note)


def _refused(note: str) -> Key:
    return Key("refused", note)


_SHUFFLE = "off, seed, random; what it changes depends on `reader.order`"
_OWN = "in `dl run`; each run of a study has a folder of its own"

_CREDENTIALS = "credentials come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"

KEYS: dict[str, Key] = {
    "framework": _done("default loader, names in traces"),
    "model.name": _done("name in results"),
    "model.type": _done("transformer: no file for `model_size_bytes`"),
    "model.model_size_bytes": _done(),
    "model.optimization_groups": _done(),
    "model.num_layers": _done(),
    "model.layer_parameters": _done(),
    "model.model_datatype": _done("of layers whose sizes are not stated"),
    "model.optimizer_datatype": _done("where `optimization_groups` is not given"),
    "model.parallelism.tensor": _done(),
    "model.parallelism.pipeline": _done("several stages: a file for each layer"),
    "model.parallelism.data": _done("with `checkpoint.mode: subset`; else it follows from the processes"),
    "model.parallelism.zero_stage": _done("0 to 3"),
    "model.transformer.vocab_size": _done(),
    "model.transformer.hidden_size": _done(),
    "model.transformer.ffn_hidden_size": _done(),
    "model.transformer.num_attention_heads": _done(),
    "model.transformer.num_kv_heads": _done(),
    "storage.storage_type": _done(
        "aistore and direct_fs are refused; what `dl run --folder` or a study names comes first"
    ),
    "storage.storage_root": _done(f"`data_folder` lies below it {_OWN}; of s3 the bucket"),
    "storage.storage_options.endpoint_url": _done("of s3; the environment's comes first: `AWS_ENDPOINT_URL`"),
    "storage.storage_options.region": _done("of s3"),
    "storage.storage_options.s3_force_path_style": _done("of s3; so it is where a host's name has no domain"),
    "storage.storage_options.s3_max_attempts": _done("of s3: how often a request is sent, at most"),
    "storage.storage_options.storage_library": _done(
        "Parquet, and NPZ, NPY, JPEG, PNG on s3: as it asks for row groups and objects, by one client of S3; "
        "direct is refused"
    ),
    "storage.storage_options.uri_scheme": _nothing("s3 says it already; file, direct, az and gs are refused"),
    "storage.storage_options.secure": _nothing("`endpoint_url` says http or https"),
    "storage.storage_options.columns": _done("Parquet: what is read, from the first to the last of them"),
    "storage.storage_options.prefetch_workers": _done("Parquet"),
    "storage.storage_options.prefetch_window": _done(
        "Parquet; NPZ, NPY, JPEG, PNG on s3 where `storage_library` is stated"
    ),
    "storage.storage_options.coalesce_rgs": _done("Parquet, with s3dlio"),
    "storage.storage_options.access_key_id": _nothing(_CREDENTIALS),
    "storage.storage_options.secret_access_key": _nothing(_CREDENTIALS),
    "storage.post_generation_settle_seconds": _nothing("what was made is durable before anybody reads it"),
    "workflow.generate_data": _done("true: files of others are refused; what is missing is made either way"),
    "workflow.train": _done(),
    "workflow.evaluation": _done(),
    "workflow.checkpoint": _done(),
    "workflow.profiling": _refused("true: trace the run instead (`--trace`, or a trace of the study)"),
    "workflow.debug": _nothing("DLIO's own files have it, and DLIO reads it nowhere"),
    "dataset.format": _done(),
    "dataset.data_folder": _done(f"{_OWN}, or one that the study's own `data_folder` names"),
    "dataset.file_prefix": _done(),
    "dataset.num_files_train": _done(),
    "dataset.num_files_eval": _done("with `workflow.evaluation`"),
    "dataset.num_samples_per_file": _done(),
    "dataset.num_subfolders_train": _done(),
    "dataset.num_subfolders_eval": _done(),
    "dataset.record_length_bytes": _done("a square sample where `record_dims` is not given"),
    "dataset.record_length_bytes_stdev": _done("one size for each file"),
    "dataset.record_length_bytes_resize": _nothing("the size of a sample in memory, after it was read"),
    "dataset.record_element_type": _done(),
    "dataset.record_element_bytes": _done("must be that of `record_element_type`"),
    "dataset.record_dims": _done(),
    "dataset.enable_chunking": _done("HDF5"),
    "dataset.chunk_size": _done("HDF5"),
    "dataset.compression": _done("HDF5, NPZ, CSV, Parquet"),
    "dataset.compression_level": _done("HDF5, CSV"),
    "dataset.hdf5.chunk_dims": _done(),
    "dataset.hdf5.num_dset_per_record": _done(),
    "dataset.hdf5.max_shape": _done(),
    "dataset.parquet.columns": _done("default: one, of all bytes of a sample"),
    "dataset.parquet.columns.read": _nothing(
        "MLPerf Storage's DLIO reads whole row groups all the same; storage.storage_options.columns chooses"
    ),
    "dataset.parquet.row_group_size": _done(),
    "dataset.parquet.generation_batch_size": _done("ends a row group too"),
    "dataset.parquet.partition_by": _refused("folders by values of a column: DLIO does not find its files"),
    "dataset.parquet.use_s3dlio_gen": _nothing("another writer of the same columns"),
    "dataset.parquet.read_mode": _nothing("files are read in row groups; DLIO reads this key nowhere"),
    "dataset.generation_buffer_size": _nothing("files are made piece by piece, whatever their size"),
    "dataset.data_gen_method": _nothing("another maker of the same contents"),
    "dataset.skip_listing": _nothing("a dataset is always listed and checked before it is trained on"),
    "dataset.listing_validation_interval": _nothing("a dataset is always listed and checked, all of it"),
    "dataset.keep_files": _done("false: a dataset that the run made is removed at its end"),
    "reader.data_loader": _done("custom is refused"),
    "reader.batch_size": _done(),
    "reader.batch_size_eval": _done(),
    "reader.read_threads": _done("0: the training process reads"),
    "reader.write_threads": _nothing("files are made by the processes (`-n`)"),
    "reader.computation_threads": _done("TFRecord; readers of other formats prepare what they read"),
    "reader.prefetch_size": _done(),
    "reader.file_shuffle": _done(_SHUFFLE),
    "reader.sample_shuffle": _done(f"{_SHUFFLE}; not of Parquet"),
    "reader.order": _done(
        "tiercel's own key: `dlio-2.0`, `dlio-main`, `mlperf-3.0`, `mlperf-3.0-resharding` or "
        "`distributed-sampler`; default: by the file's origin"
    ),
    "reader.shuffle_size": _done("TFRecord"),
    "reader.file_access": _done(),
    "reader.read_type": _done(),
    "reader.transfer_size": _done("of what is read by calls of our own: not HDF5, JPEG, PNG, mapped files"),
    "reader.preprocess_time": _done(),
    "reader.odirect": _done("NPY, NPZ, indexed binary"),
    "reader.dont_use_mmap": _nothing("of DALI's own readers; only mmap_indexed_binary is mapped here"),
    "reader.pin_memory": _nothing("there is no accelerator to copy to"),
    "reader.multiprocessing_context": _nothing("how reader processes begin; here they are forked"),
    "reader.data_loader_sampler": _done("none: the loader's own; not of TFRecord and Parquet"),
    "reader.data_loader_classname": _refused("a class for DLIO itself: use engine dlio"),
    "reader.reader_classname": _refused("a class for DLIO itself: use engine dlio"),
    "reader.transformed_record_dims": _nothing("the shape of a sample in memory, after it was read"),
    "reader.transformed_record_element_type": _nothing("the type of a sample in memory, after it was read"),
    "train.epochs": _done(),
    "train.total_training_steps": _done("of one epoch"),
    "train.seed_change_epoch": _done(),
    "train.seed": _done("in `dl run`; runs of a study have seeds of their own"),
    "train.computation_time": _done(),
    "evaluation.eval_time": _done(),
    "evaluation.eval_after_epoch": _done(),
    "evaluation.epochs_between_evals": _done(),
    "checkpoint.checkpoint_folder": _done(_OWN),
    "checkpoint.checkpoint_after_epoch": _done("without `steps_between_checkpoints`"),
    "checkpoint.epochs_between_checkpoints": _done("without `steps_between_checkpoints`"),
    "checkpoint.steps_between_checkpoints": _done(),
    "checkpoint.type": _done("of models without parallelism"),
    "checkpoint.mode": _done(),
    "checkpoint.checkpoint_mechanism_classname": _refused("a class for DLIO itself: use engine dlio"),
    "checkpoint.fsync": _done(),
    "checkpoint.time_between_checkpoints": _done("of runs that do not train"),
    "checkpoint.rank_sync": _done(),
    "checkpoint.recovery_rank_shift": _done("on several nodes"),
    "checkpoint.num_checkpoints_write": _done("of runs that do not train"),
    "checkpoint.num_checkpoints_read": _done(),
    "checkpoint.randomize_tensor": _done("false: ones"),
    "checkpoint.ksm": _nothing("it saves memory; no checkpoint is whole in memory here"),
    "output.folder": _done("`dl run --output` comes first; a study has folders of its own"),
    "output.log_file": _nothing("results are in `dlkernel.json` and DLIO's own files"),
    "output.metric.exclude_start_steps": _done(),
    "output.metric.exclude_end_steps": _done(),
    "profiling.profiler": _nothing("`workflow.profiling: true` is refused"),
    "profiling.iostat_devices": _nothing("`workflow.profiling: true` is refused"),
    "logging.verbosity": _nothing("some files for DLIO have it, and DLIO reads it nowhere"),
    "metric.au": _done(),
}  # fmt: skip

#: Keys that are groups of keys of no interest one by one.
_WHOLE = {"checkpoint.ksm"}
#: A list of groups of keys, and the one of these that is told apart.
_COLUMNS, _READ = "dataset.parquet.columns", "dataset.parquet.columns.read"


def schema_keys(model: type[BaseModel] = DLWorkload, prefix: str = "") -> Iterator[str]:
    """Yield every key of the schema, with its groups before it."""
    for name, field in model.model_fields.items():
        path, kinds = prefix + name, [field.annotation, *getattr(field.annotation, "__args__", ())]
        group = next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
        if group is None or group is Duration or path in _WHOLE:
            yield path
            if path == _COLUMNS:
                yield _READ
        else:
            yield from schema_keys(group, path + ".")


def stated(workload: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of what a workload file says that is not the default."""
    for name in type(workload).model_fields:
        path, value = prefix + name, getattr(workload, name)
        default = type(workload).model_fields[name].get_default(call_default_factory=True)
        if isinstance(value, BaseModel) and not isinstance(value, Duration) and path not in _WHOLE:
            yield from stated(value, path + ".")
        elif path == _COLUMNS and value:
            yield path, f"{len(value)}"
            if unread := sum(not column.read for column in value):
                yield _READ, f"false of {unread}"
        elif value != default:
            yield path, value.short if isinstance(value, Duration) else value


#: What other names of objects mean to s3dlio.
_SCHEMES = {"file": "a folder, which storage_type: local_fs is",
            "direct": "reads past the cache are reader.odirect: true", "az": "objects of S3 alone",
            "gs": "objects of S3 alone"}  # fmt: skip


def refusals(workload: DLWorkload) -> dict[str, str]:
    """Return the keys that dlkernel refuses in a file, each with the reason."""
    found: dict[str, str] = {}
    if workload.storage.storage_type == "aistore":
        found["storage.storage_type"] = "aistore is neither a file system nor S3"
    if workload.storage.storage_type == "direct_fs":
        found["storage.storage_type"] = "direct_fs: for reads past the cache set reader.odirect: true"
    if workload.storage.storage_type == "s3":
        found |= refusals_on_objects(workload)
    options = workload.storage.storage_options
    if options.uri_scheme != "s3":
        found["storage.storage_options.uri_scheme"] = f"{options.uri_scheme}: {_SCHEMES[options.uri_scheme]}"
    if options.storage_library == "direct":
        found["storage.storage_options.storage_library"] = "direct: nothing here reads Parquet past the cache"
    if workload.loader == "custom":
        found["reader.data_loader"] = "custom is for DLIO itself: use engine dlio"
    for key, value in stated(workload):
        if KEYS[key].outcome == "refused":
            found[key] = KEYS[key].note if "classname" not in key else f"{value} is {KEYS[key].note}"
    return found


#: Formats that are not read by calls of dlkernel's own.
_BY_OTHERS = {"hdf5": "HDF5's own library reads it", "hdf5_opt": "HDF5's own library reads it",
              "mmap_indexed_binary": "objects cannot be mapped into memory"}  # fmt: skip


def refusals_on_objects(workload: DLWorkload) -> dict[str, str]:
    """Return the keys with which dlkernel cannot run a file on object storage, each with the reason."""
    found: dict[str, str] = {}
    data, reader = workload.dataset, workload.reader
    if data.format in _BY_OTHERS:
        found["dataset.format"] = f"{data.format} on object storage: {_BY_OTHERS[data.format]}"
    if reader.odirect:
        found["reader.odirect"] = "object storage has no direct reads"
    if reader.file_access == "collective":
        found["reader.file_access"] = "object storage has no collective reads"
    return found


def without_effect(workload: DLWorkload) -> list[str]:
    """Return the keys of a file that do nothing here, and those that do nothing beside what else it says.

    What `workflow` switches off as a whole is not among them.
    """
    told = idle(workload)
    return [
        key for key, _ in stated(workload)
        if KEYS[key].outcome == "no effect" or (key in told and not switched_off(workload, key))
    ]  # fmt: skip


def outcome_of(workload: DLWorkload, key: str) -> Key:
    """Return what becomes of a key in this file."""
    reason = switched_off(workload, key) or idle(workload).get(key)
    return Key("no effect", reason) if reason and KEYS[key].outcome == "carried out" else KEYS[key]


def markdown() -> str:
    """Return the table of all keys."""
    lines = ["| key | what becomes of it | |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| `{key}` | {k.outcome} | {k.note} |" for key, k in KEYS.items())]) + "\n"
