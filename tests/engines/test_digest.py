"""Versions of engines tell builds apart that may perform otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import pytest

from tiercel.caching.workload import StreamWorkload
from tiercel.engines import engines
from tiercel.engines.base import Task
from tiercel.engines.digest import digest_of
from tiercel.results.validity import flags_of


def test_each_part_counts_and_so_does_its_absence(tmp_path: Path) -> None:
    code, library = tmp_path / "code", tmp_path / "lib.so"
    code.mkdir()
    (code / "a.py").write_text("1")
    (code / "notes.txt").write_text("no code")
    seen = {digest_of([code, library])}
    library.write_bytes(b"fast")
    seen.add(digest_of([code, library]))
    (code / "a.py").write_text("2")
    seen.add(digest_of([code, library]))
    (code / "b.py").write_text("")
    seen.add(digest_of([code, library]))
    assert len(seen) == 4
    (code / "notes.txt").write_text("still none")
    assert digest_of([code, library]) in seen


def test_dlkernel_with_and_without_its_c_library_are_two() -> None:
    code = "from tiercel.engines import engines; print(engines.get('dlkernel')().find().version)"
    versions = {
        subprocess.run([sys.executable, "-c", code], env={"PATH": "/usr/bin:/bin", **more},
                       capture_output=True, text=True, check=True).stdout
        for more in ({}, {"TIERCEL_DLKERNEL": "off"})
    }  # fmt: skip
    assert len(versions) == 2


def test_h5kernel_that_read_less_than_it_was_to_is_told(tmp_path: Path) -> None:
    """2 processes, 10 samples of 100 bytes, 3 epochs: 2,000 bytes in the first, 4,000 in the others. One
    process lost half an epoch: nothing that sums up what was read could tell."""
    pytest.importorskip("h5py")
    workload = StreamWorkload(operation="hdf5-stream", samples=10, sample_size=100, epochs=3)
    task = Task(workload, 1, 2, tmp_path, tmp_path, 1, "fork")
    whole = [{"seconds": 1.0, "bytes": 1000.0}] * 3
    for last, flagged in ((1000.0, False), (500.0, True)):
        short = [*whole[:2], {"seconds": 1.0, "bytes": last}]
        (tmp_path / "h5kernel.json").write_text(json.dumps([whole, short]))
        first, later = engines.get("h5kernel")().parse(task, tmp_path)
        assert (first.bytes_expected, later.bytes_expected) == (2000, 4000)
        assert ("short-data" in flags_of(defaultdict(lambda: None, asdict(later)))) is flagged
        assert "short-data" not in flags_of(defaultdict(lambda: None, asdict(first)))
