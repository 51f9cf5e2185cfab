"""Where the data of a single run lies: in the folder that is named, or where the workload file says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiercel.dl.kernel.generate import MANIFEST, holds_files
from tiercel.study.deep_learning.dataset import Dataset
from tiercel.study.deep_learning.model import DLWorkload
from tiercel.study.deep_learning.parts import Checkpoint, Storage


@dataclass(frozen=True)
class Places:
    """Folders of a run's dataset and checkpoints."""

    dataset: Path
    checkpoints: Path

    @property
    def has_dataset(self) -> bool:
        """Return whether files of a dataset are there already."""
        return holds_dataset(self.dataset)


def holds_dataset(folder: Path) -> bool:
    """Return whether `folder` is that of a dataset: one made by `tiercel dl generate`, or by DLIO."""
    return (folder / MANIFEST).exists() or holds_files(folder)


def places_of(workload: DLWorkload, folder: Path, here: Path | None = None) -> Places:
    """Return where a workload's data lies.

    `folder` is on the storage under test. It may be the dataset's own. Otherwise the file's
    `storage.storage_root`, `dataset.data_folder` and `checkpoint.checkpoint_folder` lie below it, or where
    they say where they are absolute. With `here`, the folder of the command where nobody named another, a
    dataset that lies there is taken.
    """
    data = workload.dataset.data_folder
    stated = None if data == Dataset().data_folder else Path(_root(workload)) / data
    checkpoints = workload.checkpoint.checkpoint_folder
    kept = "checkpoints" if checkpoints == Checkpoint().checkpoint_folder else checkpoints
    if holds_dataset(folder):
        return Places(folder, folder / kept)
    if here is not None and stated is not None and holds_dataset(here / stated):
        return Places((here / stated).resolve(), folder / kept)
    return Places((folder / (stated or "dataset")).resolve(), folder / kept)


def _root(workload: DLWorkload) -> str:
    root = workload.storage.storage_root
    return "" if root == Storage().storage_root else root
