"""Where the data of a single run lies: in the folder that is named, or where the workload file says."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tiercel.dl.files.dataset import Dataset
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Checkpoint, Storage
from tiercel.dl.kernel.folder import Files, Folder
from tiercel.dl.kernel.generate import MANIFEST, holds_files
from tiercel.errors import UserError
from tiercel.s3.endpoint import Location, endpoint_of, is_url
from tiercel.s3.errors import S3Error


@dataclass(frozen=True)
class Places:
    """Folders of a run's dataset and checkpoints."""

    dataset: Path | Location
    checkpoints: Path | Location

    @property
    def has_dataset(self) -> bool:
        """Return whether files of a dataset are there already."""
        return holds_dataset(self.dataset)


def holds_dataset(place: Path | Location) -> bool:
    """Return whether `place` is that of a dataset: one made by `tiercel dl generate`, or by DLIO.

    UserError where a server of objects does not say.
    """
    try:
        folder = _folder(place)
        return folder.text(MANIFEST) is not None or holds_files(folder)
    except S3Error as error:
        raise UserError(f"{place}: {error.strerror}") from None


def objects_of(workload: DLWorkload, folder: str | None) -> Location | None:
    """Return where in object storage the data of a run lies; None where it lies in a folder.

    `folder` is what the user named: a folder, s3://BUCKET/PREFIX, or nothing, which leaves it to the file.
    Raises UserError for a name that cannot be.
    """
    storage, named = workload.storage, folder
    if folder is None and storage.storage_type == "s3":
        root = storage.storage_root
        named = root if is_url(root) else f"s3://{'' if root == Storage().storage_root else root}"
    if named is None or not is_url(named):
        return None
    told = storage.storage_options
    try:
        return Location.parse(named, endpoint_of(
            told.endpoint_url, told.region, told.s3_force_path_style, told.s3_max_attempts
        ))  # fmt: skip
    except ValueError as error:
        key = "--folder" if folder is not None else "storage"
        raise UserError(f"{key}: {error}") from None


def places_of(workload: DLWorkload, folder: Path | Location, here: Path | None = None) -> Places:
    """Return where a workload's data lies.

    `folder` is on the storage under test. It may be the dataset's own. Otherwise the file's
    `storage.storage_root`, `dataset.data_folder` and `checkpoint.checkpoint_folder` lie below it, or where
    they say where they are absolute. With `here`, the folder of the command where nobody named another, a
    dataset that lies there is taken. In object storage `folder` has the file's bucket already.
    """
    checkpoints = workload.checkpoint.checkpoint_folder
    kept = "checkpoints" if checkpoints == Checkpoint().checkpoint_folder else checkpoints
    if isinstance(folder, Location):
        return _in_bucket(workload, folder, kept, own=here is not None)
    kept = "checkpoints" if is_url(kept) else kept
    points = inside(folder, kept, "checkpoint.checkpoint_folder")
    if holds_dataset(folder):
        return Places(folder, points)
    data = workload.dataset.data_folder
    root = _root(workload)
    unsaid = data == Dataset().data_folder and not root
    stated = None if is_url(data) or unsaid else Path(root) / data
    if here is not None and stated is not None and holds_dataset(here / stated):
        return Places((here / stated).resolve(), points)
    return Places(inside(folder, stated or "dataset", "dataset.data_folder").resolve(), points)


def inside(folder: Path, named: str | Path, key: str) -> Path:
    """Return what `key` of a workload file names, below `folder` where it is relative.

    UserError where it leads out of the folder: there it would stay, and nobody named that place.
    """
    path = Path(os.path.normpath(folder / named))
    if not Path(named).is_absolute() and not path.is_relative_to(os.path.normpath(folder)):
        raise UserError(f"{key}: {named} leads out of {folder}: name another --folder, or an absolute path")
    return path


def _in_bucket(workload: DLWorkload, folder: Location, kept: str, own: bool) -> Places:
    """Return the places in object storage; `own`: the file itself named bucket and prefix."""
    data = workload.dataset.data_folder
    for key, named in (("dataset.data_folder", data), ("checkpoint.checkpoint_folder", kept)):
        if not is_url(named) and ".." in named.split("/"):
            raise UserError(f"{key}: {named}: no .. in the names of objects")
    if own and is_url(data):
        dataset = Location.parse(data, folder.endpoint)
    elif holds_dataset(folder):
        dataset = folder
    elif is_url(data) or data == Dataset().data_folder:
        dataset = folder / "dataset"
    else:
        dataset = folder / data
    if is_url(kept):
        return Places(dataset, Location.parse(kept, folder.endpoint) if own else folder / "checkpoints")
    return Places(dataset, folder / kept)


def _folder(place: Path | Location) -> Folder:
    if isinstance(place, Path):
        return Files(str(place))
    from tiercel.dl.kernel.objects import Objects  # noqa: PLC0415 (TLS and XML take a while to import)

    return Objects(place)


def _root(workload: DLWorkload) -> str:
    storage = workload.storage
    return "" if storage.storage_root == Storage().storage_root or storage.storage_type == "s3" else (
        storage.storage_root
    )  # fmt: skip
