"""The dataset as it lies there: found, and compared with the workload."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.contents import compare
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import extension, file_count, file_spec, path_of
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.formats import Format
from tiercel.dl.kernel.generate import MANIFEST, companions, read_manifest
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec

#: Files that each process looks into: headers where sizes alone do not tell, and samples of what was there.
_LOOK_AT = 4
#: Share by which a sample of foreign files may differ from the workload's (their shape is drawn).
_TOLERANCE = 0.02


@dataclass(frozen=True)
class Split:
    """Files of one split (train, valid), in order; the same on all processes."""

    name: str
    paths: tuple[str, ...]
    per_file: int
    there: int = 0
    """Files that lie there: more than are used where the dataset is larger."""

    @property
    def samples(self) -> int:
        return len(self.paths) * self.per_file


def find(spec: Spec, folder: Folder, comm: Comm, split: str) -> Split:
    """Return a split of the dataset in `folder`: of a larger one the first files, as DLIO takes them.

    Failure where files are missing.
    """
    count = file_count(spec, split)
    if not spec.reads_files:
        return Split(split, tuple(path_of(spec, split, n) for n in range(count)), spec.per_file)
    paths, there = list[str](), 0
    problem = ""
    if comm.rank == 0:  # one process looks, the others are told
        try:
            paths, there = _listed(spec, folder, split)
        except Failure as failure:
            problem = str(failure)
    problem, paths, there = comm.gather((problem, paths, there))[0]
    if problem:
        raise Failure(problem)
    return Split(split, tuple(_trimmed(spec, split, paths, comm.size)), spec.per_file, there)


def _trimmed(spec: Spec, split: str, paths: list[str], processes: int) -> list[str]:
    """Return the files that DLIO's main branch keeps, so that all processes have as many steps.

    As in its ``main.py`` it counts files where it should count samples; where that leaves no file, which DLIO
    trains on, all are kept.
    """
    if spec.order != "dlio-main":
        return paths
    unit = spec.per_file * (spec.batch if split == "train" else spec.batch_eval) * processes
    return paths[: len(paths) // unit * unit or len(paths)]


def _listed(spec: Spec, folder: Folder, split: str) -> tuple[list[str], int]:
    """Return the files to use, and how many there are."""
    where, count, ending = folder.path(split), file_count(spec, split), "." + extension(spec)
    known = read_manifest(folder)
    if known is not None and not known.serves(spec):
        raise Failure(
            f"{folder}: holds a dataset of other parameters than the workload ({MANIFEST}): generate it anew "
            "in an empty folder, or name the right one"
        )
    try:
        found = folder.files(split, ending)
    except OSError as error:
        raise Failure(f"{where}: cannot be read: {error.strerror}") from None
    # Of a dataset that we made all files must be there; one of others has as many as it has.
    made = {"train": known.files, "valid": known.files_eval}[split] if known and known.files else count
    if len(found) < made or len(found) < count:
        key = "num_files_train" if split == "train" else "num_files_eval"
        there = f"{len(found)} files" if found or folder.holds(split) else "no such folder"
        says = f"dataset.{key} says {count}" if made == count else f"{made} were generated ({MANIFEST})"
        raise Failure(f"{where}: {there} where {says} (*{ending}): generate the dataset")
    if known is not None and len(found) > made:
        raise Failure(f"{where}: {len(found)} files where {made} were generated ({MANIFEST})")
    if len(found) > count:
        # DLIO's order: by names alone, whatever the subfolders.
        return sorted(found, key=lambda path: (path.rpartition("/")[2], path))[:count], len(found)
    numbered = [folder.path(path_of(spec, split, n)) for n in range(count)]
    # which need not be the alphabetical order
    return numbered if set(numbered) == set(found) else found, len(found)


def check(spec: Spec, handler: Format, split: Split, folder: Folder, comm: Comm) -> int | None:
    """Compare this process' share of the files with the workload; Failure that names the first wrong one.

    Every size is compared where the workload determines it; headers of some files where it does not. Returns
    the bytes of the smallest data file of the share, None where it is empty.
    """
    if not spec.reads_files:
        return None
    smallest: int | None = None
    known = read_manifest(folder)
    ours = known is not None and known.serves(spec)
    looked = 0
    for number in range(comm.rank, len(split.paths), comm.size):
        path = split.paths[number]
        file = file_spec(spec, split.name, number)
        expected = handler.expected_size(file, spec) if ours or not spec.stdev else None
        try:
            sizes = [folder.size(p) for p in companions(path, spec)]
        except OSError as error:
            raise Failure(f"{error.filename or path}: {error.strerror}") from None
        if min(sizes) == 0:
            raise Failure(f"{path}: is empty")
        smallest = min(sizes[0], smallest or sizes[0])
        if expected is not None and sizes[0] != expected:
            raise Failure(f"{path}: has {sizes[0]} bytes where the workload's samples make {expected}")
        if expected is None and looked < _LOOK_AT:
            looked += 1
            _look(spec, handler, path, folder.calls(), file.sample_bytes)
    return smallest


def read_some(spec: Spec, handler: Format, split: Split, folder: Folder, comm: Comm) -> None:
    """Read a sample of some files of this process' share as training would, and compare recorded files with
    what they held; Failure for a damaged one."""
    if not spec.reads_files:
        return
    mine, alone, calls = split.paths[comm.rank :: comm.size], replace(spec, access="multi"), folder.calls()
    handler = type(handler)()  # one of its own: what it remembers is not for the epochs
    for path in mine[:: max(1, len(mine) // _LOOK_AT)][:_LOOK_AT]:
        try:
            if handler.streams:
                seen = next(iter(handler.stream(path, alone, calls)), (0, 0))[0]
                if not seen:
                    raise Failure(f"{path}: holds no sample")
                continue
            opened = handler.open(path, alone, calls)
            opened.read(split.per_file - 1)
            opened.close()
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
    known = read_manifest(folder)
    if known is not None and known.serves(spec):
        used = set(split.paths)
        files = {folder.path(path): path for path in sorted(known.contents)}
        recorded = [below for path, below in files.items() if _data_file(path, spec) in used]
        compare(folder, known.contents, recorded[comm.rank :: comm.size], MANIFEST)


def _data_file(path: str, spec: Spec) -> str:
    """Return the data file that a file belongs to (see `companions`)."""
    return next(
        path.removesuffix(one[1:]) for one in reversed(companions("x", spec)) if path.endswith(one[1:])
    )


def _look(spec: Spec, handler: Format, path: str, calls: IO, expected: int) -> None:
    try:
        samples, each = handler.describe(path, spec, calls)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
    if samples is not None and samples != spec.per_file:
        raise Failure(
            f"{path}: holds {samples} samples where dataset.num_samples_per_file says {spec.per_file}"
        )
    if each is not None and not spec.stdev and abs(each - expected) > _TOLERANCE * expected:
        raise Failure(f"{path}: its samples have {each} bytes where the workload says {expected}")


def steps_of(spec: Spec, split: Split, comm: Comm, by_files: bool) -> int:
    """Return the steps of an epoch, the same on all processes; Failure where there are too few samples."""
    batch = spec.batch if split.name == "train" else spec.batch_eval
    least = split.samples // comm.size
    if by_files and len(split.paths) >= comm.size:
        least = len(split.paths) // comm.size * split.per_file
    steps = least // batch
    if not steps:
        key = "batch_size" if split.name == "train" else "batch_size_eval"
        raise Failure(
            f"dataset: {split.samples} samples in {len(split.paths)} files are too few for {comm.size} "
            f"processes with reader.{key}: {batch}"
        )
    if split.name == "train" and spec.steps:
        return min(steps, spec.steps)
    return steps


def node_share(spec: Spec, split: Split, comm: Comm) -> list[str]:
    """Return the files whose cached pages this process sees to: the processes of a node share all files."""
    here = max(1, comm.size // comm.nodes)
    return [p for path in split.paths[comm.local_rank % here :: here] for p in companions(path, spec)]
