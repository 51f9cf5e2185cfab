"""`tiercel share` that is killed: no server, no load, no command of the user goes on without it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tiercel.layers.fairshare.programs import find_programs

NOT_BUILT = "the fairshare layer is not built: run `make layers`, which needs Rust's cargo"
pytestmark = pytest.mark.skipif(find_programs() is None, reason=NOT_BUILT)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("bench", "--quick", "--data", "data"), {"fairshare-server", "fairshare-load"}),
        (("run", "--", "sleep", "600"), {"fairshare-server", "sleep"}),
    ],
)
def test_killed(tmp_path: Path, words: Sequence[str], wanted: set[str]) -> None:
    (tmp_path / "data").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "tiercel", "share", *words], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    children: list[psutil.Process] = []
    try:
        deadline = time.monotonic() + 60
        while wanted - (seen := {name for p in children for name in _name(p)}):
            assert process.poll() is None and time.monotonic() < deadline, seen
            children = psutil.Process(process.pid).children(recursive=True)
            time.sleep(0.02)
    finally:
        process.kill()
    process.wait(30)
    _, still = psutil.wait_procs(children, timeout=20)
    assert not still


def _name(process: psutil.Process) -> list[str]:
    """Return the name of a process that has not ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return [process.name()] if process.is_running() else []
    return []
