"""Traces that never happened: ranks on one file, ranks on all files, and folders of many logs."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cost import CHECKOUT

LOGS = CHECKOUT / "tests" / "data" / "traces" / "darshan"
_START_US = 1_744_611_912_000_000
_ACCESSES = 500
_SIZE = 65_536


def one_shared_file(folder: Path, ranks: int) -> None:
    """Write a DFTracer trace in which all ranks write their blocks of one file in turn."""
    for rank in range(ranks):
        calls: list[tuple[str, str, dict[str, int]]] = [("open64", "/scratch/shared", {"ret": 3})]
        for step in range(_ACCESSES):
            offset = (step * ranks + rank) * _SIZE
            calls.append(
                ("pwrite", "/scratch/shared", {"ret": _SIZE, "count": _SIZE, "offset": offset, "fd": 3})
            )
        calls.append(("close", "/scratch/shared", {"ret": 0, "fd": 3}))
        _write(folder, rank, ranks, calls)


def every_rank_opens_every_file(folder: Path, ranks: int) -> None:
    """Write a DFTracer trace in which each of n ranks opens, reads and closes each of n files."""
    for rank in range(ranks):
        calls: list[tuple[str, str, dict[str, int]]] = []
        for number in range(ranks):
            file = f"/scratch/input/part-{number:05}"
            calls += [
                ("open64", file, {"ret": 3}),
                ("pread", file, {"ret": _SIZE, "count": _SIZE, "offset": 0, "fd": 3}),
                ("close", file, {"ret": 0, "fd": 3}),
            ]
        _write(folder, rank, ranks, calls)


def _write(folder: Path, rank: int, ranks: int, calls: list[tuple[str, str, dict[str, int]]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(_lines(rank, calls)) + "\n"
    (folder / f"trace-{rank}-of-{ranks}.pfw.gz").write_bytes(gzip.compress(text.encode(), 1))


def _lines(rank: int, calls: list[tuple[str, str, dict[str, int]]]) -> Iterator[str]:
    host = f"node{rank // 4:04}"
    common = {"cat": "dftracer", "type": 1, "pid": 100_000 + rank, "tid": 100_000 + rank, "ph": 4}
    yield json.dumps({"name": "HH", **common, "args": {"hhash": host, "name": host, "value": host}})
    known: set[str] = set()
    now = _START_US + rank
    for number, (name, file, values) in enumerate(calls):
        digest = file.replace("/", "_")
        if digest not in known:
            known.add(digest)
            yield json.dumps({"name": "FH", **common, "args": {"hhash": host, "name": file, "value": digest}})
        yield json.dumps(
            {
                "id": number, "name": name, "cat": "POSIX", "type": 3, "pid": 100_000 + rank,
                "tid": 100_000 + rank, "ts": now, "dur": 40, "ph": 1,
                "args": {"hhash": host, **values, "fhash": digest},
            },
            separators=(",", ":"),
        )  # fmt: skip
        now += 50


def copied_logs(folder: Path, count: int, source: Path = LOGS) -> Path:
    """Write `count` copies of the Darshan logs in `source`, each under a name of its own."""
    logs = sorted(source.rglob("*.darshan"))
    for number in range(count):
        log = logs[number % len(logs)]
        target = folder / f"{number // 1000:03}" / f"{log.stem}-{number}.darshan"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, target)
    return folder
