"""Runs the real dlkernel on a folder of the test's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tiercel.dl.files.spec import spec_of
from tiercel.dl.kernel.spec import Spec, read_spec
from tiercel.dl.workload import DLWorkload
from tiercel.documents import parse


def workload(**parts: Any) -> DLWorkload:
    """Return a small workload; `parts` are its groups of keys, over these."""
    content: dict[str, dict[str, Any]] = {
        "dataset": {"format": "npz", "num_files_train": 12, "record_length_bytes": 10_000},
        # An order in which each process has files of its own, and none is left out.
        "reader": {"batch_size": 2, "read_threads": 2, "order": "mlperf-3.0"},
        "train": {"epochs": 1, "computation_time": 0.001},
        "workflow": {"generate_data": True, "train": True},
    }
    default = "tensorflow" if parts.get("dataset", {}).get("format") == "tfrecord" else "pytorch"
    framework = parts.pop("framework", default)
    for name, keys in parts.items():
        content[name] = {**content.get(name, {}), **keys}
    return parse(DLWorkload, {"framework": framework, **content}, "test")


def spec(**parts: dict[str, Any]) -> Spec:
    return read_spec(json.dumps(spec_of(workload(**parts))))


def run(
    folder: Path,
    processes: int = 1,
    *options: str,
    env: dict[str, str] | None = None,
    **parts: dict[str, Any],
) -> subprocess.CompletedProcess[str]:
    """Run a workload with its dataset in ``folder/data`` and results in ``folder/out``."""
    argv = [
        sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec_of(workload(**parts))),
        "--data", str(folder / "data"), "--output", str(folder / "out"),
        "--processes", str(processes), *options,
    ]  # fmt: skip
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / "dlkernel.json").read_text())
    return found


def rows(folder: Path, kind: str = "train") -> list[dict[str, Any]]:
    return [row for row in result(folder)["rows"] if row["kind"] == kind]
