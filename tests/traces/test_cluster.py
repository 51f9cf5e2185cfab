"""The same answers on a Dask cluster of two workers. Dask is optional: skipped without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tiercel.traces import open_trace

from .conftest import call, compute, hashed, write


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Five ranks; rank 3 has a forked worker whose files only its parent explains."""
    folder = tmp_path / "trace"
    for rank in range(5):
        pid = 10 + rank
        events = [
            call("start", rank, 0, "dftracer", pid, ppid=1, cmd_hash="c"),
            hashed("aa", "/d/shared", pid=pid),
        ]
        for i in range(40):
            kind = "pwrite" if (i + rank) % 3 else "pread"
            events.append(call(kind, 50 * i + rank, 20, pid=pid, ret=8, offset=(i * 5) % 64, fhash="aa"))
            events.append(compute(50 * i + 10, 15 + rank, pid))
            events.append(call("pread", 50 * i + 30, 5, pid=pid, ret=4, offset=4 * i, fname=f"/d/{rank}"))
        write(folder / f"run-{pid}.pfw", events)
    write(
        folder / "run-00-fork.pfw",
        [
            call("start", 300, 0, "dftracer", 99, ppid=13, cmd_hash="c"),
            call("pread", 310, 7, pid=99, ret=6, offset=0, fhash="aa"),
        ],
    )
    return folder


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("overlap", {}),
    ("overlap", {"rank": [1, 3], "filter": "kind = 'read'"}),
    ("io_bandwidth", {}),
    ("io_time", {}),
    ("io_time", {"filter": lambda x: x["kind"] == "write"}),
    ("shared_files", {}),
    ("access_pattern", {}),
    ("readwrite_pattern", {"rank": 3}),
    ("extract_features", {}),
    ("metadata_share", {}),
    ("transfer_sizes", {}),
    ("load_imbalance", {}),
    ("bandwidth_over_time", {"bins": 7}),
    ("timeline", {}),
]


def test_the_same_answers(trace: Path, tmp_path: Path, client: Any) -> None:
    alone = open_trace(trace, cache=tmp_path / "one")
    spread = open_trace(trace, cache=tmp_path / "two", client=client)
    assert len(spread.paths) > 1  # read in parts
    assert alone.warnings == spread.warnings
    assert alone.job_time == spread.job_time
    order = ["time", "rank", "process", "function", "offset"]
    tables = [frame.events().sort_values(order, ignore_index=True) for frame in (alone, spread)]
    pd.testing.assert_frame_equal(*tables)
    for name, options in CALLS:
        pd.testing.assert_frame_equal(
            getattr(alone, name)(**options), getattr(spread, name)(**options), obj=name
        )


def test_processes_that_only_the_events_tell_of(tmp_path: Path, client: Any) -> None:
    # Two processes in one file, in two files: numbered as if one reader had read them.
    for name, pids in (("a", (10, 11)), ("b", (20, 21))):
        write(tmp_path / "t" / f"{name}.pfw", [call("open", pid, 1, pid=pid) for pid in pids])
    one = open_trace(tmp_path / "t", cache=tmp_path / "one").events()
    two = open_trace(tmp_path / "t", cache=tmp_path / "two", client=client).events()
    pd.testing.assert_frame_equal(one, two)
