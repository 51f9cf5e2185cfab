"""How the processes of a run talk: alone, forked on one node, or by MPI.

All of them call the same collective operations in the same order. A process that fails says so to the others,
which then stop too: nobody waits for a message that never comes.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tiercel.children import ending, killed_with
from tiercel.dl.kernel.failure import OtherRankFailed

_LENGTH = struct.Struct("!Q")


class Comm(ABC):
    """`rank` of `size` processes; `local_rank` on this node of `nodes`."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    nodes: int = 1

    @abstractmethod
    def gather(self, value: Any) -> list[Any]:
        """Return every process' value, in order of rank, on all of them."""

    @abstractmethod
    def to_root(self, value: Any) -> list[Any]:
        """Return every process' value on process 0, and nothing on the others."""

    @abstractmethod
    def barrier(self) -> None:
        """Return when all processes have called it."""

    def fail(self) -> None:  # noqa: B027 (alone there is nobody to stop)
        """Make the other processes stop; called when this one cannot go on."""

    def leave(self) -> None:  # noqa: B027
        """Forget the others: called in a reader worker, which is none of the processes."""


class Single(Comm):
    def gather(self, value: Any) -> list[Any]:
        return [value]

    def to_root(self, value: Any) -> list[Any]:
        return [value]

    def barrier(self) -> None:
        pass


class Forked(Comm):
    """Processes of one node around process 0, by socket pairs."""

    def __init__(self, rank: int, size: int, links: list[socket.socket]) -> None:
        self.rank, self.size, self.local_rank = rank, size, rank
        self._links = links  # process 0: one to each other; the others: one to process 0

    def gather(self, value: Any) -> list[Any]:
        if self.rank:
            _send(self._links[0], pickle.dumps(value))
            found: list[Any] = pickle.loads(_receive(self._links[0]))
            return found
        values = [value, *(pickle.loads(_receive(link)) for link in self._links)]
        answer = pickle.dumps(values)
        for link in self._links:
            _send(link, answer)
        return values

    def to_root(self, value: Any) -> list[Any]:
        if self.rank:
            _send(self._links[0], pickle.dumps(value))
            return []
        return [value, *(pickle.loads(_receive(link)) for link in self._links)]

    def barrier(self) -> None:
        self.gather(None)

    def fail(self) -> None:
        # Ended links are what the others see: process 0 fails in turn and ends the rest.
        for link in self._links:
            with suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def leave(self) -> None:
        for link in self._links:
            link.close()


class MPI(Comm):
    """By mpi4py. Waiting does not spin: the processor belongs to the readers."""

    def __init__(self) -> None:
        from mpi4py import MPI as mpi  # noqa: PLC0415 (starts MPI)

        self._comm = mpi.COMM_WORLD
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        node = self._comm.Split_type(mpi.COMM_TYPE_SHARED)
        self.local_rank = node.Get_rank()
        self.nodes = int(self._comm.allreduce(1 if self.local_rank == 0 else 0))

    def gather(self, value: Any) -> list[Any]:
        self.barrier()
        values: list[Any] = self._comm.allgather(value)
        return values

    def to_root(self, value: Any) -> list[Any]:
        self.barrier()
        return self._comm.gather(value) or []

    def barrier(self) -> None:
        request = self._comm.Ibarrier()
        pause = 20e-6
        while not request.Test():
            time.sleep(pause)
            pause = min(pause * 1.5, 1e-3)

    def fail(self) -> None:
        sys.stderr.flush()
        sys.stdout.flush()
        time.sleep(_TOLD_S)
        self._comm.Abort(1)


#: After an abort mpiexec reads no more of what a rank has written: so long it has to read why (s).
_TOLD_S = 0.5
#: Variables in which launchers say how many processes they started: MPICH and its kin, Open MPI, Slurm.
_STARTED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


def launched() -> int:
    """Return how many processes a launcher of parallel programs started of this one; 1 without a launcher."""
    return max([1, *(int(n) for name in _STARTED if (n := os.environ.get(name, "")).isdigit())])


def forked(processes: int, work: Callable[[Comm], int]) -> int:
    """Fork `processes` - 1 times, call `work` in each of the processes, and return the worst exit code."""
    if processes == 1:
        return work(Single())
    pairs = [socket.socketpair() for _ in range(processes - 1)]
    children, first = [], os.getpid()
    for rank in range(1, processes):
        child = os.fork()
        if child == 0:
            killed_with(first)  # else it would compute on until it next asks for the others
            mine = pairs[rank - 1][1]
            for root, other in pairs:
                root.close()
                if other is not mine:
                    other.close()
            code = 1
            try:
                code = work(Forked(rank, processes, [mine]))
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    for _, other in pairs:
        other.close()
    codes = [work(Forked(0, processes, [root for root, _ in pairs]))]
    for child in children:
        _, status = os.waitpid(child, 0)
        codes.append(os.waitstatus_to_exitcode(status))
    for rank, code in enumerate(codes):
        if code < 0:
            print(f"dlkernel: error: process {rank} {ending(code)}", file=sys.stderr)
    if min(codes) < 0:
        return 2
    # 2: a process has said what is wrong; the others only stopped.
    return 2 if 2 in codes else int(any(codes))


def _send(link: socket.socket, content: bytes) -> None:
    try:
        link.sendall(_LENGTH.pack(len(content)) + content)
    except OSError:
        raise OtherRankFailed from None


def _receive(link: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(link, _LENGTH.size))
    return _exactly(link, length)


def _exactly(link: socket.socket, length: int) -> bytes:
    content = bytearray(length)
    view, have = memoryview(content), 0
    while have < length:
        try:
            got = link.recv_into(view[have:])
        except OSError:
            got = 0
        if not got:
            raise OtherRankFailed
        have += got
    return bytes(content)
