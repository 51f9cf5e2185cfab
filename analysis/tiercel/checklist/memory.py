"""What the memory of this node carries and keeps: ``tiercel site calibrate``."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from tiercel.memory import available_memory

MIB = 1024**2


def memory_copy(processes: int, size: int = 64 * MIB) -> float:
    """Return bytes per second of so many copies in memory at once, the best of five.

    One process alone does not reach what the memory of a node carries.
    """
    start = Barrier(processes)

    def copy(_: int) -> list[tuple[float, float]]:
        source, target = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
        times = []
        for _ in range(6):  # the first brings the pages
            start.wait()
            began = time.perf_counter()
            ctypes.memmove(target, source, size)  # lets go of Python's lock
            times.append((began, time.perf_counter()))
        return times[1:]

    with ThreadPoolExecutor(processes) as pool:
        each = list(pool.map(copy, range(processes)))
    turns = zip(*each, strict=True)
    best: float = min(max(end for _, end in turn) - min(began for began, _ in turn) for turn in turns)
    return processes * size / best


def page_cache(proc: Path = Path("/proc")) -> dict[str, int]:
    """Return how many bytes of files the page cache can hold now, and of written ones before it lets the
    writers wait: keys of a stage. None of them where Linux does not say.

    Writers wait from halfway between both thresholds on (mm/page-writeback.c, balance_dirty_pages).
    """
    free = available_memory(proc)
    if free is None:
        return {}
    try:
        shares = [_number(proc, f"dirty_{name}") / 100 for name in ("background_ratio", "ratio")]
        given = [_number(proc, f"dirty_{name}") for name in ("background_bytes", "bytes")]
    except (OSError, ValueError):
        return {}
    thresholds = [bytes_ or share * free for bytes_, share in zip(given, shares, strict=True)]
    return {"read_cache": free, "write_cache": int(sum(thresholds) / 2)}


def _number(proc: Path, name: str) -> int:
    return int((proc / "sys" / "vm" / name).read_text(encoding="ascii"))
