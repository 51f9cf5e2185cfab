"""Makes a dataset: the files are shared out over the processes, and are the same for every number of them.
Where each node has storage of its own (`makers`), each gets a whole one.

A file gets its name when it is whole, so an interrupted generation goes on where it stopped. ``dataset.json``
in the data folder says what was generated, so that a dataset for other parameters is never read by mistake.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import file_count, file_spec, path_of
from tiercel.dl.kernel.folder import LARGE, Folder
from tiercel.dl.kernel.formats import Format
from tiercel.dl.kernel.formats.indexed_binary import OFFSETS, SIZES
from tiercel.dl.kernel.makers import Makers
from tiercel.dl.kernel.spec import Spec

MANIFEST = "dataset.json"
SPLITS = ("train", "valid")


@dataclass(frozen=True)
class Generated:
    """What one process made: files and bytes, those found whole already, seconds up to durable."""

    files: int
    bytes: int
    kept: int
    seconds: float


def generate(spec: Spec, handler: Format, folder: Folder, comm: Comm, makers: Makers) -> Generated:
    """Make what of the dataset is not there yet; returns on all processes when all of it is durable.

    Raises Failure for a folder that holds another dataset, and for a disk that is full.
    """
    began = now()
    if makers.index == 0:
        _prepare(spec, folder)
    comm.barrier()
    files = size = kept = 0
    small = False
    every = [(split, n) for split in SPLITS for n in range(file_count(spec, split))]
    for split, number in makers.share(every):
        file = file_spec(spec, split, number)
        path = folder.path(file.path)
        try:
            if folder.exists(path):
                kept += 1
                continue
            length = folder.write(path, partial(handler.write, file=file, spec=spec))
        except OSError as error:
            raise Failure(f"{path}: cannot be generated: {error.strerror or error}") from None
        files, size, small = files + 1, size + length, small or length < LARGE
    try:
        folder.settle(any(comm.gather(small)) and comm.local_rank == 0)
    except OSError as error:
        raise Failure(f"{folder}: cannot be generated: {error.strerror or error}") from None
    comm.barrier()
    return Generated(files, size, kept, now() - began)


def _prepare(spec: Spec, folder: Folder) -> None:
    try:
        folder.make()
        known = read_manifest(folder)
        if known is None and holds_files(folder):
            raise Failure(
                f"{folder}: holds files that were not generated here: choose an empty folder, or set "
                "workflow.generate_data to false to read them"
            )
        if known is not None and known.key != spec.dataset_key():
            raise Failure(f"{folder}: holds another dataset ({MANIFEST}): remove it or choose another folder")
        for split in SPLITS:
            folder.make(split)  # DLIO looks into both, even where it does not evaluate
            for number in range(file_count(spec, split)):
                folder.make(path_of(spec, split, number).rpartition("/")[0])
                if (spec.subfolders if split == "train" else spec.subfolders_eval) <= 1:
                    break
        manifest = {"dataset": spec.dataset_key(), "seed": spec.data_seed, "name": spec.name,
                    "format": spec.format}  # fmt: skip
        folder.put_text(MANIFEST, json.dumps(manifest))
    except OSError as error:
        raise Failure(f"{folder}: cannot be written: {error.strerror}") from None


def holds_files(folder: Folder) -> bool:
    """Return whether there is something in the folder of a split."""
    return any(folder.holds(split) for split in SPLITS)


@dataclass(frozen=True)
class Manifest:
    """Which dataset was generated in a folder (see `Spec.dataset_key`), and by which seed."""

    key: str
    seed: int


def read_manifest(folder: Folder) -> Manifest | None:
    """Return what was generated in `folder`, None where nothing says so."""
    text = folder.text(MANIFEST)
    try:
        content = json.loads(text or "")
        return Manifest(str(content["dataset"]), int(content["seed"]))
    except (ValueError, KeyError, TypeError):
        return None


def remove(folder: Folder) -> None:
    """Remove a dataset. Failure where that cannot be done."""
    try:
        folder.remove(SPLITS, MANIFEST)
    except OSError as error:
        raise Failure(f"{error.filename or folder}: cannot be removed: {error.strerror}") from None


def companions(path: str, spec: Spec) -> list[str]:
    """Return the files that belong to a data file, itself included."""
    if spec.format in ("indexed_binary", "mmap_indexed_binary"):
        return [path, path + OFFSETS, path + SIZES]
    return [path]
