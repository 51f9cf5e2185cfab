"""Deep learning: a workload file in DLIO's schema, at a scale, with overrides.

    unet3d:
      operation: deep-learning
      workload: unet3d-h100          # workflows/dl-workloads/unet3d-h100.yaml, or the path of a file
      scale: 0.01                    # of its data and computation
      overrides: {reader.read_threads: 8}

The file's content becomes part of the workload, so that a run is named by what it really did.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tiercel.columns import COUNT, NUMBER, WORD, Column
from tiercel.dl.files.load import load_workload
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parquet_size import parquet_bytes
from tiercel.dl.files.scale import Scale, scaled
from tiercel.dl.files.spec import needs_dataset
from tiercel.documents import parse
from tiercel.study.workloads.base import Workload, workload_kinds
from tiercel.study.workloads.features import features

#: Files are a little larger than their samples, and so are metadata.
_AROUND = 1.1
#: A number as text, with its comma, over its bytes in memory (CSV).
_AS_TEXT = {1: 4, 2: 6, 4: 2.5, 8: 1.25}
_INODE = 8192
_COLUMN_NAME = 8


features.declare(
    Column("dl_workload", WORD, "", "deep-learning workload file"),
    Column("dl_settings", WORD, "", "keys of that file that the study overrides"),
    Column("scale", NUMBER, "1", "scale that was asked for; 1 is the workload file's full size"),
    Column("data_scale", NUMBER, "1", "bytes of an epoch, as a share of the workload file's"),
    Column("compute_scale", NUMBER, "1", "computation of an epoch, as a share of the workload file's"),
    Column("read_threads", COUNT, "", "readers of each process"),
)


@workload_kinds.register("deep-learning")
class DeepLearningWorkload(Workload):
    """Training (and evaluation, checkpoints) as a workload file says."""

    operation: Literal["deep-learning"]
    workload: str = Field(description="name of a file in workflows/dl-workloads, or a path")
    scale: float = Field(default=1.0, gt=0, le=1, description="of data and computation")
    keep_steps_for: int = Field(
        default=4, ge=1, description="processes that keep some steps each, however small the scale"
    )
    grow_with: Literal["none", "nodes", "processes"] = Field(
        default="none", description="weak scaling: the dataset is the file's for each of them"
    )
    overrides: dict[str, Any] = Field(
        default={}, description="keys of the workload file, with dots, and what they are here"
    )
    cold: Literal["none", "first", "every"] = Field(
        default="first", description="epochs that begin with nothing of the dataset in the page cache"
    )
    data_folder: str | None = Field(
        default=None,
        description="of a dataset that is there: absolute, or below the storage's scratch folder",
    )
    content: dict[str, Any] = Field(default={}, description="of the file; read from it, not written by hand")

    @model_validator(mode="before")
    @classmethod
    def _read(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("content") or not isinstance(given.get("workload"), str):
            return given
        overrides = given.get("overrides") or {}
        if not isinstance(overrides, dict):
            return given
        found = load_workload(given["workload"], overrides)
        return {**given, "content": found.model_dump(mode="json")}

    @model_validator(mode="after")
    def _can_be_there(self) -> DeepLearningWorkload:
        if self.data_folder is None:
            return self
        found, _ = self.resolved()
        if not self.data_folder or ".." in self.data_folder.split("/"):
            raise ValueError(f"data_folder: must name a folder, without .. (given: {self.data_folder!r})")
        if not (found.workflow.train or found.workflow.evaluation) or not needs_dataset(found):
            raise ValueError(f"data_folder: workload {self.workload} reads no dataset")
        if self.grow_with != "none":
            raise ValueError(f"data_folder excludes grow_with: {self.grow_with}: a dataset has one size")
        return self

    def resolved(self, nodes: int = 1, processes_per_node: int = 1) -> tuple[DLWorkload, Scale]:
        """Return what runs on so many processes, and the factors of its scale."""
        whole = parse(DLWorkload, self.content, f"workload {self.workload}")
        found, scale = scaled(whole, self.scale, self.keep_steps_for)
        times = {"none": 1, "nodes": nodes, "processes": nodes * processes_per_node}[self.grow_with]
        if times > 1:
            data = found.dataset
            more = {"num_samples_per_file": data.num_samples_per_file * times} if data.num_files_train == 1 \
                else {"num_files_train": data.num_files_train * times}  # fmt: skip
            found = found.model_copy(update={"dataset": data.model_copy(update=more)})
        return found, scale

    def node_local(self) -> tuple[Workload | None, str]:
        return self, "on several nodes each makes and reads a whole dataset of its own"

    def existing_data(self) -> str | None:
        return self.data_folder

    def too_small(self, nodes: int, processes_per_node: int) -> str | None:
        found, _ = self.resolved(nodes, processes_per_node)
        data, reader, processes = found.dataset, found.reader, nodes * processes_per_node
        for wanted, samples, batch in (
            (found.workflow.train, data.samples_train, reader.batch_size),
            (found.workflow.evaluation, data.samples_eval, reader.batch_size_eval),
        ):
            if wanted and samples // processes < batch:
                return f"{samples:,} samples give {processes:,} processes less than one batch of {batch} each"
        return None

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes of dataset and checkpoints, generously."""
        checkpoints = self.checkpoint_footprint(nodes, processes_per_node)
        if self.data_folder is not None:
            return checkpoints
        return self.dataset_footprint(nodes, processes_per_node) + checkpoints

    def checkpoint_footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes of the checkpoints alone."""
        found, _ = self.resolved(nodes, processes_per_node)
        return _checkpoints(found, nodes * processes_per_node)

    def dataset_footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes of the dataset alone, generously."""
        found, _ = self.resolved(nodes, processes_per_node)
        data = found.dataset
        content, files = 0, 0
        if needs_dataset(found):
            content = (data.samples_train + data.samples_eval) * data.sample_bytes
            files = data.num_files_train + data.num_files_eval
            if data.format == "parquet":
                content = max(content, parquet_bytes(data))
            if data.format == "csv":
                content = round(content * _AS_TEXT[data.sample_bytes // _elements(found)])
                content += files * _elements(found) * _COLUMN_NAME
        return round(content * _AROUND) + files * _INODE

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        found, scale = self.resolved(nodes, processes_per_node)
        reader, data = found.reader, found.dataset
        shared = reader.file_access != "multi"
        return {
            "dl_workload": self.workload,
            "dl_settings": ", ".join(f"{k}={v}" for k, v in sorted(self.overrides.items())),
            "format": data.format,
            "scale": scale.asked,
            "data_scale": scale.data,
            "compute_scale": scale.compute,
            "layout": "shared" if shared else "file-per-process",
            "collective": reader.file_access == "collective",
            "pattern": "random" if "off" not in (reader.sample_shuffle,) else "sequential",
            "transfer_size": reader.transfer_size,
            "direct": reader.odirect,
            "file_order": reader.order,
            "read_threads": reader.read_threads,
            "batch_size": reader.batch_size,
            "computation_time": found.train.computation_time.expected,
        }


def _elements(found: DLWorkload) -> int:
    elements = 1
    for size in found.dataset.shape:
        elements *= size
    return elements


def _checkpoints(found: DLWorkload, processes: int) -> int:
    """Return the most bytes that checkpoints take: all of them stay until the run ends."""
    if not found.workflow.checkpoint:
        return 0
    model, train, point = found.model, found.train, found.checkpoint
    size, parallel = model.checkpoint_bytes, model.parallelism
    group = parallel.tensor * parallel.pipeline
    if model.parameters and not (model.layer_parameters or model.optimization_groups):
        whole = parallel.data * group if point.mode == "subset" else processes
        size = round(_AROUND * size * min(1, processes / whole))
    elif point.type == "all_ranks" or group > 1 or parallel.zero_stage:
        size *= processes
    size = max(size, 5 * 1024**2)
    if not found.workflow.train:
        return size * max(1, point.num_checkpoints_write)
    steps = train.total_training_steps
    if steps < 1:
        steps = max(1, found.dataset.samples_train // found.reader.batch_size // processes)
    per_epoch = steps // point.steps_between_checkpoints if point.steps_between_checkpoints > 0 else 1
    return size * train.epochs * max(1, per_epoch)
