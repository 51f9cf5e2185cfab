"""Row groups of Parquet files, as DLIO's iterable dataset for PyTorch reads them.

Each of `read_threads` readers has files of its own. It reads their footers, then their row groups in order,
up to `group_window` of them at once by `group_threads` threads, and cuts what comes into batches. The
training loop takes a batch of each reader in turn; what is left over of one reader's files makes batches with
that of the others. All row groups are read, unless the workload states the steps of an epoch. s3dlio's reader
joins `groups_joined` of them to one request, and keeps the footers it has read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from tiercel.dl.kernel.draw import drawing, wait
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.formats.parquet import Group, Parquet
from tiercel.dl.kernel.loaders.base import Batch, Loader, Work, guarded
from tiercel.dl.kernel.loaders.lane import Ended, Lane

#: Bytes of one read at most where the workload says nothing: row groups may have gigabytes.
_PIECE = 16 << 20


class Groups(Loader):
    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._at_once, self._window = work.spec.group_threads, work.spec.group_window
        self._lanes: list[Lane[Batch]] = []
        self._remembered: set[int] = set()
        self._footers: dict[int, list[Group]] = {}
        self._buffers = threading.local()
        spec = work.spec
        self._preprocess = drawing(spec.preprocess, f"{spec.seed}:preprocess:{work.comm.rank}")
        self._prepares = bool(spec.preprocess.get("mean")) or spec.preprocess.get("type") != "normal"
        if len(work.split.paths) < work.comm.size:
            raise Failure(
                f"dataset: {len(work.split.paths)} files are fewer than the {work.comm.size} processes: "
                "each reads whole files"
            )

    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        work = self.work
        files = work.order.files(number)
        threads: list[threading.Thread] = []
        if work.spec.read_threads == 0:
            pieces = self._batches(files)
        else:
            readers = min(work.spec.read_threads, len(files))
            # PyTorch's own default where the workload asks for no prefetching.
            self._lanes = [Lane(-(-work.spec.prefetch // readers) or 2) for _ in range(readers)]
            for index, lane in enumerate(self._lanes):
                body = guarded(partial(self._read, lane, files[index::readers]), lane.fail)
                threads.append(threading.Thread(target=body, daemon=True))
                threads[-1].start()
            pieces = _in_turn(self._lanes)
        yield from self._whole(pieces, steps)
        if work.spec.steps:
            self._release()
            pieces.close()
        for _ in pieces:  # what makes no whole batch is read all the same
            pass
        for thread in threads:
            thread.join()
        if work.spec.memory:
            self._remembered.update(files)

    def close(self) -> None:
        self._release()

    def _release(self) -> None:
        for lane in self._lanes:
            lane.stop()

    def _whole(self, pieces: Iterator[Batch], steps: int) -> Iterator[Batch]:
        """Yield `steps` whole batches of what comes."""
        samples = size = 0
        for _ in range(steps):
            while samples < self.work.batch:
                try:
                    more, moved = next(pieces)
                except StopIteration:
                    raise Failure(
                        f"{self.work.split.paths[0]}: the dataset has too few samples for its steps"
                    ) from None
                samples, size = samples + more, size + moved
            part = size * self.work.batch // samples
            yield self.work.batch, part
            samples, size = samples - self.work.batch, size - part

    def _read(self, lane: Lane[Batch], files: Sequence[int]) -> None:
        batches = self._batches(files)
        for batch in batches:
            if not lane.put(batch):
                batches.close()
                return
        lane.end()

    def _batches(self, files: Sequence[int]) -> Generator[Batch]:
        """Yield batches of the samples of files, the last one of what is left."""
        samples = size = 0
        for more, moved in self._groups(files):
            samples, size = samples + more, size + moved
            while samples >= self.work.batch:
                part = size * self.work.batch // samples
                yield self._prepared(self.work.batch, part)
                samples, size = samples - self.work.batch, size - part
        if samples:
            yield self._prepared(samples, size)

    def _prepared(self, samples: int, size: int) -> Batch:
        if self._prepares:
            wait(sum(self._preprocess() for _ in range(samples)))
        return samples, size

    def _groups(self, files: Sequence[int]) -> Iterator[Batch]:
        """Yield (samples, bytes) of row groups of files, in order, so many of them on their way."""
        todo = [(file, group) for file in files for group in self._plan(file)]
        pool = ThreadPoolExecutor(max(1, min(self._at_once, self._window)))
        waiting: deque[tuple[int, Future[int]]] = deque()
        try:
            for file, group in todo:
                waiting.append((group.samples, pool.submit(self._fetch, file, group)))
                if len(waiting) > self._window:
                    samples, moved = waiting.popleft()
                    yield samples, moved.result()
            while waiting:
                samples, moved = waiting.popleft()
                yield samples, moved.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _plan(self, file: int) -> list[Group]:
        work, path = self.work, self.work.split.paths[file]
        if file in self._remembered:
            return [Group(work.split.per_file, 0, 0)]
        if file in self._footers:
            return self._footers[file]
        assert isinstance(work.handler, Parquet)
        try:
            found = list(work.handler.groups(path, work.spec, work.calls))
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        samples = sum(group.samples for group in found)
        if samples != work.split.per_file:
            raise Failure(
                f"{path}: holds {samples} samples where dataset.num_samples_per_file says "
                f"{work.split.per_file}"
            )
        found = _joined(found, work.spec.groups_joined)
        if work.spec.footers_kept:
            self._footers[file] = found
        return found

    def _fetch(self, file: int, group: Group) -> int:
        """Read a row group through a file handle of its own; return its bytes."""
        calls, path = self.work.calls, self.work.split.paths[file]
        if file in self._remembered:
            return 0
        piece = self.work.spec.transfer or _PIECE
        try:
            descriptor = calls.open(path, way="ranges")
            try:
                buffer = self._buffer(min(piece, group.bytes))
                got = calls.skim(descriptor, path, buffer, group.offset, group.bytes)
            finally:
                with suppress(OSError):
                    calls.close(descriptor, path)
        except OSError as error:
            raise Failure(f"{path}: cannot be read: {error.strerror or error}") from None
        if got < group.bytes:
            raise Failure(f"{path}: damaged: ends {group.bytes - got} bytes before its footer says")
        return group.bytes

    def _buffer(self, size: int) -> memoryview:
        """Return a buffer of this thread's own, of `size` bytes: nobody looks at what is read."""
        known = getattr(self._buffers, "held", b"")
        if len(known) < size:
            known = self._buffers.held = bytearray(size)
        return memoryview(known)[:size]


def _joined(groups: Sequence[Group], count: int) -> list[Group]:
    """Return so many groups of a file together as one, from the first byte to the last."""
    found = []
    for n in range(0, len(groups), count):
        part = groups[n : n + count]
        first, end = part[0].offset, part[-1].offset + part[-1].bytes
        found.append(Group(sum(one.samples for one in part), first, end - first))
    return found


def _in_turn(lanes: Sequence[Lane[Batch]]) -> Generator[Batch]:
    """Yield what comes, of one lane after the other, until all have ended."""
    left = list(lanes)
    while left:
        for lane in list(left):
            try:
                yield lane.take()
            except Ended:
                left.remove(lane)
