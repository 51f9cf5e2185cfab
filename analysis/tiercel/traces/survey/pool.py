"""Child processes that read traces, some at a time: what breaks one of them costs one trace.

A child reads many traces in turn. One that ends, or is not done in time, is replaced, and its trace gets a
row that says so.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tiercel.traces.child import Child, Lost
from tiercel.traces.cluster import workers
from tiercel.traces.survey.find import Found
from tiercel.traces.survey.row import empty_row

Row = dict[str, Any]
#: A child is replaced after so many traces, so that what libraries forget to free stays bounded.
_TRACES_EACH = 2000
#: Traces that a Dask worker reads with one child; starting that takes a second.
_BATCH = 100
_START_SECONDS = 300.0
#: A child needs so much for itself and one ordinary trace.
_LEAST_MEMORY = 2 << 30


@dataclass(frozen=True)
class Limits:
    """What one trace is given: seconds, and bytes of memory. `key`: of pseudonyms, for anonymous rows."""

    seconds: float
    memory: int
    key: str | None = None


def memory_each(jobs: int) -> int:
    """Return the memory that each of `jobs` children may use: together half of the machine's."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(whole // (2 * jobs), _LEAST_MEMORY)


class Reader:
    """Reads traces with one child, started when it is first needed."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # The key travels where no list of processes shows it.
        environment = {"TIERCEL_SURVEY_KEY": limits.key} if limits.key else {}
        command = [sys.executable, "-m", "tiercel.traces.survey.worker", str(limits.memory)]
        self._child = Child(command, group=True, environment=environment)

    def read(self, found: Found) -> Row:
        """Return the trace's row, whatever happens to the child."""
        if self._child.answered >= _TRACES_EACH:
            self._child.close()
        try:
            if not self._child.answered:  # starting takes a second or more, which is not the trace's
                self._child.ask("", _START_SECONDS)
            row: Row = json.loads(self._child.ask(json.dumps(asdict(found)), self._limits.seconds))
            return row
        except Lost as lost:
            row = empty_row(found, f"reading it {lost}" if str(lost).startswith("ended") else str(lost))
            return row if self._limits.key is None else row | {"path": None}

    def end(self, thread: threading.Thread) -> None:
        """End the child while `thread` may be waiting for it."""
        while thread.is_alive():
            self._child.kill()
            thread.join(0.1)
        self._child.close()

    def close(self) -> None:
        self._child.close()


def read_here(traces: Sequence[Found], limits: Limits, jobs: int) -> Generator[Row, None, None]:
    """Read `traces` with `jobs` children at a time and yield the rows as they are made."""
    waiting: queue.SimpleQueue[Found] = queue.SimpleQueue()
    for found in traces:
        waiting.put(found)
    rows: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()
    readers = [Reader(limits) for _ in range(min(jobs, len(traces)))]
    stopped = threading.Event()

    def work(reader: Reader) -> None:
        try:
            while not stopped.is_set():
                rows.put(reader.read(waiting.get_nowait()))
        except queue.Empty:
            pass
        except BaseException as error:
            rows.put(error)

    threads = [threading.Thread(target=work, args=(reader,), daemon=True) for reader in readers]
    try:
        for thread in threads:
            thread.start()
        for _ in traces:
            row = rows.get()
            if isinstance(row, BaseException):
                raise row
            yield row
    finally:
        stopped.set()
        for reader, thread in zip(readers, threads, strict=True):
            if thread.ident is not None:
                reader.end(thread)


def read_on_cluster(traces: Sequence[Found], limits: Limits, client: Any) -> Generator[Row, None, None]:
    """Read `traces` on a Dask cluster, whose workers see the same files, and yield the rows as they come."""
    from distributed import as_completed  # noqa: PLC0415 -- Dask is optional, and who has a client has it

    each = min(_BATCH, max(1, len(traces) // (2 * workers(client))))
    batches = [traces[start : start + each] for start in range(0, len(traces), each)]
    futures = [client.submit(_read_batch, batch, limits, pure=False) for batch in batches]
    try:
        for future in as_completed(futures):
            yield from future.result()
    finally:
        client.cancel(futures)


def _read_batch(traces: Sequence[Found], limits: Limits) -> list[Row]:
    reader = Reader(limits)
    try:
        return [reader.read(found) for found in traces]
    finally:
        reader.close()
