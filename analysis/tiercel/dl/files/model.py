"""A deep-learning workload file as a whole, and what must not contradict in it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from tiercel.dl.files.dataset import Dataset
from tiercel.dl.files.parts import (
    Checkpoint,
    Evaluation,
    Goal,
    Loader,
    Logging,
    Model,
    Output,
    Profiling,
    Reader,
    Storage,
    Train,
    Workflow,
    renamed,
)
from tiercel.documents import Document

#: Of a checkpoint in DLIO 2.0.0 and MLPerf Storage 1.0, of the model since.
_OF_THE_MODEL = ("model_size", "optimization_groups", "num_layers", "layer_parameters")

#: Formats of which that DLIO reads whole objects ahead of the steps.
_READ_AHEAD = ("npz", "npy", "jpeg", "png")


def _moved(content: Any) -> Any:
    """Return `content` with what a checkpoint said of the model's size where it is said now."""
    point = content.get("checkpoint") if isinstance(content, dict) else None
    if not isinstance(point, dict) or not (old := {key: point[key] for key in _OF_THE_MODEL if key in point}):
        return content
    model = content.get("model") or {}
    if not isinstance(model, dict):
        return content
    both = [key for key in old if key in model or (key == "model_size" and "model_size_bytes" in model)]
    if both:
        raise ValueError(f"checkpoint.{both[0]} and model.{both[0]} are the same key: write only the latter")
    rest = {key: value for key, value in point.items() if key not in old}
    return {**content, "model": {**model, **old}, "checkpoint": rest}


class DLWorkload(Document):
    """One file of ``workflows/dl-workloads/``, in DLIO's schema."""

    model: Model = Model()
    framework: Literal["tensorflow", "pytorch"] = "tensorflow"
    storage: Storage = Storage()
    workflow: Workflow = Workflow()
    dataset: Dataset = Dataset()
    reader: Reader = Reader()
    train: Train = Train()
    evaluation: Evaluation = Evaluation()
    checkpoint: Checkpoint = Checkpoint()
    output: Output = Output()
    profiling: Profiling = Profiling()
    logging: Logging = Logging()
    metric: Goal = Field(default=Goal(), description="what passes")

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, content: Any) -> Any:
        found = renamed(content, {"data_reader": "reader"})
        if isinstance(found, dict) and isinstance(found.get("model"), str):  # DLIO 2.0.0: only a name
            found = {**found, "model": {"name": found["model"]}}
        return _moved(found)

    @model_validator(mode="after")
    def _consistent(self) -> DLWorkload:
        for problem in (self._loader_problem(), self._access_problem(), self._work_problem()):
            if problem:
                raise ValueError(problem)
        return self

    def _loader_problem(self) -> str | None:
        if not (self.workflow.train or self.workflow.evaluation):
            return None  # nothing is loaded
        loader, other = self.reader.data_loader, {"tensorflow": "pytorch", "pytorch": "tensorflow"}
        if loader == other[self.framework]:
            return f"reader.data_loader: {loader} contradicts framework: {self.framework}"
        if self.dataset.format == "tfrecord" and self.loader == "pytorch":
            return "dataset.format: tfrecord needs reader.data_loader: tensorflow or dali (as in DLIO)"
        if self.reader.odirect and self.dataset.format not in ("npy", "npz", "indexed_binary"):
            return f"reader.odirect needs format npy, npz or indexed_binary (given: {self.dataset.format})"
        return None

    def _access_problem(self) -> str | None:
        if not (self.workflow.train or self.workflow.evaluation):
            return None
        access, data = self.reader.file_access, self.dataset
        if access != "multi" and data.num_files_train != 1:
            return (
                f"reader.file_access: {access} means one file for all processes: "
                f"dataset.num_files_train must be 1 (given: {data.num_files_train})"
            )
        if access == "collective" and data.format not in ("hdf5", "hdf5_opt", "indexed_binary"):
            return (
                f"reader.file_access: collective needs format hdf5 or indexed_binary (given: {data.format})"
            )
        if access == "collective" and self.reader.read_threads:
            return "reader.file_access: collective needs reader.read_threads: 0 (all processes call together)"
        return None

    def _work_problem(self) -> str | None:
        work, parallel = self.workflow, self.model.parallelism
        if not (work.generate_data or work.train or work.evaluation or work.checkpoint):
            return "workflow: nothing to do: train, evaluation, checkpoint or generate_data must be true"
        if work.evaluation and not self.dataset.num_files_eval:
            return "workflow.evaluation needs dataset.num_files_eval"
        if work.evaluation and not self.evaluation.epochs_between_evals:
            return "workflow.evaluation needs evaluation.epochs_between_evals of 1 or more"
        point = self.checkpoint
        if (
            not work.train
            and work.checkpoint
            and max(point.num_checkpoints_write, point.num_checkpoints_read) < 1
        ):
            return "workflow: checkpoint without train needs checkpoint.num_checkpoints_write (or _read)"
        subset = self.checkpoint.mode == "subset"
        if work.checkpoint and subset and parallel.data < 1:
            return "checkpoint.mode: subset needs model.parallelism.data (replicas of the whole job)"
        if work.checkpoint and not subset and parallel.data > 0:
            return (
                f"model.parallelism.data: {parallel.data} needs checkpoint.mode: subset (as in DLIO; by "
                "default it follows from the number of processes)"
            )
        if self.checkpoint.ksm is not None and self.checkpoint.randomize_tensor:
            return "checkpoint.ksm needs checkpoint.randomize_tensor: false (as in DLIO)"
        if parallel.pipeline > 1 and parallel.zero_stage == 3:
            return "model.parallelism: zero_stage: 3 excludes pipeline above 1"
        if 0 < self.model.num_layers < parallel.pipeline:
            return (
                f"model.num_layers: {self.model.num_layers} is less than "
                f"model.parallelism.pipeline: {parallel.pipeline}"
            )
        steps = self.train.total_training_steps
        if work.train and steps > 0 and steps * self.reader.batch_size > self.dataset.samples_train:
            return (
                f"train.total_training_steps: {steps} steps of {self.reader.batch_size} samples are more "
                f"than the {self.dataset.samples_train} of the dataset"
            )
        return None

    @property
    def object_window(self) -> int:
        """Return the objects on their way to each reader where whole ones are read ahead of the steps, as
        MLPerf Storage 3's DLIO does by its clients of S3; 0 where a sample is asked for when it is its turn.
        """
        ahead = self.loader == "pytorch" and self.dataset.format in _READ_AHEAD
        return (
            self.storage.storage_options.whole_objects if ahead and self.storage.storage_type == "s3" else 0
        )

    @property
    def sampler(self) -> Literal["index", "iterative"]:
        """Return whether samples are asked for by number or come in turn: the file's, else the loader's."""
        stated = self.reader.data_loader_sampler
        if stated in ("index", "iterative"):
            return stated
        return "index" if self.loader in ("pytorch", "dali") else "iterative"

    @property
    def loader(self) -> Loader:
        """Return the loader: the file's, else the framework's. DLIO's own default for TFRecord is tf.data."""
        return self.reader.data_loader or (
            "tensorflow" if self.dataset.format == "tfrecord" else self.framework
        )
