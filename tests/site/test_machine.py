"""How much memory this process may hold: control groups of both versions, made up and real."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tiercel.site.machine import free_memory, memory, memory_limit
from tiercel.site.mounts import read_mounts

MIB = 1024**2
V1_NONE = 2**63 - 4096


def process(tmp_path: Path, groups: str, *mounts: str) -> Path:
    """Make what /proc/self says of a process in `groups`, where `mounts` are (root, point, type, options)."""
    lines = []
    for mount in mounts:
        root, point, kind, options = mount.split()
        lines.append(f"35 31 0:32 {root} {tmp_path}{point} rw,relatime - {kind} {kind} {options}")
    folder = tmp_path / "self"
    folder.mkdir()
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text("\n".join(lines) + "\n")
    return folder


def limits(tmp_path: Path, files: Mapping[str, int | str]) -> None:
    for path, limit in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")


def version1(tmp_path: Path, groups: Mapping[str, int | str]) -> None:
    limits(tmp_path, {f"memory/{group}/memory.limit_in_bytes": limit for group, limit in groups.items()})


V1 = "/ /memory cgroup rw,memory"


def test_version_1_the_job_has_the_limit_and_its_step_has_none(tmp_path: Path) -> None:
    version1(tmp_path, {"slurm": V1_NONE, "slurm/job_1": 1000 * MIB, "slurm/job_1/step_0": V1_NONE})
    self = process(tmp_path, "9:name=systemd:/\n4:memory:/slurm/job_1/step_0\n0::/\n", V1)
    assert memory_limit(self) == 1000 * MIB


def test_version_1_the_least_counts_wherever_it_stands(tmp_path: Path) -> None:
    version1(tmp_path, {"a": 700 * MIB, "a/b": 900 * MIB})
    assert memory_limit(process(tmp_path, "4:cpu,memory:/a/b\n", V1)) == 700 * MIB


def test_version_1_without_a_limit(tmp_path: Path) -> None:
    version1(tmp_path, {"a": V1_NONE})
    assert memory_limit(process(tmp_path, "4:memory:/a\n3:cpuset:/\n", V1)) is None


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    """The mount's root is the container's group, and what stands there is the container's limit."""
    version1(tmp_path, {".": 2048 * MIB})
    self = process(tmp_path, "4:memory:/docker/abc\n", "/docker/abc /memory cgroup rw,memory")
    assert memory_limit(self) == 2048 * MIB


@pytest.mark.parametrize("group", ["/../../other", "/elsewhere"])
def test_a_group_outside_of_what_is_mounted_has_the_limit_of_the_mounts_root(
    tmp_path: Path, group: str
) -> None:
    version1(tmp_path, {".": 512 * MIB})
    self = process(tmp_path, f"4:memory:{group}\n", "/docker/abc /memory cgroup rw,memory")
    assert memory_limit(self) == 512 * MIB


def test_version_2(tmp_path: Path) -> None:
    limits(tmp_path, {"cg/a/memory.max": 800 * MIB, "cg/a/b/memory.max": "max"})
    self = process(tmp_path, "0::/a/b\n", "/ /cg cgroup2 rw")
    assert memory_limit(self) == 800 * MIB


def test_version_2_pages_are_taken_away_above_high(tmp_path: Path) -> None:
    limits(tmp_path, {"cg/a/memory.max": 800 * MIB, "cg/a/memory.high": 600 * MIB})
    assert memory_limit(process(tmp_path, "0::/a\n", "/ /cg cgroup2 rw")) == 600 * MIB


def test_what_a_limit_leaves_is_all_that_can_be_had(tmp_path: Path) -> None:
    """Of 1,000 MiB 700 are used, 150 of these by files: 450 are left. What lies on tmpfs is not dropped."""
    (tmp_path / "meminfo").write_text(f"MemTotal: {2**30} kB\nMemAvailable: {2**20} kB\n")
    version1(tmp_path, {"job": 1000 * MIB, "job/step": V1_NONE})
    self = process(tmp_path, "4:memory:/job/step\n", V1)
    assert free_memory(self, tmp_path) == 2**30  # what is used is not said
    group = tmp_path / "memory" / "job"
    (group / "memory.usage_in_bytes").write_text(f"{700 * MIB}\n")
    said = {"cache": 600, "total_inactive_file": 100, "total_active_file": 50, "total_inactive_anon": 450}
    (group / "memory.stat").write_text("".join(f"{name} {n * MIB}\n" for name, n in said.items()))
    assert free_memory(self, tmp_path) == 450 * MIB
    (tmp_path / "meminfo").write_text("MemAvailable: 1024 kB\n")
    assert free_memory(self, tmp_path) == MIB


def test_version_2_what_a_limit_leaves(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(f"MemAvailable: {2**20} kB\n")
    limits(tmp_path, {"c/job/memory.max": "max", "c/job/memory.high": 800 * MIB})
    limits(tmp_path, {"c/job/memory.current": 700 * MIB, "c/job/memory.stat": f"inactive_file {50 * MIB}"})
    self = process(tmp_path, "0::/job\n", "/ /c cgroup2 rw")
    assert free_memory(self, tmp_path) == 150 * MIB


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "absent") is None


def test_a_process_in_a_real_group_is_held_to_the_group_above() -> None:
    """A group of 300 MiB, and in it one without a limit, in which a process asks."""
    outer = _group()
    inner = outer / "inner"
    try:
        inner.mkdir()
        file = "memory.limit_in_bytes" if (outer / "memory.limit_in_bytes").exists() else "memory.max"
        (outer / file).write_text(str(300 * MIB))
        code = "from tiercel.site.machine import memory, memory_limit; print(memory_limit(), memory())"
        answer = subprocess.run(
            ["sh", "-c", f'echo $$ >"$0/cgroup.procs" && exec {sys.executable} -c "{code}"', str(inner)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert answer.stdout.split() == [str(300 * MIB)] * 2
    finally:
        for folder in (inner, outer):
            if folder.exists():
                folder.rmdir()
    assert memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _group() -> Path:
    """Make a control group of this machine with a say about memory; skip where nobody may."""
    for mount in read_mounts():
        if mount.type == "cgroup2" or (mount.type == "cgroup" and "memory" in mount.options.split(",")):
            folder = mount.point / f"tiercel-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            if any((folder / name).exists() for name in ("memory.limit_in_bytes", "memory.max")):
                return folder
            folder.rmdir()
    pytest.skip("no control group of memory can be made here (needs root)")
