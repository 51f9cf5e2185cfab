"""Makes a dataset: the files are shared out over the processes, and are the same for every number of them.
Where each node has storage of its own (`makers`), each gets a whole one.

A file gets its name when it is whole, so an interrupted generation goes on where it stopped. ``dataset.json``
in the data folder says what was generated, so that a dataset for other parameters is never read by mistake.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.contents import Contents, record, sampled
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

    Where another run makes a dataset here it waits for that to end. What a sample of its files holds is
    recorded (see `contents`) where the dataset is to stay: where this run only generates, or finds all of it.

    Raises Failure for a folder that holds another dataset, and for a disk that is full.
    """
    with ExitStack() as stack:
        if makers.index == 0:
            try:
                folder.make()
            except OSError as error:
                raise Failure(f"{folder}: cannot be written: {error.strerror}") from None
            stack.enter_context(folder.alone())
        comm.barrier()  # what another run made meanwhile is found by all
        return _made(spec, handler, folder, comm, makers)


def _made(spec: Spec, handler: Format, folder: Folder, comm: Comm, makers: Makers) -> Generated:
    began = now()
    if makers.index == 0:
        _prepare(spec, folder)
    comm.barrier()
    size = kept = 0
    small, fresh = False, set[str]()
    every = [(split, n) for split in SPLITS for n in range(file_count(spec, split))]
    for split, number in makers.share(every):
        file = file_spec(spec, split, number)
        path = folder.path(file.path)
        try:
            if folder.exists(path):
                kept += 1
                continue
            length = folder.write(path, partial(handler.write, file=file, spec=spec))
        except FileNotFoundError:  # on a file system without locks
            raise Failure(
                f"{path}: was taken away while it was written: another run makes a dataset in this folder"
            ) from None
        except OSError as error:
            raise Failure(f"{path}: cannot be generated: {error.strerror or error}") from None
        fresh.add(file.path)
        size, small = size + length, small or length < LARGE
    try:
        folder.settle(any(comm.gather(small)) and comm.local_rank == 0)
    except OSError as error:
        raise Failure(f"{folder}: cannot be generated: {error.strerror or error}") from None
    comm.barrier()
    made = Generated(len(fresh), size, kept, now() - began)
    _record(spec, folder, comm, makers, fresh)
    return made


def _record(spec: Spec, folder: Folder, comm: Comm, makers: Makers, fresh: set[str]) -> None:
    """Add what the sampled files hold to the manifest; what is known of files not made now stays."""
    manifest = read_manifest(folder)
    known = dict(manifest.contents) if manifest else {}
    parts = [(first, made) for first, made in comm.gather((makers.first, fresh)) if first == makers.first]
    made = set[str]().union(*(part for _, part in parts))
    kept = {path: value for path, value in known.items() if path not in made}
    mine: dict[str, str] = {}
    if not (made and (spec.train or spec.evaluate or spec.checkpoint)):
        every = [path_of(spec, split, n) for split in SPLITS for n in sampled(file_count(spec, split))]
        files = [name for path in every for name in companions(path, spec)]
        try:
            mine = record(folder, makers.share([name for name in files if name not in kept]))
        except OSError as error:
            raise Failure(f"{error.filename or folder}: cannot be read: {error.strerror or error}") from None
    for first, part in comm.gather((makers.first, mine)):
        if first == makers.first:
            kept |= part
    if makers.index == 0 and kept != known:
        try:
            _write_manifest(spec, folder, kept)
        except OSError as error:
            if made:  # one that is only read may lie where nobody writes
                raise Failure(f"{folder}: cannot be written: {error.strerror}") from None
    comm.barrier()


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
        if known is None:
            _write_manifest(spec, folder, {})
    except OSError as error:
        raise Failure(f"{folder}: cannot be written: {error.strerror}") from None


def _write_manifest(spec: Spec, folder: Folder, contents: Contents) -> None:
    manifest = {"dataset": spec.dataset_key(), "seed": spec.data_seed, "name": spec.name,
                "format": spec.format, "each": spec.files_key(), "files": spec.files,
                "files_eval": spec.files_eval, "contents": dict(sorted(contents.items()))}  # fmt: skip
    folder.put_text(MANIFEST, json.dumps(manifest))


def holds_files(folder: Folder) -> bool:
    """Return whether there is something in the folder of a split."""
    return any(folder.holds(split) for split in SPLITS)


@dataclass(frozen=True)
class Manifest:
    """Which dataset was generated in a folder (see `Spec.dataset_key`), by which seed, and what it held.

    `each` is what its files are (`Spec.files_key`), `files` and `files_eval` how many.
    """

    key: str
    seed: int
    contents: Mapping[str, str] = field(default_factory=dict)
    each: str = ""
    files: int = 0
    files_eval: int = 0

    def serves(self, spec: Spec) -> bool:
        """Return whether the dataset is the workload's, or a larger one: its first files are taken then."""
        enough = self.files >= spec.files and self.files_eval >= spec.files_eval
        return self.key == spec.dataset_key() or (self.each == spec.files_key() and enough)


def read_manifest(folder: Folder) -> Manifest | None:
    """Return what was generated in `folder`, None where nothing says so."""
    text = folder.text(MANIFEST)
    try:
        content = json.loads(text or "")
        contents = {str(path): str(value) for path, value in content.get("contents", {}).items()}
        counts = (int(content.get(name, 0)) for name in ("files", "files_eval"))
        return Manifest(
            str(content["dataset"]), int(content["seed"]), contents, str(content.get("each", "")), *counts
        )
    except (ValueError, KeyError, TypeError, AttributeError):
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
