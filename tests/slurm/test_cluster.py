"""The virtual cluster itself: it starts and ends whatever the machine is busy with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Cluster

#: Takes its time where a control group is made, as on a machine under load.
_MKDIR = """#!/bin/sh
case $* in /sys/fs/cgroup/*) sleep 1 ;; esac
exec {mkdir} "$@"
"""


def test_its_first_process_is_told_from_what_starts_it(cluster: Cluster) -> None:
    """What made its control group was taken for it, on a busy machine: `stop` then ended nothing."""
    if not cluster.enforces_memory:
        pytest.skip("no control groups of memory can be made here")
    cluster.call("stop")
    # As left by one that ended while it was being started: a process that is gone, of unknown age.
    (cluster.state / "first").write_text("4194303 \n")
    slow = cluster.root / "slow"
    slow.mkdir()
    (slow / "mkdir").write_text(_MKDIR.format(mkdir="/bin/mkdir"))
    (slow / "mkdir").chmod(0o755)
    cluster.environment["PATH"] = f"{slow}:{cluster.environment['PATH']}"
    cluster.call("start")
    first = int((cluster.state / "first").read_text().split()[0])
    assert Path(f"/proc/{first}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    assert cluster.inside("hostname") == "login\n"
    cluster.call("stop")
    assert subprocess.run(["kill", "-0", str(first)], capture_output=True, check=False).returncode
    cluster.call("stop")  # again: there is nothing to end
