"""What a loader is to the training loop, and the reading that all of them do."""

from __future__ import annotations

import resource
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tiercel.clock import now
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.dataset import Split
from tiercel.dl.kernel.draw import drawing, wait
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.formats import Format, Opened
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.order import Order, order_of
from tiercel.dl.kernel.spans import Pairs
from tiercel.dl.kernel.spec import Spec

#: What a loader gives for a step: samples, and their bytes.
Batch = tuple[int, int]

_READERS = {"npz": "NPZReader", "npy": "NPYReader", "hdf5": "HDF5Reader", "hdf5_opt": "HDF5Reader",
            "csv": "CSVReader", "jpeg": "ImageReader", "png": "ImageReader", "tfrecord": "TFReader",
            "indexed_binary": "IndexedBinaryReader", "mmap_indexed_binary": "IndexedBinaryMMapReader",
            "parquet": "ParquetReader", "synthetic": "SyntheticReader"}  # fmt: skip


@dataclass
class Usage:
    """What reading took: bytes, calls, opened files, spans of time in I/O, seconds of each request and
    requests sent again (object storage), CPU seconds of the readers."""

    bytes: int = 0
    reads: int = 0
    opens: int = 0
    spans: Pairs = field(default_factory=list)
    requests: array[float] = field(default_factory=lambda: array("d"))
    retries: int = 0
    cpu: float = 0.0

    def add(self, other: Usage) -> None:
        self.bytes += other.bytes
        self.reads += other.reads
        self.opens += other.opens
        self.spans += other.spans
        self.requests += other.requests
        self.retries += other.retries
        self.cpu += other.cpu


@dataclass(frozen=True)
class Work:
    """What a loader has to read."""

    spec: Spec
    split: Split
    handler: Format
    comm: Comm
    calls: IO
    nonce: int
    packed_bytes: float = 0.0
    """Of formats that compress: least bytes of a sample on the storage (0: as many as in memory)."""

    def owed(self, epoch: int, samples: int, content: int) -> int:
        """Return the bytes that must have come from the storage for `samples` of `content` bytes in an epoch.

        An epoch that reads less measures memory of our own, and not the storage.
        """
        if not self.spec.reads_files or (self.spec.memory and epoch > 1):
            return 0
        return int(samples * self.packed_bytes) if self.packed_bytes else content

    @cached_property
    def order(self) -> Order:
        """The order in which this process reads."""
        return order_of(self.spec, self.split, self.comm, self.nonce)

    @property
    def batch(self) -> int:
        return self.spec.batch if self.split.name == "train" else self.spec.batch_eval

    @property
    def reader(self) -> str:
        """The reader's name in traces, as DLIO's."""
        return _READERS[self.spec.format]


class Loader(ABC):
    """Gives batches, as bytes read for each; the samples themselves stay where they were read."""

    def __init__(self, work: Work) -> None:
        self.work = work

    @abstractmethod
    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        """Yield `steps` batches of epoch `number` (1, 2, ...). Files are closed when it ends."""

    def usage(self) -> Usage:
        """Return what was read since the last call."""
        return Usage(*self.work.calls.take())

    @abstractmethod
    def close(self) -> None:
        """End the reader processes or threads."""


class Reading:
    """Reads samples by number, in one thread or process."""

    def __init__(self, work: Work, calls: IO, seed: str) -> None:
        self._work, self._calls = work, calls
        # An index sampler asks for any sample at any time, and opens its file for it; an iterative one stays
        # with a file until its next. Samples of a file that was read to memory cost nothing any more.
        self._all = work.spec.memory or work.handler.kept_open
        self._keep = self._all or work.spec.sampler == "iterative" or work.spec.access != "multi"
        self._open: dict[int, Opened | Remembered] = {}
        self._preprocess = drawing(work.spec.preprocess, f"{work.spec.seed}:preprocess:{seed}")

    def move_to(self, calls: IO, seed: str) -> None:
        """Go on in a forked process, with what is in memory."""
        self._calls = calls
        self._preprocess = drawing(self._work.spec.preprocess, f"{self._work.spec.seed}:preprocess:{seed}")

    def batch(self, samples: Sequence[int]) -> int:
        """Read samples (numbers as `Order.samples` returns them) and return their bytes."""
        return sum(self.sample(number) for number in samples)

    def sample(self, number: int) -> int:
        began = now()
        file, sample = divmod(number, self._work.split.per_file)
        opened = self._open.get(file)
        if opened is None:
            opened = self._opened(file)
        try:
            size = opened.read(sample)
        except OSError as error:
            path = self._work.split.paths[file]
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        if not self._keep:
            opened.close()
        wait(self._preprocess())
        if self._calls.tracer:
            self._calls.span(f"{self._work.reader}.read_index", "reader", began, {"image_idx": number})
        return size

    def remember(self, files: Sequence[int]) -> None:
        """Read whole files into memory."""
        for file in files:
            self._opened(file)

    def _opened(self, file: int) -> Opened | Remembered:
        work, path = self._work, self._work.split.paths[file]
        began = now()
        try:
            whole = work.handler.open(path, work.spec, self._calls)
            self._calls.span(f"{work.reader}.open", "reader", began)
            opened: Opened | Remembered = (
                Remembered(whole, work.split.per_file) if work.spec.memory else whole
            )
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        if self._keep:
            if not self._all:
                self.close()
            self._open[file] = opened
        return opened

    def end_epoch(self) -> None:
        """Close what is open (many formats hold a file's content until then): the next epoch reads anew."""
        if not self._work.spec.memory:
            self.close()

    def close(self) -> None:
        for opened in self._open.values():
            opened.close()
        self._open.clear()


class Remembered:
    """A file of which every sample was read, once."""

    def __init__(self, opened: Opened, samples: int) -> None:
        self._sizes = [opened.read(sample) for sample in range(samples)]
        opened.close()

    def read(self, sample: int) -> int:
        return self._sizes[sample]

    def close(self) -> None:
        pass


def batches(work: Work, epoch: int, steps: int) -> list[Sequence[int]]:
    """Return the sample numbers of each step of this process."""
    mine = work.order.samples(epoch)
    size = work.batch
    return [mine[n * size : (n + 1) * size] for n in range(steps)]


def memory_files(work: Work, epoch: int) -> list[int]:
    """Return the files that a process reads into memory before the first step."""
    mine = work.order.samples(epoch)
    return sorted({number // work.split.per_file for number in mine})


def cpu_seconds() -> float:
    """Return user and system CPU time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def guarded(work: Callable[[], None], report: Callable[[Exception], None]) -> Callable[[], None]:
    """Return `work` as the body of a thread that reports what went wrong instead of dying unseen."""

    def body() -> None:
        try:
            work()
        except Exception as error:  # handed to the thread that waits
            report(error)

    return body
