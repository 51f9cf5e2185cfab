"""The workloads that are compared: those of paper 004 and one for each other format, made small."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Case:
    """A workload file with the values that make it small enough for any machine, under a name of its own."""

    name: str
    workload: str
    overrides: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)
    """Values on top of `overrides` with ``--quick``."""
    training: tuple[str, ...] = ()
    """Options of the training alone: where real programs read one format in several ways."""

    def settings(self, quick: bool) -> dict[str, Any]:
        return {**self.overrides, **(self.quick if quick else {})}


def _of_format(name: str, files: int, samples: int, **keys: Any) -> Case:
    """Return a case for a format: files of some samples each, read in random order by PyTorch's loader."""
    return Case(
        f"format-{name}", "resnet50-vast",
        {"dataset.format": name, "dataset.num_files_train": files, "dataset.num_samples_per_file": samples,
         "reader.read_threads": 2, "reader.batch_size": 4, **{f"dataset.{k}": v for k, v in keys.items()}},
        {"dataset.num_files_train": max(1, files // 4)},
    )  # fmt: skip


CASES = (
    # JPEG files, worker processes, shuffled.
    Case(
        "resnet50-vast",
        "resnet50-vast",
        {"dataset.num_files_train": 512, "reader.read_threads": 2},
        {"dataset.num_files_train": 96},
    ),
    # TFRecord files, threads, transfers of 256 KB. DLIO reads some files of the next epoch ahead and throws
    # them away at the end of each, so an epoch must not be much shorter than this.
    Case(
        "cosmoflow-vast",
        "cosmoflow-vast",
        {"dataset.num_files_train": 256, "reader.read_threads": 2, "reader.computation_threads": 2,
         "train.epochs": 2},
        {"dataset.num_files_train": 96, "train.epochs": 1},
    ),
    _of_format("png", 256, 1),
    _of_format("npz", 128, 1, record_length_bytes=1 << 20),
    _of_format("npy", 128, 1, record_length_bytes=1 << 20),
    _of_format("hdf5", 32, 8, record_length_bytes=1 << 20),
    _of_format("csv", 32, 8, record_length_bytes=1 << 14),
    # Megatron core opens the data file for each sample, as DLIO does; fairseq keeps it open.
    _of_format("indexed_binary", 8, 64),
    replace(
        _of_format("indexed_binary", 8, 64),
        name="format-indexed_binary-kept-open",
        training=("--keep-open",),
    ),
    _of_format("mmap_indexed_binary", 8, 64),
    _of_format("parquet", 16, 512, record_length_bytes=1 << 13, **{"parquet.row_group_size": 256}),
    _of_format("synthetic", 128, 1),
)  # fmt: skip


def known() -> list[str]:
    return [case.name for case in CASES]
