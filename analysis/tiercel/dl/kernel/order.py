"""The order in which each process reads the samples of an epoch, as the program of that name does it.

The order decides what caches can do: a process that reads its files in the same order in every epoch gets
nothing from a cache that is smaller than them; one that draws new files for each epoch gets a part.

Sources: ``data_loader/torch_data_loader.py`` (dlio_sampler), ``reader/tf_reader.py`` and ``utils/config.py``
(reconfigure, build_sample_map_iter, _reshard_files) of DLIO 2.0.0, of DLIO's main branch (e1919d7, June 2026)
and of mlcommons/DLIO_local_changes (2a9cf78, version 3.0.2, and f6796ed, July 2026); PyTorch's
``torch/utils/data/distributed.py``.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.dataset import Split
from tiercel.dl.kernel.draw import NumpyRandom
from tiercel.dl.kernel.spec import Spec


class Order(ABC):
    """The order of one split on one process. Epochs count from 1."""

    def __init__(self, spec: Spec, split: Split, comm: Comm, nonce: int) -> None:
        self._spec, self._split, self._comm, self._nonce = spec, split, comm, nonce

    @abstractmethod
    def samples(self, epoch: int) -> array[int]:
        """Return this process' samples of an epoch, as file * samples in a file + sample."""

    @abstractmethod
    def files(self, epoch: int) -> Sequence[int]:
        """Return the files that this process streams in an epoch; all of them where they are too few."""

    def _dealt(self, files: Sequence[int]) -> Sequence[int]:
        """Return every n-th of `files`, n being the number of processes; all where they are too few."""
        return files[self._comm.rank :: self._comm.size] if len(files) >= self._comm.size else files

    def _block(self) -> range:
        """Return this process' run of consecutive samples, as long as the others'."""
        each = self._split.samples // self._comm.size
        return range(self._comm.rank * each, (self._comm.rank + 1) * each)

    def _seed(self, epoch: int) -> int:
        return self._spec.seed + (epoch if self._spec.seed_change_epoch else 0)


class DLIOMain(Order):
    """DLIO's main branch: only the iterative sampler shuffles (`file_shuffle`, `sample_shuffle`).

    PyTorch's loader and the reader of TFRecord files go through the sorted files in every epoch.
    """

    def samples(self, epoch: int) -> array[int]:
        return self._indexed(epoch) if self._spec.sampler == "index" else self._iterated(epoch)

    def files(self, epoch: int) -> Sequence[int]:
        # tf.data.Dataset.list_files(shuffle=False) sorts them, once for all epochs.
        return self._dealt(range(len(self._split.paths)))

    def _indexed(self, _epoch: int) -> array[int]:
        return array("q", self._block())

    def _iterated(self, epoch: int) -> array[int]:
        files, each, numbers = self._shuffled_files(epoch), self._split.per_file, array("q", self._block())
        if self._spec.sample_shuffle != "off":
            NumpyRandom(self._seed(epoch)).shuffle(numbers)
        first = self._comm.rank * (len(files) // self._comm.size % len(files))
        found = array("q")
        for position, number in enumerate(numbers):
            file = files[self._file_index(first, position // each, position)]
            found.append(file * each + self._in_file(position, number))
        return found

    def _file_index(self, first: int, nth: int, position: int) -> int:
        # As DLIO has it: from the second sample on, every process continues with the files from the
        # beginning, so that the processes read the same files.
        return nth % len(self._split.paths) if position else first

    def _in_file(self, position: int, _number: int) -> int:
        return position % self._split.per_file

    def _shuffled_files(self, epoch: int) -> list[int]:
        """Return the list of files after as many shuffles in place as epochs began."""
        files = list(range(len(self._split.paths)))
        if self._spec.file_shuffle == "off":
            return files
        for number in range(1, epoch + 1):
            draw = NumpyRandom(self._seed(number))
            if self._split.name != "train":  # the list of training files is shuffled first
                draw.shuffle(list(range(self._spec.files)))
            draw.shuffle(files)
        return files


class DLIO2(DLIOMain):
    """DLIO 2.0.0: each process keeps its files; PyTorch's sampler shuffles them in place in each epoch."""

    def _indexed(self, epoch: int) -> array[int]:
        numbers = array("q", self._block())
        if self._spec.sample_shuffle == "off":
            return numbers
        for number in range(1, self._uses(epoch) + 1):
            if self._spec.sample_shuffle == "seed":
                NumpyRandom(self._spec.seed).shuffle(numbers)
            else:
                random.Random(f"{self._nonce}:{self._comm.rank}:{number}").shuffle(numbers)
        return numbers

    def _in_file(self, _position: int, number: int) -> int:
        return number % self._split.per_file

    def _uses(self, epoch: int) -> int:
        """Return how often the loader has begun an epoch by then."""
        if self._split.name == "train":
            return epoch
        return (epoch - self._spec.eval_after) // max(1, self._spec.eval_every) + 1


class MLPerf3(DLIOMain):
    """MLPerf Storage's DLIO 3.0.2: as DLIO's main branch, but each process goes through files of its own."""

    def _file_index(self, first: int, nth: int, _position: int) -> int:
        return (first + nth) % len(self._split.paths)

    def _in_file(self, _position: int, number: int) -> int:
        return number % self._split.per_file


class MLPerf3Resharding(Order):
    """MLPerf Storage's DLIO since 19 June 2026: `file_shuffle` deals the files out anew before each epoch."""

    def samples(self, epoch: int) -> array[int]:
        each, files = self._split.per_file, self.files(epoch)
        least = len(self._split.paths) // self._comm.size * each
        numbers = array("q", range(least))
        if self._spec.sampler == "iterative" and self._spec.sample_shuffle != "off":
            NumpyRandom(self._seed(epoch)).shuffle(numbers)
            return array("q", (files[n // each] * each + number % each for n, number in enumerate(numbers)))
        return array("q", (files[n // each] * each + n % each for n in numbers))

    def files(self, epoch: int) -> Sequence[int]:
        shares = [
            list(range(rank, len(self._split.paths), self._comm.size)) for rank in range(self._comm.size)
        ]
        if self._spec.file_shuffle != "off":
            for number in range(1, epoch + 1):
                shares = self._resharded(shares, number)
        return shares[self._comm.rank]

    def _resharded(self, shares: list[list[int]], epoch: int) -> list[list[int]]:
        """Return the files of each process after every one has dealt its own out to all."""
        size = len(shares)
        received: list[list[int]] = [[] for _ in shares]
        for rank, files in enumerate(shares):
            NumpyRandom(self._seed(epoch)).shuffle(files)
            for place in range(size):
                received[place] += files[(place - rank) % size :: size]
        for rank, files in enumerate(received):
            NumpyRandom(self._spec.seed + epoch + 31 * rank).shuffle(files)
        return received


class DistributedSampler(Order):
    """A training by PyTorch's DistributedSampler: all samples are shuffled anew in each epoch and dealt out.

    Streamed files are shuffled in each epoch and dealt out likewise, as by WebDataset or tf.data's
    ``list_files``. The shuffles are not PyTorch's own: equal in distribution, not in the order drawn. Without
    `seed_change_epoch` every epoch has the same order, as in a training that never calls ``set_epoch``.
    """

    def samples(self, epoch: int) -> array[int]:
        spec, count, size = self._spec, self._split.samples, self._comm.size
        if spec.sampler == "iterative":
            return self._iterated(epoch)
        numbers = array("q", range(count))
        if spec.shuffles:
            self._generator("random" if "random" in spec.shuffles else "seed", epoch, "samples").shuffle(
                numbers
            )
        numbers += numbers[: -count % size]  # the first ones again, so that all processes have as many
        return numbers[self._comm.rank :: size]

    def files(self, epoch: int) -> Sequence[int]:
        numbers = list(range(len(self._split.paths)))
        if self._spec.file_shuffle != "off":
            self._generator(self._spec.file_shuffle, epoch, "files").shuffle(numbers)
        return self._dealt(numbers)

    def _iterated(self, epoch: int) -> array[int]:
        """Return the samples of this process' files, one file after the other, shuffled within each."""
        each, files = self._split.per_file, self.files(epoch)
        block: Iterable[int] = range(len(files) * each)
        if len(files) == len(self._split.paths):  # all processes go through all files
            block = self._block()
        numbers = array("q", (files[n // each] * each + n % each for n in block))
        if self._spec.sample_shuffle == "off":
            return numbers
        draw = self._generator(self._spec.sample_shuffle, epoch, f"samples {self._comm.rank}")
        shuffled = array("q")
        for _, group in groupby(list(numbers), key=lambda number: number // each):
            one = list(group)
            draw.shuffle(one)
            shuffled.extend(one)
        return shuffled

    def _generator(self, kind: str, epoch: int, purpose: str) -> random.Random:
        seed = self._nonce if kind == "random" else self._spec.seed
        return random.Random(f"{seed}:{epoch if self._spec.seed_change_epoch else 0}:{purpose}")


#: By the value of `reader.order`.
ORDERS: dict[str, type[Order]] = {
    "dlio-2.0": DLIO2,
    "dlio-main": DLIOMain,
    "mlperf-3.0": MLPerf3,
    "mlperf-3.0-resharding": MLPerf3Resharding,
    "distributed-sampler": DistributedSampler,
}


def order_of(spec: Spec, split: Split, comm: Comm, nonce: int) -> Order:
    """Return the order of `split` that the workload asks for; `nonce` is new in each run."""
    return ORDERS[spec.order](spec, split, comm, nonce)
