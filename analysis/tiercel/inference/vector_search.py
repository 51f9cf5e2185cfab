"""The search of vectors: a graph in one file, walked by small random reads, several at once.

A node of the graph is a vector with its edges, in a block of the file. A query begins at the entry and reads
at each hop the `beam` nodes that look best, at once; which ones are next it knows when it has them. Nodes are
numbered by their distance from the entry: hop h chooses among the first ``degree ** (h + 1)``.
"""

from __future__ import annotations

import os
import random
import struct
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from tiercel.dl.kernel.failure import Failure
from tiercel.inference.tally import Tally

_HEAD = struct.Struct("<Q")  # the node's number: what a read must find
_PIECE = 4 * 1024**2
_PAGE = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True)
class Settings:
    """See `VectorSearchWorkload`; sizes in bytes."""

    index_size: int
    node_size: int
    degree: int
    beam: int
    hops: int
    nodes_in_memory: int
    queries: int
    cold: bool

    @property
    def nodes(self) -> int:
        return self.index_size // self.node_size


def make_index(settings: Settings, path: Path, rank: int, size: int, seed: str) -> int:
    """Write this process' part of the index and make it durable; return its bytes."""
    first, last = (settings.nodes * n // size for n in (rank, rank + 1))
    together = max(1, _PIECE // settings.node_size)
    content = bytearray(random.Random(seed).randbytes(together * settings.node_size))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        for begin in range(first, last, together):
            count = min(together, last - begin)
            for n in range(count):
                _HEAD.pack_into(content, n * settings.node_size, begin + n)
            left, place = memoryview(content)[: count * settings.node_size], begin * settings.node_size
            while left:
                done = os.pwrite(descriptor, left, place)
                left, place = left[done:], place + done
        os.fdatasync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
    return (last - first) * settings.node_size


class Search:
    """The queries of one process."""

    def __init__(self, settings: Settings, path: Path, seed: str) -> None:
        self._settings, self._draw, self._path = settings, random.Random(seed), path
        self._buffer = bytearray(settings.node_size)
        self.queries, self.reads = Tally(), Tally()

    def run(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
            for _ in range(self._settings.queries):
                self._query(descriptor)
        finally:
            os.close(descriptor)

    def _query(self, descriptor: int) -> None:
        s, moved, walk = self._settings, self.reads.bytes, self.walk()
        began = perf_counter()
        for wanted in walk:
            missing = [node for node in wanted if node >= s.nodes_in_memory]
            self.queries.wanted += len(wanted)
            self.queries.found += len(wanted) - len(missing)
            self._together(descriptor, missing)
        self.queries.add(perf_counter() - began, self.reads.bytes - moved)
        if s.cold:
            for node in (node for wanted in walk for node in wanted):
                # The kernel drops whole pages only: one of which a node has a part must go too.
                first, end = (
                    node * s.node_size // _PAGE * _PAGE,
                    -(-(node + 1) * s.node_size // _PAGE) * _PAGE,
                )
                os.posix_fadvise(descriptor, first, end - first, os.POSIX_FADV_DONTNEED)

    def walk(self) -> list[list[int]]:
        """Draw the nodes of each hop of a query: none a second time (a search remembers what it has read), as
        long as there are others."""
        s = self._settings
        walk: list[list[int]] = []
        known: set[int] = set()
        for hop in range(s.hops):
            reach, wanted = min(s.nodes, s.degree ** (hop + 1)), list[int]()
            if reach - len(known) < s.beam:
                known = set()
            while len(wanted) < s.beam:
                node = self._draw.randrange(reach)
                if node not in known:
                    known.add(node)
                    wanted.append(node)
            walk.append(wanted)
        return walk

    def _together(self, descriptor: int, nodes: list[int]) -> None:
        """Read nodes that are in flight at the same time: the kernel is told of all before the first read."""
        size = self._settings.node_size
        began = perf_counter()
        for node in nodes if len(nodes) > 1 else ():
            os.posix_fadvise(descriptor, node * size, size, os.POSIX_FADV_WILLNEED)
        for node in nodes:
            got = os.preadv(descriptor, [self._buffer], node * size)
            # From when it was asked for: they were in flight together.
            self.reads.add(perf_counter() - began, got)
            if got != size or _HEAD.unpack_from(self._buffer)[0] != node:
                raise Failure(f"{self._path}: node {node} is not what was written")


def search(given: dict[str, Any], path: Path, seed: str) -> dict[str, Tally]:
    """Do all queries of one process; return what was done, by operation."""
    found = Search(Settings(**given), path, seed)
    found.run()
    return {"vector-query": found.queries, "vector-read": found.reads}
