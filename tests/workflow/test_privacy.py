"""A whole study of a user with a telling name: nothing of that user is in any file of the results."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import xarray as xr

from tiercel.privacy import private

from ..conftest import Project, needs_iokernel

STUDY = """
study: tiny
title: One of each
repetitions: {minimum: 1, maximum: 1}
twins: false
trace: true
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      cold-read: {operation: read, transfer_size: 64KiB, data_per_process: 1MiB, reorder: 1}
  metadata:
    processes_per_node: [2]
    workloads:
      small-files: {operation: metadata, items_per_process: 20}
"""


def contents(path: Path) -> str:
    """Return what a file says, whatever it is packed in."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode(errors="replace")
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return f"{table.schema.metadata}{table.to_pylist()}"
    if path.suffix == ".nc":
        with xr.open_dataset(path) as dataset:
            return str(dataset.to_dict())
    return path.read_text(errors="replace")


@needs_iokernel
def test_nothing_of_the_user_is_in_the_results(new_project: Callable[[str], Project], tmp_path: Path) -> None:
    # The storage lies in a folder that is called after the user, the project in the user's home.
    project = new_project("zelda")
    project.study("tiny", STUDY)
    telling = {
        "USER": "zelda", "LOGNAME": "zelda", "HOME": str(project.root), "TIERCEL_ACCOUNT": "triforce9",
        "SITE_TOKEN": "0123-courage-4567", "OMPI_MCA_note": "0123-courage-4567 zelda@castle",
        "UCX_LOG_FILE": str(project.root / "ucx.log"), "MPICH_NOTE": "--account=triforce9",
    }  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-m", "tiercel", "evaluate", "--study", "tiny"], cwd=project.root, text=True,
        env={**os.environ, **telling}, capture_output=True, timeout=900, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    files = [p for p in project.results.rglob("*") if p.is_file()]
    assert {".html", ".parquet", ".nc", ".json", ".csv", ".svg"} <= {p.suffix for p in files}
    told = {
        f"{path.relative_to(project.results)}: {word}"
        for path in files
        for word in ("zelda", "triforce9", "courage", str(project.root))
        if word in contents(path) + str(path.relative_to(project.results))
    }
    assert not told
    # Meaningful, not blank: where the result went, in which storage, and which settings there were.
    records = "".join(p.read_text() for p in project.results.glob("raw/*/record.json"))
    assert "$HOME/results/local/raw/" in records
    # (Where the tests run, the names of the folders above may hold this user's own.)
    assert f"{private().text(str(tmp_path))}/$USER/tiercel-run-" in records
    assert '"OMPI_MCA_note": "$SITE_TOKEN $USER@castle"' in records
    assert '"MPICH_NOTE": "--account=$TIERCEL_ACCOUNT"' in records
    traces = "".join(contents(p) for p in project.results.glob("raw/*/trace/*.gz"))
    assert not traces or f"{private().text(str(tmp_path))}/$USER/tiercel-run-" in traces
