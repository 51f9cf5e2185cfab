"""No readers: the training process reads by itself, and computes when it has read (read_threads: 0)."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.dl.kernel.loaders.base import Batch, Loader, Reading, Work, batches, memory_files


class Direct(Loader):
    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._reading = Reading(work, work.calls, f"{work.comm.rank}")

    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        if self.work.spec.memory and number == 1:
            self._reading.remember(memory_files(self.work, number))
        for samples in batches(self.work, number, steps):
            yield len(samples), self._reading.batch(samples)
        self._reading.end_epoch()

    def close(self) -> None:
        self._reading.close()
