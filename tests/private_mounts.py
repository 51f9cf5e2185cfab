"""Scripts that mount file systems where nobody else sees it: in a mount namespace of their own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest


def _command() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]


@cache
def _problem(script: str) -> str:
    """Return why a script that only mounts something does not work here; empty where it does."""
    with tempfile.TemporaryDirectory(prefix="tiercel-mounts-") as folder:
        try:
            done = subprocess.run(
                [*_command(), "bash", "-ec", script], capture_output=True, text=True, timeout=60, check=False,
                env={**os.environ, "W": folder},
            )  # fmt: skip
        except FileNotFoundError as error:
            return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason"])[-1]


def require_mount(kind: str) -> None:
    """Skip the test unless a file system of this kind can be mounted here: tmpfs, overlay, ext4 or xfs."""
    scripts = {
        "tmpfs": "mount -t tmpfs tmpfs $W",
        "overlay": "mount -t tmpfs tmpfs $W; mkdir $W/{l,u,w,m}; "
        "mount -t overlay o -o lowerdir=$W/l,upperdir=$W/u,workdir=$W/w $W/m",
        "ext4": "truncate -s 16M $W/i; mkfs.ext4 -q -F $W/i; mkdir $W/m; mount -o loop $W/i $W/m; "
        "umount $W/m",
        "xfs": "truncate -s 320M $W/i; mkfs.xfs -q $W/i; mkdir $W/m; mount -o loop $W/i $W/m; umount $W/m",
    }
    if problem := _problem(scripts[kind]):
        pytest.skip(f"cannot mount {kind} here: {problem}")


def run_script(script: str, folder: Path, **environment: str) -> str:
    """Run a bash script in `folder`, in a mount namespace of its own; return what it prints."""
    done = subprocess.run(
        [*_command(), "bash", "-ec", script], cwd=folder, capture_output=True, text=True, timeout=300,
        check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
