"""The workloads that are compared: those of paper 004 that a real training here reads too, made small."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A workload file with the values that make it small enough for any machine."""

    workload: str
    overrides: dict[str, Any] = field(default_factory=dict)
    quick: dict[str, Any] = field(default_factory=dict)
    """Values on top of `overrides` with ``--quick``."""

    def settings(self, quick: bool) -> dict[str, Any]:
        return {**self.overrides, **(self.quick if quick else {})}


CASES = (
    # JPEG files, worker processes, shuffled.
    Case(
        "resnet50-vast",
        {"dataset.num_files_train": 512, "reader.read_threads": 2},
        {"dataset.num_files_train": 96},
    ),
    # TFRecord files, threads, transfers of 256 KB. DLIO reads some files of the next epoch ahead and throws
    # them away at the end of each, so an epoch must not be much shorter than this.
    Case(
        "cosmoflow-vast",
        {"dataset.num_files_train": 256, "reader.read_threads": 2, "reader.computation_threads": 2,
         "train.epochs": 2},
        {"dataset.num_files_train": 96, "train.epochs": 1},
    ),
)  # fmt: skip


def known() -> list[str]:
    return [case.workload for case in CASES]
