"""Makes a dataset: the files are shared out over the processes, and are the same for every number of them.
Where each node has storage of its own (`makers`), each gets a whole one.

A file gets its name when it is whole, so an interrupted generation goes on where it stopped. ``dataset.json``
in the data folder says what was generated, so that a dataset for other parameters is never read by mistake.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from time import time

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import file_count, file_spec, path_of
from tiercel.dl.kernel.formats import Format
from tiercel.dl.kernel.formats.indexed_binary import OFFSETS, SIZES
from tiercel.dl.kernel.makers import Makers
from tiercel.dl.kernel.spec import Spec
from tiercel.pagecache import sync_filesystem

MANIFEST = "dataset.json"
SPLITS = ("train", "valid")
#: Files from this size on are synced one by one, and written back while the next is made.
_LARGE = 1 << 20


@dataclass(frozen=True)
class Generated:
    """What one process made: files and bytes, those found whole already, seconds up to durable."""

    files: int
    bytes: int
    kept: int
    seconds: float


def generate(spec: Spec, handler: Format, folder: Path, comm: Comm, makers: Makers) -> Generated:
    """Make what of the dataset is not there yet; returns on all processes when all of it is durable.

    Raises Failure for a folder that holds another dataset, and for a disk that is full.
    """
    began = time()
    if makers.index == 0:
        _prepare(spec, folder)
    comm.barrier()
    files = size = kept = 0
    large: list[str] = []
    every = [(split, n) for split in SPLITS for n in range(file_count(spec, split))]
    for split, number in makers.share(every):
        file = file_spec(spec, split, number)
        path = folder / file.path
        if path.exists():
            kept += 1
            continue
        part = f"{path}.part"
        try:
            handler.write(part, file, spec)
            length = Path(part).stat().st_size
            Path(part).rename(path)
            size += length
            if length >= _LARGE:
                large.append(str(path))
                _begin_writing_back(str(path))
        except OSError as error:
            raise Failure(f"{path}: cannot be generated: {error.strerror or error}") from None
        files += 1
    # The data must be durable before it can be evicted. Small files by the file system as a whole: a sync of
    # each of many thousands would take longer than the data.
    for name in large:
        _sync(name)
    small = comm.gather(files > len(large))
    if any(small) and comm.local_rank == 0:
        sync_filesystem(str(folder))
    comm.barrier()
    return Generated(files, size, kept, time() - began)


def _begin_writing_back(path: str) -> None:
    """Let the storage write a file while the next one is made (dropping dirty pages starts that)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prepare(spec: Spec, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = read_manifest(folder)
        if known is None and holds_files(folder):
            raise Failure(
                f"{folder}: holds files that were not generated here: choose an empty folder, or set "
                "workflow.generate_data to false to read them"
            )
        if known is not None and known.key != spec.dataset_key():
            raise Failure(f"{folder}: holds another dataset ({MANIFEST}): remove it or choose another folder")
        for split in SPLITS:
            (folder / split).mkdir(exist_ok=True)  # DLIO looks into both, even where it does not evaluate
            for number in range(file_count(spec, split)):
                (folder / path_of(spec, split, number)).parent.mkdir(parents=True, exist_ok=True)
                if (spec.subfolders if split == "train" else spec.subfolders_eval) <= 1:
                    break
        manifest = {"dataset": spec.dataset_key(), "seed": spec.data_seed, "name": spec.name,
                    "format": spec.format}  # fmt: skip
        text = json.dumps(manifest)
        (folder / f"{MANIFEST}.part").write_text(text)
        (folder / f"{MANIFEST}.part").rename(folder / MANIFEST)
    except OSError as error:
        raise Failure(f"{folder}: cannot be written: {error.strerror}") from None


def holds_files(folder: Path) -> bool:
    """Return whether there is something in the folder of a split."""
    return any((folder / split).is_dir() and any((folder / split).iterdir()) for split in SPLITS)


@dataclass(frozen=True)
class Manifest:
    """Which dataset was generated in a folder (see `Spec.dataset_key`), and by which seed."""

    key: str
    seed: int


def read_manifest(folder: Path) -> Manifest | None:
    """Return what was generated in `folder`, None where nothing says so."""
    try:
        content = json.loads((folder / MANIFEST).read_text())
        return Manifest(str(content["dataset"]), int(content["seed"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove(folder: Path) -> None:
    """Remove a dataset. Failure where that cannot be done."""
    try:
        for split in SPLITS:
            if (folder / split).is_dir():
                shutil.rmtree(folder / split)
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{error.filename or folder}: cannot be removed: {error.strerror}") from None


def companions(path: str, spec: Spec) -> list[str]:
    """Return the files that belong to a data file, itself included."""
    if spec.format in ("indexed_binary", "mmap_indexed_binary"):
        return [path, path + OFFSETS, path + SIZES]
    return [path]
