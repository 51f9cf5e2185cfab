"""What to run: the values of a workload file, as `tiercel.dl.files.spec` writes them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from tiercel.dl.kernel.failure import Failure


@dataclass(frozen=True)
class Spec:
    """Sizes in bytes, times in seconds (as distributions, see `draw`). Names: see the workload's keys.

    `generate` makes what is missing of the dataset; with `existing`, files of others are taken as they are.
    """

    name: str
    framework: str
    format: str
    prefix: str
    files: int
    files_eval: int
    per_file: int
    subfolders: int
    subfolders_eval: int
    shape: list[int]
    element: str
    element_bytes: int
    record_length: int
    stdev: int
    chunk_bytes: int
    chunk_dims: list[int]
    max_shape: list[int]
    datasets: int
    columns: list[dict[str, Any]]
    read_columns: list[str]
    row_group: int
    group_batch: int
    group_threads: int
    group_window: int
    groups_joined: int
    footers_kept: bool
    object_window: int
    compression: str
    compression_level: int
    keep_files: bool
    loader: str
    sampler: str
    order: str
    batch: int
    batch_eval: int
    read_threads: int
    compute_threads: int
    prefetch: int
    file_shuffle: str
    sample_shuffle: str
    shuffle_size: int
    access: str
    memory: bool
    transfer: int
    direct: bool
    preprocess: dict[str, Any]
    generate: bool
    existing: bool
    data_seed: int
    train: bool
    evaluate: bool
    checkpoint: bool
    epochs: int
    steps: int
    seed: int
    seed_change_epoch: bool
    compute: dict[str, Any]
    eval_time: dict[str, Any]
    eval_after: int
    eval_every: int
    ckpt_after: int
    ckpt_epochs: int
    ckpt_steps: int
    ckpt_type: str
    ckpt_subset: bool
    ckpt_random: bool
    ckpt_fsync: bool
    ckpt_sync_ranks: bool
    ckpt_between: dict[str, Any]
    ckpt_write: int
    ckpt_read: int
    ckpt_shift: bool
    model: dict[str, Any]
    exclude_start: int
    exclude_end: int
    au: float
    scale: dict[str, Any] = field(default_factory=dict)

    @property
    def shuffles(self) -> set[str]:
        """How files and samples are shuffled (seed, random); empty where neither is."""
        return {self.file_shuffle, self.sample_shuffle} - {"off"}

    @property
    def reads_files(self) -> bool:
        return self.format != "synthetic"

    def dataset_key(self) -> str:
        """Return a hash of what the files of the dataset are; their content may be of any seed."""
        return self._hash("files", "files_eval")

    def files_key(self) -> str:
        """Return a hash of what each file of the dataset is, whatever their number."""
        return self._hash()

    def _hash(self, *counts: str) -> str:
        names = ("format", "prefix", *counts, "per_file", "subfolders", "subfolders_eval",
                 "shape", "element", "stdev", "chunk_bytes", "chunk_dims", "max_shape", "datasets",
                 "compression", "compression_level")  # fmt: skip
        image = {"record_length": self.record_length} if self.format in ("jpeg", "png") else {}
        groups = {n: getattr(self, n) for n in ("columns", "row_group", "group_batch")}
        more = groups if self.format == "parquet" else image
        text = json.dumps({**{n: getattr(self, n) for n in names}, **more}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_spec(text: str) -> Spec:
    """Return the spec in JSON `text`; Failure for one of another version of tiercel."""
    try:
        return Spec(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise Failure(f"the spec is not one of this version: {error}") from None
