"""What a format is to the rest of dlkernel: it writes a file, checks one, and reads samples from one."""

from __future__ import annotations

import importlib.util
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec

#: Bytes of one read where neither the workload nor the format's usual library says: numpy's and tf.data's.
TRANSFER = 256 * 1024


class Opened(ABC):
    """An open file of samples."""

    @abstractmethod
    def read(self, sample: int) -> int:
        """Read sample `sample` of the file, check it, and return its bytes. Failure for a damaged one."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""


class Format(ABC):
    """One format."""

    streams: bool = False
    """Whether samples come in the order of the file only (see `stream`)."""
    in_groups: bool = False
    """Whether it is read in groups of samples, several at once (see `loaders.groups`)."""
    kept_open: bool = False
    """Whether a reader keeps each file open until the epoch ends, whatever the sampler."""
    library: str | None = None
    """The Python package that it needs."""

    def packs(self, spec: Spec) -> bool:
        """Return whether a sample may have fewer bytes in the file than in memory."""
        return spec.compression != "none"

    def missing(self) -> str | None:
        """Return the package that is needed and not installed, or None."""
        if self.library and importlib.util.find_spec(self.library) is None:
            return {"PIL": "Pillow"}.get(self.library, self.library)
        return None

    def prepare(self) -> None:  # noqa: B027 (most formats need none)
        """Import the libraries that reading needs, so that the first step does not pay for that."""

    @abstractmethod
    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        """Write a whole file."""

    @abstractmethod
    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        """Open a file to read samples in any order. Failure for one that is no such file."""

    def stream(self, path: str, spec: Spec, calls: IO) -> Iterator[tuple[int, int]]:
        """Yield (samples, bytes of each) as they come, in the order of the file (formats that stream)."""
        raise NotImplementedError

    def expected_size(self, file: FileSpec, spec: Spec) -> int | None:
        """Return the bytes of the file that `write` makes, None where only writing tells."""
        return None

    @abstractmethod
    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        """Return samples in a file and bytes of each, read from its headers; None for what is not there.

        `path` may be an object's: everything of it is asked through `calls`.
        """


registered: dict[str, type[Format]] = {}
F = TypeVar("F", bound=type[Format])


def register(*names: str) -> Callable[[F], F]:
    """Return a decorator that files a format under its names."""

    def file(kind: F) -> F:
        for name in names:
            registered[name] = kind
        return kind

    return file


def create(path: str) -> int:
    """Open a new file for writing; Failure where that cannot be done."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from None


def write_all(descriptor: int, pieces: Iterable[bytes | memoryview]) -> None:
    """Write all pieces, a thousand at a time, with no copy."""
    todo = [memoryview(p) for p in pieces if len(p)]
    place = 0
    while place < len(todo):
        batch = todo[place : place + 512]
        done = os.writev(descriptor, batch)
        while done and place < len(todo):
            length = len(todo[place])
            if done >= length:
                done -= length
                place += 1
            else:
                todo[place] = todo[place][done:]
                done = 0


class Whole(Opened):
    """A file whose samples were all read on opening it."""

    def __init__(self, path: str, samples: int, sample_bytes: int) -> None:
        self._path, self._samples, self._bytes = path, samples, sample_bytes

    def read(self, sample: int) -> int:
        if sample >= self._samples:
            raise Failure(f"{self._path}: sample {sample} is not there: it holds {self._samples}")
        return self._bytes

    def close(self) -> None:
        pass
