"""Small traces made line by line, so that every test can be recounted by hand."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tiercel.traces import IOFrame, open_trace

Event = dict[str, Any]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the tests out of the user's cache, and from each other's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return a Dask cluster of two workers. Dask has a folder of its own (Makefile), or is the user's."""
    if (own := str(Path(sys.prefix) / "cluster")) not in sys.path:
        sys.path.append(own)  # and stays: what loads Dask loads more of it later
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install distributed)")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as connected:
        yield connected


def call(
    name: str, at: int, took: int, cat: str = "POSIX", pid: int = 10, tid: int | None = None, **args: Any
) -> Event:
    """Return one event of the newest schema; times in microseconds."""
    return {
        "id": 1,
        "name": name,
        "cat": cat,
        "pid": pid,
        "tid": tid or pid,
        "ts": 1_000_000 + at,
        "dur": took,
        "ph": 1,
        "args": args,
    }


def hashed(key: str, path: str, name: str = "FH", pid: int = 10) -> Event:
    """Return a metadata line: `key` stands for `path`."""
    return {
        "name": name,
        "cat": "dftracer",
        "pid": pid,
        "tid": pid,
        "ph": 4,
        "args": {"name": path, "value": key},
    }


def compute(at: int, took: int, pid: int = 10) -> Event:
    return call("TorchFramework.compute", at, took, "ai_framework", pid)


def write(path: Path, events: list[Event]) -> Path:
    """Write a trace file; gzipped when its name says so."""
    text = "[\n" + "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def frame_of(tmp_path: Path) -> Callable[[list[Event]], IOFrame]:
    """Return a function that makes a frame of events; each process gets a file of its own."""
    made: list[int] = []

    def make(events: list[Event]) -> IOFrame:
        folder = tmp_path / f"trace-{len(made)}"
        made.append(1)
        for pid in sorted({event["pid"] for event in events}):
            write(folder / f"run-{pid:06}.pfw", [event for event in events if event["pid"] == pid])
        return open_trace(folder)

    return make


class Kept:
    """A writer that only checks what a reader writes, and counts it."""

    def __init__(self) -> None:
        self.rows = 0
        self.records = 0

    def write(self, columns: dict[str, object]) -> None:
        lengths = {len(values) for values in columns.values()}  # type: ignore[arg-type]
        assert len(lengths) == 1
        self.rows += lengths.pop()

    def keep(self, name: str, table: pa.Table) -> None:
        assert name and {"file", "rank"} <= set(table.column_names)
        self.records += len(table)
