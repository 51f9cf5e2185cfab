"""Who makes a dataset together: all processes, or those of each node where each has storage of its own."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.failure import Failure

T = TypeVar("T")
#: Other nodes may learn of a new file a little late.
_PATIENCE_S = 1.0


@dataclass(frozen=True)
class Makers:
    """This process is number `index` of the `count` that make one dataset; rank `first` is their first."""

    index: int
    count: int
    first: int = 0

    def share(self, things: Sequence[T]) -> Sequence[T]:
        """Return this process' part of the work."""
        return things[self.index :: self.count]


def makers_of(folder: Path, comm: Comm) -> Makers:
    """Return with whom this process makes the dataset in `folder`, which is made where it is not there.

    Whether nodes share it is tried: one makes a file and the others look for it. All processes call this.
    Failure where the folder cannot be written, or where some nodes share it and others do not.
    """
    if comm.nodes == 1:
        if comm.rank == 0:
            _make(folder)
        comm.barrier()
        return Makers(comm.rank, comm.size)
    # A name that nobody has looked for: no node remembers that it is not there.
    name = comm.gather(f".tiercel-seen-{random.SystemRandom().getrandbits(64):x}")[0]
    if comm.local_rank == 0:
        _make(folder)
    comm.barrier()
    if comm.rank == 0:
        _touch(folder / name)
    comm.barrier()
    places = comm.gather((os.uname().nodename, comm.local_rank == 0 and _sees(folder / name)))
    comm.barrier()
    if comm.rank == 0:
        (folder / name).unlink()
    first = places[0][0]
    others = {host for host, _ in places if host != first}
    seeing = {host for host, seen in places if seen and host != first}
    if not others or seeing == others:
        return Makers(comm.rank, comm.size)
    if seeing:
        they = ", ".join(sorted(seeing))
        raise Failure(f"{folder}: {they} and {first} share it, the other nodes do not")
    mine = [rank for rank, (host, _) in enumerate(places) if host == places[comm.rank][0]]
    return Makers(mine.index(comm.rank), len(mine), mine[0])


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{folder}: cannot be written: {error.strerror}") from None


def _touch(path: Path) -> None:
    try:
        path.touch()
    except OSError as error:
        raise Failure(f"{path.parent}: cannot be written: {error.strerror}") from None


def _sees(path: Path) -> bool:
    end = time.monotonic() + _PATIENCE_S
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.25)
    return True
