"""Reader processes, as PyTorch's DataLoader has them.

Batch n is read by worker n modulo their number, whole; a worker has `prefetch_factor` batches to do, so that
batches are waiting when the training loop asks. The workers live from the first epoch to the last.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

from tiercel.clock import now
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.loaders.base import (
    Batch,
    Loader,
    Reading,
    Usage,
    Work,
    batches,
    cpu_seconds,
    memory_files,
)

_HEAD = struct.Struct("!cQ")
#: Kinds of message. To a worker: a batch, the end of an epoch, a question for usage. From it: the
#: answers (none to the end of an epoch).
_BATCH, _END, _USAGE, _DONE, _FAILED, _BROKEN = b"b", b"e", b"u", b"d", b"f", b"x"

#: The training process' ends of the pipes of all workers, of every loader.
_PIPES: set[int] = set()


class Processes(Loader):
    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self._workers: list[_Worker] = []

    def epoch(self, number: int, steps: int) -> Iterator[Batch]:
        count = self.work.spec.read_threads
        if not self._workers:
            # What is to be in memory is read before the workers are forked, and so by one process only.
            reading = Reading(self.work, self.work.calls, f"{self.work.comm.rank}")
            if self.work.spec.memory:
                reading.remember(memory_files(self.work, number))
            for index in range(count):
                self._workers.append(_Worker(self.work, index, reading))
        todo = batches(self.work, number, steps)
        # PyTorch's own default where the workload asks for no prefetching.
        ahead = -(-self.work.spec.prefetch // count) or 2
        sent = min(steps, ahead * count)
        for step in range(sent):
            self._workers[step % count].send(_BATCH, todo[step])
        for step in range(steps):
            worker = self._workers[step % count]
            size = int.from_bytes(worker.receive(), "big")
            if sent < steps:
                self._workers[sent % count].send(_BATCH, todo[sent])
                sent += 1
            yield len(todo[step]), size
        for worker in self._workers:
            worker.send(_END, ())

    def usage(self) -> Usage:
        found = super().usage()
        for worker in self._workers:
            worker.send(_USAGE, ())
        for worker in self._workers:
            found.add(pickle.loads(worker.receive()))
        return found

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self._workers.clear()


class _Worker:
    """A forked reader and the two pipes to it."""

    def __init__(self, work: Work, index: int, reading: Reading) -> None:
        self._name = f"reader worker {index} of process {work.comm.rank}"
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        try:
            self.pid = os.fork()
        except OSError as error:
            raise Failure(
                f"reader.read_threads: {work.spec.read_threads}: {self._name} cannot be started: "
                f"{error.strerror}"
            ) from None
        if self.pid == 0:
            os.close(self._out)
            os.close(self._in)
            for descriptor in _PIPES:  # they must end with the training process, not with this one
                os.close(descriptor)
            _serve(work, index, reading, theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        _PIPES.update((self._out, self._in))

    def send(self, kind: bytes, numbers: Sequence[int]) -> None:
        content = array("q", numbers).tobytes()
        with suppress(BrokenPipeError):  # receive() says what became of it
            _write(self._out, _HEAD.pack(kind, len(content)) + content)

    def receive(self) -> bytes:
        head = _read(self._in, _HEAD.size)
        if len(head) < _HEAD.size:
            raise Failure(f"{self._name} died (killed, or out of memory)")
        kind, length = _HEAD.unpack(head)
        content = _read(self._in, length)
        if kind == _FAILED:
            raise Failure(content.decode())
        if kind == _BROKEN:
            raise RuntimeError(f"{self._name}: {content.decode()}")
        return content

    def close(self) -> None:
        _PIPES.difference_update((self._out, self._in))
        os.close(self._out)
        os.close(self._in)
        os.waitpid(self.pid, 0)


def _serve(work: Work, index: int, reading: Reading, incoming: int, outgoing: int) -> NoReturn:
    """Be a worker until the training process closes its pipe."""
    code = 0
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        work.comm.leave()
        calls = work.calls.child(index)
        reading.move_to(calls, f"{work.comm.rank}:{index}")
        before = cpu_seconds()
        while len(head := _read(incoming, _HEAD.size)) == _HEAD.size:
            kind, length = _HEAD.unpack(head)
            numbers = array("q", _read(incoming, length))
            if kind == _END:
                reading.end_epoch()
                continue
            answer, content = _DONE, b""
            try:
                if kind == _BATCH:
                    content = sum(_item(reading, calls, n) for n in numbers).to_bytes(8, "big")
                else:
                    now = cpu_seconds()
                    content = pickle.dumps(Usage(*calls.take(), now - before))
                    before = now
            except Failure as failure:
                answer, content = _FAILED, str(failure).encode()
            except Exception as error:  # told to the training process
                answer, content = _BROKEN, f"{type(error).__name__}: {error}".encode()
            _write(outgoing, _HEAD.pack(answer, len(content)) + content)
        reading.close()
        if calls.tracer:
            calls.tracer.close()
    except BrokenPipeError:
        pass  # the training process is gone
    except BaseException:  # a forked child must never return into its parent's code
        code = 1
    os._exit(code)


def _item(reading: Reading, calls: IO, number: int) -> int:
    began = now()
    size = reading.sample(number)
    calls.span("TorchDataset.__getitem__", "data_loader", began)
    return size


def _write(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _read(descriptor: int, length: int) -> bytes:
    found = b""
    while len(found) < length:
        piece = os.read(descriptor, length - len(found))
        if not piece:
            break
        found += piece
    return found
