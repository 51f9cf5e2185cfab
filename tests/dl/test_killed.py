"""`tiercel dl run` that is ended or killed: nothing goes on measuring, and no folder stays for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

#: Hours of computation: it ends because it is told to.
RUN = [
    sys.executable, "-m", "tiercel", "dl", "run", "resnet50-vast", "--engine", "dlkernel", "--scale", "0.01",
    "-n", "2", "--set", "train.computation_time=60",
]  # fmt: skip


def start(tmp: Path, *more: str) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """Start a training in `tmp`; return it and its kernel's processes once they have begun to train."""
    process = subprocess.Popen(
        [*RUN, *more],
        env={**os.environ, "TMPDIR": str(tmp)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        kernels = [
            p
            for p in psutil.Process(process.pid).children(recursive=True)
            if "tiercel.dl.kernel" in _words(p)
        ]
        if kernels and list(tmp.glob("tiercel-dl-data-*/data/*/dataset.json")):
            return process, kernels
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"no training: {process.communicate()[1].decode()}")


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def gone(processes: list[psutil.Process]) -> bool:
    _, still = psutil.wait_procs(processes, timeout=20)
    return not still


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_ended_it_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    process, kernels = start(tmp_path)
    process.send_signal(how)
    assert process.wait(30) == 130
    assert gone(kernels)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("processes", ["1", "3"])
def test_a_process_that_is_killed_is_told(tmp_path: Path, processes: str) -> None:
    process, kernels = start(tmp_path, "-n", processes, "--set", "reader.read_threads=0")
    root = kernels[0]
    others = root.children()
    assert len(others) == int(processes) - 1
    (others or [root])[0].kill()
    said = process.communicate(timeout=30)[1].decode()
    assert process.returncode == 2
    assert gone(kernels)
    assert "SIGKILL (killed, or out of memory)" in said
    assert len(said.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_killed_its_kernel_ends_and_the_next_one_removes_its_folders(tmp_path: Path) -> None:
    process, kernels = start(tmp_path)
    process.kill()
    process.wait(30)
    assert gone(kernels)
    left = set(tmp_path.iterdir())
    assert {p.name.rsplit("-", 1)[0] for p in left} == {"tiercel-dl-data", "tiercel-dl-output"}

    second, kernels = start(tmp_path)
    third, more = start(tmp_path)  # while somebody is at work, his folders stay
    during = set(tmp_path.iterdir())
    for each in (second, third):
        each.terminate()
        assert each.wait(30) == 130
    assert gone([*kernels, *more])
    assert not left & during
    assert len(during) == 4
    assert list(tmp_path.iterdir()) == []


def test_killed_while_it_computes_no_process_goes_on(tmp_path: Path) -> None:
    # All are in the first step, which takes minutes at this scale: nobody looks for the others.
    process, _ = start(tmp_path, "--set", "train.computation_time=1000000")
    root = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while len(kernels := [p for p in root.children(recursive=True) if "tiercel.dl.kernel" in _words(p)]) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(1)
    process.kill()
    process.wait(30)
    _, still = psutil.wait_procs(kernels, timeout=20)
    for one in still:
        one.kill()
    assert not still
