"""Files read in their order, several at a time, as tf.data's TFRecordDataset with parallel reads.

Each of `read_threads` slots has a thread that reads one file after another; samples are taken from the slots
in turn, go through the shuffle buffer, and become batches. `computation_threads` threads prepare batches, and
`prefetch_size` of them wait for the training loop.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from tiercel.dl.kernel.draw import drawing, wait
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.loaders.base import Batch, Loader, Work, guarded
from tiercel.dl.kernel.loaders.lane import Ended, Lane

_Run = tuple[int, int]  # samples, bytes of each

#: Reads that wait in a slot: tf.data keeps two elements of each open file ready. A batch of small samples
#: would be as many reads as it has samples, and a run of few steps read several times what it trains on.
_AHEAD = 2


class Stream(Loader):
    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._lanes: list[Lane[_Run]] = []
        self._batches: Lane[tuple[int, Future[int] | int]] | None = None
        self._slots: list[threading.Thread] = []
        self._preprocess = drawing(work.spec.preprocess, f"{work.spec.seed}:preprocess:{work.comm.rank}")
        spec = work.spec
        self._pool = ThreadPoolExecutor(spec.compute_threads) if any(spec.preprocess.values()) and (
            spec.preprocess.get("mean") or spec.preprocess.get("type", "normal") != "normal"
        ) else None  # fmt: skip
        self._memory: dict[int, list[_Run]] = {}

    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        if self.work.spec.read_threads == 0:
            yield from self._directly(number, steps)
            return
        out: Lane[tuple[int, Future[int] | int]] = Lane(max(1, self.work.spec.prefetch))
        self._batches = out
        pipeline = threading.Thread(
            target=guarded(partial(self._produce, number, steps, out), out.fail), daemon=True
        )
        pipeline.start()
        for _ in range(steps):
            samples, batch = out.take()
            yield samples, batch if isinstance(batch, int) else batch.result()
        self._release()
        pipeline.join()
        for slot in self._slots:  # what one still reads is this epoch's
            slot.join()

    def close(self) -> None:
        self._release()
        if self._pool:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _release(self) -> None:
        if self._batches:
            self._batches.stop()
        for lane in self._lanes:
            lane.stop()

    def _directly(self, number: int, steps: int) -> Iterator[Batch]:
        """Read without any thread."""
        files = self.work.order.files(number)
        samples = self._kept(each for file in files for run in self._file(file) for each in _each(run))
        for sizes in self._shuffled_batches(samples, number, steps):
            for _ in sizes:
                wait(self._preprocess())
            yield len(sizes), sum(sizes)

    def _produce(self, number: int, steps: int, out: Lane[tuple[int, Future[int] | int]]) -> None:
        samples = self._kept(self._interleaved(number))
        for sizes in self._shuffled_batches(samples, number, steps):
            # The times are drawn here, in order: threads of a pool finish in any.
            thing = self._pool.submit(_prepare, sum(sizes), [self._preprocess() for _ in sizes]) \
                if self._pool else sum(sizes)  # fmt: skip
            if not out.put((len(sizes), thing)):
                return

    def _interleaved(self, number: int) -> Iterator[int]:
        """Yield the bytes of samples, one of each slot in turn."""
        files = self.work.order.files(number)
        slots = min(self.work.spec.read_threads, len(files))
        todo, lock = iter(files), threading.Lock()
        lanes: list[Lane[_Run]] = [Lane(_AHEAD) for _ in range(slots)]
        self._lanes, self._slots = lanes, []
        for lane in lanes:
            body = guarded(partial(self._slot, lane, todo, lock), lane.fail)
            self._slots.append(threading.Thread(target=body, daemon=True))
            self._slots[-1].start()
        held: list[_Run] = [(0, 0)] * slots
        open_slots = list(range(slots))
        while open_slots:
            for slot in list(open_slots):
                count, size = held[slot]
                if not count:
                    try:
                        count, size = lanes[slot].take()
                    except Ended:
                        open_slots.remove(slot)
                        continue
                held[slot] = (count - 1, size)
                yield size

    def _slot(self, lane: Lane[_Run], todo: Iterator[int], lock: threading.Lock) -> None:
        while True:
            with lock:
                file = next(todo, None)
            if file is None:
                lane.end()
                return
            for run in self._file(file):
                if not lane.put(run):
                    return

    def _file(self, file: int) -> Iterator[_Run]:
        """Yield the samples of a file, from memory where the workload keeps it there."""
        if file in self._memory:
            yield from self._memory[file]
            return
        work, path, kept, seen = self.work, self.work.split.paths[file], [], 0
        try:
            for run in work.handler.stream(path, work.spec, work.calls):
                seen += run[0]
                if work.spec.memory:
                    kept.append(run)
                yield run
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        if seen != work.split.per_file:
            raise Failure(
                f"{path}: holds {seen} samples where dataset.num_samples_per_file says {work.split.per_file}"
            )
        if work.spec.memory:
            self._memory[file] = kept

    def _kept(self, samples: Iterator[int]) -> Iterator[int]:
        """Yield this process' samples: those of its own files, or every n-th where processes share files."""
        comm = self.work.comm
        if len(self.work.split.paths) >= comm.size:
            yield from samples
            return
        for number, size in enumerate(samples):
            if number % comm.size == comm.rank:
                yield size

    def _shuffled_batches(self, samples: Iterator[int], number: int, steps: int) -> Iterator[Sequence[int]]:
        spec, batch = self.work.spec, self.work.batch
        if spec.sample_shuffle != "off":
            samples = _shuffled(samples, spec.shuffle_size, f"{spec.seed}:{number}:{self.work.comm.rank}")
        for _ in range(steps):
            sizes = [size for _, size in zip(range(batch), samples, strict=False)]
            if len(sizes) < batch:
                raise Failure(f"{self.work.split.paths[0]}: the dataset has too few samples for its steps")
            yield sizes


def _each(run: _Run) -> Iterator[int]:
    for _ in range(run[0]):
        yield run[1]


def _shuffled(samples: Iterator[int], room: int, seed: str) -> Iterator[int]:
    """Yield from a full buffer a random one, and put the next in its place (tf.data's shuffle)."""
    draw = random.Random(seed)
    buffer: list[int] = []
    for size in samples:
        if len(buffer) < room:
            buffer.append(size)
            continue
        place = draw.randrange(room)
        yield buffer[place]
        buffer[place] = size
    draw.shuffle(buffer)
    yield from buffer


def _prepare(size: int, times: Sequence[float]) -> int:
    for seconds in times:
        wait(seconds)
    return size
