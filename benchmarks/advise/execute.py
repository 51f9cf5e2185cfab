"""One timed execution of a command: wall and CPU time, and what went wrong."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Execution:
    """Seconds; CPU is of the process and of its children that it waited for. `failed`: why, or empty."""

    wall: float
    cpu: float
    failed: str


def execute(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Execution:
    """Run `command` in `folder` and wait for it, at most TIMEOUT_S."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
            stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        began = time.monotonic()  # the program has replaced the copy of this process
        status, cpu, failed = _wait(process.pid, began + TIMEOUT_S)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode and not failed:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:]
            failed = f"exit code {process.returncode}: {' '.join(last)[:300]}"
    return Execution(wall, cpu, failed)


def _wait(pid: int, deadline: float) -> tuple[int, float, str]:
    """Return (status, CPU seconds, why it was ended), as soon as the process has ended."""
    failed = ""
    ended = os.pidfd_open(pid)
    try:
        if not select.select([ended], [], [], max(0.0, deadline - time.monotonic()))[0]:
            failed = f"ended after {TIMEOUT_S:.0f} s"
            os.killpg(pid, signal.SIGKILL)  # its own session: it and its children
    finally:
        os.close(ended)
    _, status, used = os.wait4(pid, 0)
    return status, used.ru_utime + used.ru_stime, failed
