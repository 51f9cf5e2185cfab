"""The conditions of a run."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from tiercel.runs.context import Sample, between, journal
from tiercel.runs.quota import left_of, quota_of
from tiercel.site.machine import throttling
from tiercel.site.mounts import Mount


@pytest.mark.parametrize(
    ("options", "keeps"),
    [
        ("rw\nbsddf\njournal_checksum\nbarrier\ndata=ordered\n", True),
        ("rw\nbsddf\nnojournal_checksum\nbarrier\n", False),
    ],
)
def test_ext4_says_whether_it_keeps_a_journal(options: str, keeps: bool, tmp_path: Path) -> None:
    (tmp_path / "sdb1").mkdir()
    (tmp_path / "sdb1" / "options").write_text(options)
    mount = Mount(Path("/data"), "ext4", "/dev/sdb1", "rw,relatime", "/")
    assert journal(mount, tmp_path) is keeps


def test_a_journal_that_nobody_tells_of_is_unknown(tmp_path: Path) -> None:
    assert journal(None, tmp_path) is None
    assert journal(Mount(Path("/data"), "xfs", "/dev/sdb1", "rw", "/"), tmp_path) is None
    assert journal(Mount(Path("/data"), "ext4", "/dev/sdb2", "rw", "/"), tmp_path) is None


def sample(**other: Any) -> Sample:
    none = {"monotonic": 0.0, "load1": 0.0, "busy_cpu": None, "children_cpu": 0.0}
    return Sample(**{**none, "stolen_cpu": None, "throttling": {}, "pressure": {}, **other})


def test_what_a_quota_and_a_hypervisor_took_is_of_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_NPROCESSORS_ONLN": 4, "SC_CLK_TCK": 100}[name])
    before = sample(stolen_cpu=10.0, throttling={"/a": (100, 90), "/": (1000, 0)})
    after = sample(
        monotonic=5.0, stolen_cpu=12.0, throttling={"/a": (120, 95), "/": (1050, 1), "/new": (0, 0)}
    )
    found = between(before, after)
    assert found["stolen_cpu"] == pytest.approx(2 / 5 / 4)  # 2 s of 4 cores in 5 s
    assert found["throttled"] == pytest.approx(5 / 20)  # of the group that throttled most
    nothing = between(sample(), sample(monotonic=5.0))
    assert nothing["throttled"] is None and "stolen_cpu" not in nothing


@pytest.mark.parametrize(("kind", "controllers"), [("cgroup2", ""), ("cgroup", "cpu,cpuacct")])
def test_the_throttling_of_all_groups_above_is_seen(tmp_path: Path, kind: str, controllers: str) -> None:
    """A quota is often that of a slice or pod above the process' own group."""
    process, tree = tmp_path / "self", tmp_path / "tree"
    (tree / "slice" / "job").mkdir(parents=True)
    process.mkdir()
    (process / "cgroup").write_text(f"7:{controllers}:/slice/job\n3:memory:/x\n")
    (process / "mountinfo").write_text(f"30 20 0:26 / {tree} rw - {kind} cgroup rw,{controllers or 'x'}\n")
    (tree / "slice" / "cpu.stat").write_text("usage_usec 5\nnr_periods 658\nnr_throttled 656\n")
    (tree / "slice" / "job" / "cpu.stat").write_text("nr_periods 0\nnr_throttled 0\n")
    (tree / "cpu.stat").write_text("usage_usec 5\n")
    assert throttling(process) == {str(tree / "slice"): (658, 656)}


def test_a_quota_is_the_least_of_its_limits() -> None:
    """100 GiB hard, 80 GiB soft, in blocks of 1 KiB; 60 GiB in use."""
    gib = 1024**3
    row = struct.pack("=8QI4x", 100 * gib // 1024, 80 * gib // 1024, 60 * gib, 0, 0, 0, 0, 0, 0)
    assert left_of(row) == (80 * gib, 20 * gib)
    assert left_of(struct.pack("=8QI4x", 0, 0, 60 * gib, 0, 0, 0, 0, 0, 0)) is None


def test_a_folder_without_a_quota_has_none(tmp_path: Path) -> None:
    quota, left = quota_of(tmp_path)
    assert (quota is None) == (left is None)
