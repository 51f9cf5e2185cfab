"""dlkernel's own trace against what the kernel saw of the same run: strace, a real second tracer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.spec import spec_of
from tiercel.programs import program
from tiercel.traces import IOFrame, open_trace

from .kernel import run, workload

pytestmark = pytest.mark.skipif(program("strace") is None, reason="strace is not installed (Debian: strace)")


_MOVES = "kind IN ('read', 'write') AND api IN ('posix', 'stdio') AND size > 0"


def first_move(own: IOFrame) -> float:
    """Return when dlkernel's own trace begins to move data, in seconds since 1970.

    Before that it looks at the headers of some files, to find a wrong dataset: no part of the training.
    """
    begin = own.query(f"SELECT min(time) AS begin FROM events WHERE {_MOVES}")["begin"].iloc[0]
    return float(begin) + float(own.metadata["epoch"]) - 0.001


def bytes_of(frame: IOFrame, folder: Path, since: float) -> dict[tuple[str, str], int]:
    """Return the bytes moved of each file below `folder` since then, by (name, read or write)."""
    table = frame.query(
        f"SELECT file, kind, sum(size) AS bytes FROM events WHERE {_MOVES} "
        f"AND time >= {since - float(frame.metadata['epoch'])} GROUP BY ALL"
    )
    return {
        (str(Path(row.file).relative_to(folder)), row.kind): int(row.bytes)
        for row in table.itertuples()
        if str(row.file).startswith(f"{folder}/")
    }


def both(folder: Path, processes: int, **parts: dict[str, Any]) -> tuple[IOFrame, IOFrame]:
    """Train on the dataset in ``folder/data`` under strace, traced by dlkernel too; return both frames."""
    made = run(folder, **{**parts, "workflow": {"generate_data": True, "train": False}})
    assert made.returncode == 0, made.stderr
    trains = {**parts, "workflow": {"generate_data": False, "train": True, **parts.get("workflow", {})}}
    done = subprocess.run(
        ["strace", "-f", "-ttt", "-T", "-y", "-o", str(folder / "run.strace"),
         sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec_of(workload(**trains))),
         "--data", str(folder / "data"), "--checkpoints", str(folder / "checkpoints"),
         "--output", str(folder / "traced"), "--processes", str(processes), "--trace", "--cold", "none"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    own = open_trace(folder / "traced" / "trace", cache=folder / "cache")
    return own, open_trace(folder / "run.strace", cache=folder / "cache")


@pytest.mark.parametrize(
    ("kind", "reader"),
    [
        ("tfrecord", {"batch_size": 2, "read_threads": 2, "transfer_size": 4096}),
        ("npz", {"batch_size": 2, "read_threads": 2}),
        ("jpeg", {"batch_size": 2, "read_threads": 0}),
        ("csv", {"batch_size": 2, "read_threads": 1}),
    ],
)
def test_both_see_the_same_bytes_of_each_file(tmp_path: Path, kind: str, reader: dict[str, Any]) -> None:
    own, kernel = both(tmp_path, 2, dataset={"format": kind}, reader=reader, train={"epochs": 2})
    seen = bytes_of(own, tmp_path / "data" / "train", first_move(own))
    assert seen == bytes_of(kernel, tmp_path / "data" / "train", first_move(own))
    assert {how for _, how in seen} == {"read"}
    assert len(seen) == 12  # every file of the dataset, each by its name


def test_checkpoints_too(tmp_path: Path) -> None:
    own, kernel = both(
        tmp_path, 1,
        workflow={"checkpoint": True},
        checkpoint={"epochs_between_checkpoints": 1},
        model={"model_size": 300_000},
    )  # fmt: skip
    seen = bytes_of(own, tmp_path / "checkpoints", first_move(own))
    assert seen and sum(seen.values()) >= 300_000
    assert seen == bytes_of(kernel, tmp_path / "checkpoints", first_move(own))
