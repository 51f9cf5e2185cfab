"""What a dataset held when it was made: digests of a sample of its files, and the comparison before training.

Most formats hold no checksums, so a file whose bytes changed reads as well as before. Recorded are up to
`SAMPLE` files of each split, evenly spread; of a large one pieces that are evenly spread. They are read back
when the dataset is done, so only a dataset that is to stay is recorded (see `generate`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.folder import Folder
from tiercel.dl.kernel.io import IO

#: Files of a split of which digests are recorded.
SAMPLE = 64
#: Bytes up to which a file's digest is of all of it.
WHOLE = 16 << 20
#: Of a larger one: so many pieces of so many bytes, the first and the last of the file among them.
_PIECES, _PIECE = 256, 64 << 10
#: Bytes that one process compares before training; its first file is compared whatever it has.
_BUDGET = 64 << 20

Contents = Mapping[str, str]
"""Digests by the paths of files below the dataset's folder."""


def sampled(count: int) -> range:
    """Return the numbers of the files that are recorded, of `count`."""
    return range(0, count, -(-count // SAMPLE) or 1)


def digest(folder: Folder, path: str, calls: IO) -> tuple[str, int]:
    """Return the digest of a file's length and content, and the bytes that were read for it."""
    size = folder.size(path)
    descriptor = calls.open(path, way="whole" if size <= WHOLE else "ranges")
    try:
        found, done = hashlib.sha256(size.to_bytes(8, "little")), 0
        buffer = memoryview(bytearray(_PIECE))
        for first, length in _pieces(size):
            place, end = first, first + length
            while place < end and (got := calls.pread(descriptor, path, buffer[: end - place], place)):
                found.update(buffer[:got])
                place, done = place + got, done + got
        return found.hexdigest()[:32], done
    finally:
        calls.close(descriptor, path)


def record(folder: Folder, paths: Iterable[str]) -> dict[str, str]:
    """Return the digests of files by their paths below `folder`. OSError where one cannot be read."""
    calls = folder.calls()
    return {path: digest(folder, folder.path(path), calls)[0] for path in paths}


def compare(folder: Folder, known: Contents, mine: Iterable[str], manifest: str) -> None:
    """Compare files (paths below `folder`) with what is known of them, as far as a process' share of time
    goes; Failure for one that has changed since."""
    calls, left = folder.calls(), _BUDGET
    for below in _latest_first(folder, (path for path in mine if path in known)):
        if left <= 0:
            return
        path = folder.path(below)
        try:
            found, done = digest(folder, path, calls)
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        left -= done
        if found != known[below]:
            raise Failure(
                f"{path}: its content has changed since it was generated ({manifest}): remove it, and "
                "generate the dataset again"
            )


def _latest_first(folder: Folder, paths: Iterable[str]) -> list[str]:
    """Return files in the order in which they were written, the last first: who changes one writes it."""
    return sorted(paths, key=lambda path: (-folder.written(folder.path(path)), path))


def _pieces(size: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of what is digested of a file of `size` bytes."""
    if size <= WHOLE:
        yield from ((n, min(_PIECE, size - n)) for n in range(0, size, _PIECE))
        return
    last = size - _PIECE
    yield from ((last * n // (_PIECES - 1), _PIECE) for n in range(_PIECES))
