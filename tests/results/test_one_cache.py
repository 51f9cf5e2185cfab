"""Data that fits in memory on one storage and not on another: flagged, where a study aims at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tiercel.results import schema
from tiercel.results.observations import _mark_one_cache
from tiercel.results.validity import FLAGS, ONE_CACHE

GIB = 2**30


def row(storage: str, size: int, **keys: Any) -> dict[str, Any]:
    plain = {
        "study": "x", "experiment": "e", "workload": "w", "operation": "write", "engine": "iokernel",
        "nodes": 1, "processes_per_node": 2, "role": "measured", "medium": "disk", "phase_time": 1.0,
        "memory_bytes": 16 * GIB, "flags": ["loaded-machine"],
    }  # fmt: skip
    every = dict.fromkeys(c.name for c in schema.OBSERVATIONS)
    return {**every, **plain, "storage": storage, "bytes_per_process": size, **keys}


def marked(*rows: dict[str, Any]) -> list[bool]:
    _mark_one_cache(list(rows))
    assert all("loaded-machine" in r["flags"] for r in rows)
    return [ONE_CACHE in r["flags"] for r in rows]


def test_the_side_that_fits_is_flagged() -> None:
    # Two processes: 2 x 1 GiB fit in 16 GiB, 2 x 8 GiB do not.
    assert marked(row("slow", GIB), row("fast", 8 * GIB)) == [True, False]
    assert FLAGS[ONE_CACHE].severity == "caution"


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        (row("slow", GIB), row("fast", 7 * GIB)),  # both fit
        (row("slow", 8 * GIB), row("fast", 9 * GIB)),  # neither does
        (row("slow", GIB, phase_time=None), row("fast", 8 * GIB, phase_time=None)),
        (row("slow", GIB), row("fast", 8 * GIB, direct=True)),  # past the cache
        (row("slow", GIB), row("tmpfs", 8 * GIB, medium="memory")),  # it is memory in any case
        (row("slow", GIB), row("fast", 8 * GIB, processes_per_node=1)),  # another scale
        (row("slow", GIB, role="setup"), row("fast", 8 * GIB)),
        (row("slow", GIB), row("fast", 8 * GIB, memory_bytes=None)),
    ],
)
def test_nothing_else_is(slow: dict[str, Any], fast: dict[str, Any]) -> None:
    assert marked(slow, fast) == [False, False]


def test_it_goes_when_the_other_side_does() -> None:
    slow, fast = row("slow", GIB), row("fast", 8 * GIB)
    assert marked(slow, fast) == [True, False]
    assert marked(slow) == [False]
