"""Samples how a storage answers for data that this node does not hold, just before a cold read.

Eviction empties the node's page cache. A file server, a hypervisor or a device's controller may hold the data
all the same, and nobody can look into their memory from here; but how long single small reads take can be
looked at. Some pages are read one by one, past the page cache, each three times: what a cache behind the
client keeps, it answers sooner the second time, and the third time tells how much two reads of one page
differ anyway. What the times say is judged when tables are made (:mod:`tiercel.results.behind`).
"""

from __future__ import annotations

import mmap
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tiercel.pagecache import evict, memory_backed

PAGE = 4096
#: Pages that are read at most, and of the data no more than this part: it must not warm what is measured.
_MOST, _PART = 64, 0.01
#: Pages that are read once before they are read again: a disturbance of the machine then meets both.
BLOCK = 4
#: Seconds after which no further block is begun.
_SECONDS = 0.1
#: Files that are sampled at most.
_FILES = 16


def of_folder(folder: Path, seed: int) -> dict[str, Any]:
    """Return the sample as a condition of a run; empty where there is none. It never fails a run."""
    try:
        found = sample(folder, seed)
    except OSError:
        return {}  # the read that follows says what is wrong
    return {"behind": found} if found else {}


def sample(folder: Path, seed: int) -> dict[str, Any] | None:
    """Return ``{"direct": bool, "first": [...], "second": [...], "third": [...]}`` (µs) of some pages below
    `folder`; None where there is nothing to sample: too little data, or it lies in memory.

    `direct`: O_DIRECT was taken; else each page was dropped from the page cache again before it was read.
    """
    rng = random.Random(seed)
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    files = rng.sample(sorted(files), min(_FILES, len(files)))
    pages = [(path, n) for path in files for n in _pages(path, rng)]
    count = min(_MOST, int(sum(path.stat().st_size for path in files) // PAGE * _PART))
    if count < BLOCK or memory_backed(str(files[0])):
        return None
    evict(files)
    chosen = rng.sample(pages, min(count, len(pages)))
    times: tuple[list[int], ...] = ([], [], [])
    begun = time.monotonic()
    with _opened(files) as (descriptors, direct), mmap.mmap(-1, PAGE) as buffer:
        for at in range(0, len(chosen), BLOCK):
            for each in times:
                each.extend(
                    _microseconds(descriptors[path], number * PAGE, buffer, direct)
                    for path, number in chosen[at : at + BLOCK]
                )
            if time.monotonic() - begun > _SECONDS:
                break
    return {"direct": direct, "first": times[0], "second": times[1], "third": times[2]}


def _pages(path: Path, rng: random.Random) -> list[int]:
    """Return some whole pages of a file, in random order."""
    count = path.stat().st_size // PAGE
    return rng.sample(range(count), min(_MOST, count))


@contextmanager
def _opened(files: list[Path]) -> Iterator[tuple[dict[Path, int], bool]]:
    """Yield descriptors of the files, and whether all of them pass the page cache by."""
    descriptors: dict[Path, int] = {}
    try:
        for flag in (os.O_DIRECT, 0):
            try:
                for path in files:
                    descriptors[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flag)
                yield descriptors, bool(flag)
                return
            except OSError:  # a file system without O_DIRECT refuses the open
                if not flag:
                    raise
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)


def _microseconds(descriptor: int, offset: int, buffer: mmap.mmap, direct: bool) -> int:
    if not direct:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        os.posix_fadvise(descriptor, offset, PAGE, os.POSIX_FADV_DONTNEED)
    begun = time.perf_counter_ns()
    os.preadv(descriptor, [buffer], offset)
    return (time.perf_counter_ns() - begun) // 1000
