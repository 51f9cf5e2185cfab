"""Control groups of version 2 on a real kernel, wherever the tests run: Linux as a program (User Mode Linux).

Machines whose memory is limited by version 1 have no memory controller of version 2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: Debian's package user-mode-linux. Nothing of it needs root.
KERNEL = shutil.which("linux.uml")

MIB = 1024**2

#: The first process of that kernel, on this machine's files, which it may only read. Groups: a (300 MiB), a/b
#: (no limit of its own), a/c (pages are taken away above 200 MiB). A container sees its group as the root.
INIT = """#!/bin/bash
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmpfs /tmp
groups=/sys/fs/cgroup
mount -t cgroup2 cgroup2 $groups
ask() {{ echo "answer $1 $({python} -c '{code}')"; }}
within() {{ echo $BASHPID >$groups/$1/cgroup.procs; }}
export -f ask
ask root
echo +memory >$groups/cgroup.subtree_control
mkdir $groups/a
echo +memory >$groups/a/cgroup.subtree_control
mkdir $groups/a/b $groups/a/c
echo 300M >$groups/a/memory.max
echo 200M >$groups/a/c/memory.high
(within a/b; ask above)
(within a/c; ask high)
(within a/c; unshare --cgroup --mount bash -c "umount $groups; mount -t cgroup2 own $groups; ask container")
mkdir /tmp/part
mount --bind $groups/a /tmp/part
umount $groups
echo $BASHPID >/tmp/part/b/cgroup.procs
ask part
echo o >/proc/sysrq-trigger
sleep 60
"""
CODE = "from tiercel.site.machine import *; print(memory_limit(), memory())"


@pytest.mark.nightly
@pytest.mark.skipif(KERNEL is None, reason="no linux.uml (Debian: user-mode-linux)")
def test_limits_of_version_2_on_a_real_kernel(tmp_path: Path) -> None:
    init = tmp_path / "init"
    init.write_text(INIT.format(python=sys.executable, code=CODE))
    init.chmod(0o755)
    answer = subprocess.run(
        [str(KERNEL), "mem=512M", "root=/dev/root", "rootfstype=hostfs", "hostfs=/", "ro", f"init={init}",
         "con=null", "con0=null,fd:1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    said = [line.split()[1:] for line in answer.stdout.splitlines() if line.startswith("answer ")]
    found = {name: (limit, memory) for name, limit, memory in said}
    assert set(found) == {"root", "above", "high", "container", "part"}, answer.stdout[-3000:]
    assert found["root"][0] == "None"
    assert found["above"] == found["part"] == (str(300 * MIB),) * 2
    assert found["high"] == found["container"] == (str(200 * MIB),) * 2
