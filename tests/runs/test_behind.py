"""A cache behind the client, for real: a loop device whose backing file lies in this machine's page cache, as
data in a file server's memory. Loop devices need root."""

from __future__ import annotations

import os
import statistics
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pandas as pd
import pytest

from tiercel.results.behind import judge
from tiercel.results.validity import BEHIND
from tiercel.runs.behind import sample

from ..conftest import Project, needs_iokernel

MIB = 1024**2
#: Samples of each; what is asked of them holds for most.
SAMPLES = 9


class Loop:
    """An ext4 on a loop device of a backing file."""

    def __init__(self, folder: Path, direct: bool) -> None:
        self.backing, self.mount = folder / "backing", folder / "mnt"
        self.mount.mkdir(parents=True)
        os.truncate(os.open(self.backing, os.O_CREAT | os.O_WRONLY, 0o600), 400 * MIB)
        _done("mkfs.ext4", "-q", "-F", str(self.backing))
        options = ["--direct-io=on"] if direct else []
        self.device = _done("losetup", "--find", "--show", *options, str(self.backing))
        _done("mount", self.device, str(self.mount))
        if direct and "1" not in _done("losetup", "-n", "-O", "DIO", "-l", self.device):
            self.end()
            pytest.skip("no loop device with direct I/O on the file system of the tests")

    def fill(self) -> Path:
        data = self.mount / "data"
        data.mkdir()
        with (data / "file").open("wb") as file:
            for _ in range(64):
                file.write(os.urandom(MIB))
            file.flush()
            os.fsync(file.fileno())
        return data

    def forget(self, every: int) -> None:
        """Drop each `every`-th MiB of the backing file from the page cache: the server forgets it."""
        descriptor = os.open(self.backing, os.O_RDONLY)
        os.fsync(descriptor)
        for at in range(0, os.fstat(descriptor).st_size, every * MIB):
            os.posix_fadvise(descriptor, at, MIB, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)

    def end(self) -> None:
        subprocess.run(["umount", str(self.mount)], check=False, capture_output=True)
        subprocess.run(["losetup", "--detach", self.device], check=False, capture_output=True)


def _done(*argv: str) -> str:
    found = subprocess.run(argv, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"no loop devices here: {argv[0]}: {found.stderr.strip()}")
    return found.stdout.strip()


@pytest.fixture(params=[False], ids=["buffered"])
def loop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Loop]:
    if os.geteuid():
        pytest.skip("loop devices need root")
    made = Loop(tmp_path / "loop", direct=request.param)
    yield made
    made.end()


def fractions(loop: Loop, data: Path, every: int = 0) -> list[float | None]:
    found = []
    for seed in range(SAMPLES):
        if every:
            loop.forget(every)
        found.append(judge(sample(data, seed)).fraction)
    return found


def test_what_the_server_holds_is_never_called_cold(loop: Loop) -> None:
    """How quick a loop device answers hangs on where its thread wakes: above FLOOR_US nothing is told."""
    told = [share for share in fractions(loop, loop.fill()) if share is not None]
    assert all(share >= BEHIND for share in told)


def test_half_of_it(loop: Loop) -> None:
    told = [share for share in fractions(loop, loop.fill(), every=2) if share is not None]
    assert len(told) > SAMPLES / 2
    assert statistics.median(told) == pytest.approx(0.5, abs=0.2)


def test_none_of_it_and_that_is_proved(loop: Loop) -> None:
    """The server reads it from its disk, and has it when it is asked again: the first reads were cold."""
    told = [share for share in fractions(loop, loop.fill(), every=1) if share is not None]
    assert len(told) > SAMPLES / 2
    assert statistics.median(told) < BEHIND


@pytest.mark.parametrize("loop", [True], indirect=True, ids=["direct"])
def test_no_cache_no_word(loop: Loop) -> None:
    told = [share for share in fractions(loop, loop.fill()) if share is not None and share >= BEHIND]
    assert len(told) <= 1


def test_memory_and_little_data_are_not_sampled(tmp_path: Path) -> None:
    (tmp_path / "little").write_bytes(b"x" * MIB)
    assert sample(tmp_path, 1) is None
    assert sample(tmp_path / "nothing", 1) is None


@contextmanager
def forgetting(loop: Loop) -> Iterator[None]:
    """A server that forgets every second MiB again and again."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(0.02):
            loop.forget(every=2)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


STUDY = """
    study: cold
    title: Reads that seem cold
    stacks: all
    repetitions: {minimum: 3, maximum: 3}
    twins: false
    experiments:
      data:
        workloads:
          fresh: &read {operation: read, transfer_size: 1MiB, data_per_process: 48MiB}
          rested: {<<: *read, rest: 300ms}
          warm: {<<: *read, access: RAR, cold: false}
"""


@needs_iokernel
def test_a_study_says_so(loop: Loop, project: Project) -> None:
    project.site(f"""
        site: local
        processes_per_node: 1
        storages:
          main: {{type: ext4, mount: {loop.mount}, scratch: {loop.mount}/scratch, medium: disk}}
    """)
    (loop.mount / "scratch").mkdir()
    project.study("cold", dedent(STUDY))
    with forgetting(loop):
        done = project.tiercel("evaluate", "--study", "cold")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    rows = rows[(rows["role"] == "measured") & (rows["operation"] == "read")].set_index("workload")
    cold, warm = rows.loc[["fresh", "rested"]], rows.loc[["warm"]]
    assert (cold["resident_fraction"] <= 0.01).all()  # on this side of the server it was cold
    flagged = cold["flags"].map(lambda flags: "cache-behind" in flags)
    assert flagged.sum() > len(cold) / 2
    assert (flagged == (cold["behind_fraction"] >= BEHIND)).all()
    assert set(rows.loc["rested", "rested"]) == {0.3} and rows.loc["fresh", "rested"].isna().all()
    assert warm["behind_fraction"].isna().all()
    runs = pd.read_parquet(project.results / "runs.parquet").set_index("workload")
    assert (runs.loc["rested", "duration"] - runs.loc["rested", "engine_time"] >= 0.3).all()
    assert "from a cache behind them" in (project.results / "report" / "index.html").read_text()
