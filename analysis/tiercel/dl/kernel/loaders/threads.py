"""Reader threads, as tf.data has them around a Python reader.

Each thread has a run of consecutive batches of the epoch; the training loop takes one of each in turn. Every
thread reads ahead until its share of the prefetch buffer is full.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

from tiercel.dl.kernel.loaders.base import Batch, Loader, Reading, Work, batches, guarded, memory_files
from tiercel.dl.kernel.loaders.lane import Lane


class Threads(Loader):
    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._count = max(1, work.spec.read_threads)
        self._readings = [Reading(work, work.calls, f"{work.comm.rank}:{n}") for n in range(self._count)]
        self._lanes: list[Lane[Batch]] = []

    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        if self.work.spec.memory and number == 1:
            # Read once, whatever the number of threads: all of them look into the same memory.
            self._readings[0].remember(memory_files(self.work, number))
            self._readings = [self._readings[0]] * self._count
        todo = batches(self.work, number, steps)
        ahead = max(1, -(-self.work.spec.prefetch // self._count))
        bounds = [steps * n // self._count for n in range(self._count + 1)]
        self._lanes = [Lane(ahead) for _ in range(self._count)]
        threads = []
        for index, lane in enumerate(self._lanes):
            mine = todo[bounds[index] : bounds[index + 1]]

            body = guarded(partial(self._read, index, lane, mine), lane.fail)
            threads.append(threading.Thread(target=body, daemon=True))
        for thread in threads:
            thread.start()
        left = [bounds[n + 1] - bounds[n] for n in range(self._count)]
        while any(left):
            for index, lane in enumerate(self._lanes):
                if left[index]:
                    left[index] -= 1
                    yield lane.take()
        for thread in threads:
            thread.join()

    def _read(self, index: int, lane: Lane[Batch], todo: list[Sequence[int]]) -> None:
        for samples in todo:
            if not lane.put((len(samples), self._readings[index].batch(samples))):
                return
        self._readings[index].end_epoch()

    def close(self) -> None:
        for lane in self._lanes:
            lane.stop()
        for reading in self._readings:
            reading.close()
