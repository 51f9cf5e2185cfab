"""Where a dataset or checkpoints lie: a folder of files, or a prefix in object storage (see `objects`)."""

from __future__ import annotations

import fcntl
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.makers import Makers, makers_of
from tiercel.dl.kernel.trace import Tracer
from tiercel.pagecache import Residency, evict, residency, sync_filesystem

#: Files from this size on are synced one by one, and written back while the next is made.
LARGE = 1 << 20
#: Held (flock) by whoever makes a dataset in a folder: two would write the same files.
_LOCK = ".generating"


class Folder(ABC):
    """A folder; `name` is its whole path. Paths of what is in it are whole too. Errors are OSErrors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def path(self, below: str) -> str:
        """Return the whole path of something below."""
        return f"{self.name}/{below}"

    @abstractmethod
    def calls(self, tracer: Tracer | None = None) -> IO:
        """Return the calls by which one process reads and writes what is in it."""

    def makers(self, comm: Comm) -> Makers:
        """Return with whom this process makes what lies here; all processes call this."""
        return Makers(comm.rank, comm.size)

    @abstractmethod
    def text(self, below: str) -> str | None:
        """Return the content of a small file, None where there is none."""

    @abstractmethod
    def put_text(self, below: str, text: str) -> None:
        """Write a small file, whole or not at all."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody else makes a dataset here, and keep others from it (not in object storage)."""
        yield

    @abstractmethod
    def make(self, below: str = "") -> None:
        """Make a folder below, and those above it."""

    @abstractmethod
    def holds(self, below: str) -> bool:
        """Return whether there is anything in a folder below."""

    @abstractmethod
    def files(self, below: str, ending: str) -> list[str]:
        """Return the paths of all files below a folder whose names end so, in order."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the bytes of a file."""

    def written(self, path: str) -> float:
        """Return when a file was last written (seconds since 1970); 0 where that is not to be had."""
        return 0.0

    def exists(self, path: str) -> bool:
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    @abstractmethod
    def write(self, path: str, write: Callable[[str], None]) -> int:
        """Make a file by a function that writes it where it is told, and return its bytes.

        The file has its name when it is whole.
        """

    @abstractmethod
    def settle(self, small: bool) -> None:
        """Make durable the large files that this process wrote; with `small`, all that anybody wrote."""

    @abstractmethod
    def remove(self, folders: Iterable[str], file: str) -> None:
        """Remove folders below, with all that is in them, and a file."""

    @abstractmethod
    def forget(self, paths: Iterable[str]) -> None:
        """Drop files from this machine's memory."""

    @abstractmethod
    def remembered(self, paths: Sequence[str]) -> Residency | None:
        """Return what of files is in this machine's memory; None where it keeps nothing of them."""


class Files(Folder):
    """A folder of a file system."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._large: list[str] = []

    def calls(self, tracer: Tracer | None = None) -> IO:
        return IO(tracer)

    def makers(self, comm: Comm) -> Makers:
        return makers_of(Path(self.name), comm)

    def text(self, below: str) -> str | None:
        try:
            return Path(self.path(below)).read_text()
        except OSError:
            return None

    def put_text(self, below: str, text: str) -> None:
        part = Path(self.path(f"{below}.part"))
        part.write_text(text)
        part.rename(self.path(below))

    @contextmanager
    def alone(self) -> Iterator[None]:
        path = self.path(_LOCK)
        held = _locked(path)
        try:
            yield
        finally:
            if held is not None:
                Path(path).unlink(missing_ok=True)
                os.close(held)

    def make(self, below: str = "") -> None:
        Path(self.name, below).mkdir(parents=True, exist_ok=True)

    def holds(self, below: str) -> bool:
        folder = Path(self.name, below)
        return folder.is_dir() and any(folder.iterdir())

    def files(self, below: str, ending: str) -> list[str]:
        return sorted(str(p) for p in Path(self.name, below).rglob(f"*{ending}") if p.is_file())

    def size(self, path: str) -> int:
        return Path(path).stat().st_size

    def written(self, path: str) -> float:
        try:
            return Path(path).stat().st_mtime
        except OSError:  # reading it says why
            return 0.0

    def write(self, path: str, write: Callable[[str], None]) -> int:
        part = f"{path}.part"
        try:
            write(part)
        except BaseException:  # of a full disk it holds what others may want
            with suppress(OSError):
                Path(part).unlink()
            raise
        length = Path(part).stat().st_size
        Path(part).rename(path)
        if length >= LARGE:
            self._large.append(path)
            _begin_writing_back(path)
        return length

    def settle(self, small: bool) -> None:
        # The data must be durable before it can be evicted. Small files by the file system as a whole: a sync
        # of each of many thousands would take longer than the data.
        for name in self._large:
            _sync(name)
        self._large.clear()
        if small:
            sync_filesystem(self.name)

    def remove(self, folders: Iterable[str], file: str) -> None:
        for below in folders:
            if Path(self.name, below).is_dir():
                shutil.rmtree(Path(self.name, below))
        Path(self.path(file)).unlink(missing_ok=True)

    def forget(self, paths: Iterable[str]) -> None:
        evict(paths)

    def remembered(self, paths: Sequence[str]) -> Residency | None:
        return residency(paths)


def _locked(path: str) -> int | None:
    """Return a descriptor that holds the lock `path`; None where there are no locks, or nobody may write."""
    while True:
        try:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.fstat(held).st_ino == Path(path).stat().st_ino:
                return held
        except FileNotFoundError:
            pass  # who held it has removed it: the next one is another file
        except OSError:
            os.close(held)
            return None
        os.close(held)


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
