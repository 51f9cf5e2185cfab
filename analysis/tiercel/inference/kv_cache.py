"""A cache of keys and values: blocks of one size, a file each, written once, read many times, evicted.

A model that serves conversations keeps what it has computed of each (keys and values of its tokens). What
memory cannot hold goes to storage in blocks; the next request of a conversation reads them, from the first on
up to the first that is missing: those behind it are of no use without it, and are computed anew.
"""

from __future__ import annotations

import os
import random
import struct
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Any

from tiercel.dl.kernel.failure import Failure
from tiercel.inference.tally import Tally

_HEAD = struct.Struct("<QQ")  # conversation, number of the block: what a read must find
_Block = tuple[int, int]


@dataclass(frozen=True)
class Settings:
    """See `KVCacheWorkload`; sizes in bytes."""

    block_size: int
    capacity: int
    conversations: int
    skew: float
    context_blocks: int
    new_blocks: int
    requests: int
    cold: bool
    decode_reads: int = 0


class Cache:
    """The blocks of one process in a folder, in order of their last use."""

    def __init__(self, folder: Path, settings: Settings, seed: str) -> None:
        self._folder, self._settings = str(folder), settings
        self._room = settings.capacity // settings.block_size
        self._blocks: OrderedDict[_Block, None] = OrderedDict()
        self._content = bytearray(random.Random(seed).randbytes(settings.block_size))
        self._buffer = bytearray(settings.block_size)
        self.read, self.written, self.evicted = Tally(), Tally(), Tally()

    def holds(self, block: _Block) -> bool:
        return block in self._blocks

    def get(self, block: _Block) -> None:
        """Read a block that is there. Failure where its file is not what was written."""
        path, size, began = self._path(block), len(self._buffer), perf_counter()
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            got, view = 0, memoryview(self._buffer)
            while got < size and (now := os.preadv(descriptor, [view[got:]], got)):
                got += now
            self.read.add(perf_counter() - began, got)
            if self._settings.cold:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        if got != size or _HEAD.unpack_from(self._buffer) != block:
            raise Failure(f"{path}: is not the block that was written")

    def put(self, block: _Block) -> None:
        """Write a new block, after what was not used for longest has made room."""
        while len(self._blocks) >= self._room:
            self._evict()
        _HEAD.pack_into(self._content, 0, *block)
        began = perf_counter()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._path(block), flags, 0o644)
        try:
            left = memoryview(self._content)
            while left:
                left = left[os.write(descriptor, left) :]
            if self._settings.cold:
                os.fdatasync(descriptor)
            self.written.add(perf_counter() - began, len(self._content))
            if self._settings.cold:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
        self._blocks[block] = None

    def used(self, conversation: int, blocks: int) -> None:
        """Note that a request uses the first blocks of a conversation: of those the last one goes first."""
        for number in reversed(range(blocks)):
            if (conversation, number) in self._blocks:
                self._blocks.move_to_end((conversation, number))

    def _evict(self) -> None:
        block, _ = self._blocks.popitem(last=False)
        began = perf_counter()
        Path(self._path(block)).unlink()
        self.evicted.add(perf_counter() - began, 0)

    def _path(self, block: _Block) -> str:
        return f"{self._folder}/{block[0]}-{block[1]}.kv"


@dataclass
class _Conversation:
    number: int
    blocks: int = 0


@dataclass
class Serving:
    """The requests of one process: which conversation asks is drawn from `seed`."""

    settings: Settings
    cache: Cache
    seed: str
    requests: Tally = field(default_factory=Tally)

    def serve(self) -> None:
        s, draw = self.settings, random.Random(self.seed)
        weights = list(accumulate((n + 1) ** -s.skew for n in range(s.conversations)))
        at_work = [_Conversation(n) for n in range(s.conversations)]
        begun = s.conversations
        for _ in range(s.requests):
            (place,) = draw.choices(range(s.conversations), cum_weights=weights)
            if at_work[place].blocks + s.new_blocks > s.context_blocks:
                at_work[place] = _Conversation(begun)
                begun += 1
            self._serve(at_work[place])

    def _serve(self, one: _Conversation) -> None:
        began, cache, moved = perf_counter(), self.cache, self.cache.read.bytes
        usable = 0
        while usable < one.blocks and cache.holds((one.number, usable)):
            cache.get((one.number, usable))
            usable += 1
        if usable:  # what a first token waits for; where nothing is found it is computed
            self.requests.add(perf_counter() - began, cache.read.bytes - moved)
        self.requests.found += usable
        self.requests.wanted += one.blocks
        cache.used(one.number, one.blocks)  # before others make room for the new ones
        one.blocks += self.settings.new_blocks
        for number in range(usable, one.blocks):
            if not cache.holds((one.number, number)):
                cache.put((one.number, number))
        cache.used(one.number, one.blocks)
        for _ in range(self.settings.decode_reads):
            for number in range(one.blocks - self.settings.new_blocks, one.blocks):
                cache.get((one.number, number))


def serve(given: dict[str, Any], folder: Path, seed: str) -> dict[str, Tally]:
    """Serve all requests of one process with a cache in `folder`; return what was done, by operation."""
    settings = Settings(**given)
    folder.mkdir(parents=True, exist_ok=True)
    serving = Serving(settings, Cache(folder, settings, seed), seed)
    serving.serve()
    cache = serving.cache
    return {"kv-request": serving.requests, "kv-read": cache.read, "kv-write": cache.written,
            "kv-evict": cache.evicted}  # fmt: skip
