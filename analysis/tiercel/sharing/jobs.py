"""Runs competing jobs against one server and says what each of them got when."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiercel.children import killed_with_parent
from tiercel.errors import RunFailed
from tiercel.layers.fairshare.protocol import Connection, Job, accelerated

#: Time that processes get to connect and write their files before the measured time begins, seconds.
_HEAD_START_S = 0.4
_GRACE_S = 60.0


@dataclass(frozen=True)
class Load:
    """One job of an experiment: who, how large, and what I/O its processes do from `start` on (seconds)."""

    job: Job
    processes: int
    pattern: str = "cycle"
    start: float = 0.0
    seconds: float = 2.0
    transfer: int = 1 << 20
    size: int = 10 << 20
    delay: float = 0.0


@dataclass(frozen=True)
class Place:
    """Where the jobs do their I/O: folder `folder`, in the mount of `server`, which knows each by its ticket.

    `library`: the preload library that moves their large data; None where they do without or have it.
    """

    load: Path
    folder: Path
    server: Path | None = None
    library: Path | None = None


@dataclass(frozen=True)
class Throughput:
    """What a job got: one value for each interval of the experiment, bytes and operations per second."""

    job: str
    interval: float
    bytes_per_second: NDArray[np.float64]
    operations_per_second: NDArray[np.float64]
    latency_p50: float | None
    latency_p99: float | None

    def between(self, start: float, end: float, operations: bool = False) -> NDArray[np.float64]:
        """Return the bytes (or operations) per second of the intervals that lie within [start, end)."""
        first, last = round(start / self.interval), round(end / self.interval)
        return (self.operations_per_second if operations else self.bytes_per_second)[first:last]


def beginning() -> float:
    """Return the moment (Unix seconds) for jobs to begin together that are started now."""
    return time.time() + _HEAD_START_S


def run_jobs(
    place: Place, loads: Sequence[Load], interval: float = 0.1, at: float | None = None
) -> list[Throughput]:
    """Run `loads` at the same time and return their throughput on one time axis, which begins at `at`.

    Raises RunFailed when a job fails or hangs.
    """
    at = at or beginning()
    started: list[tuple[Load, subprocess.Popen[str]]] = []
    members = ExitStack()
    try:
        for load in loads:
            member = members.enter_context(membership(place, load.job))
            started.append((load, start_load(place, load, interval, at, member)))
        length = max(load.start + load.seconds for load in loads)
        deadline = time.monotonic() + length + _GRACE_S
        return [collect(load, process, deadline, length, interval) for load, process in started]
    finally:
        for _, process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
        members.close()


@dataclass(frozen=True)
class Member:
    """What a job's processes need: variables, their folder, and what each calls between fork and exec."""

    environment: Mapping[str, str]
    folder: str
    enter: Callable[[], None]


@contextmanager
def membership(place: Place, job: Job) -> Iterator[Member]:
    """A job, as long as this lasts: the server counts to it what its processes do in the mount."""
    folder = place.folder / job.name
    folder.mkdir(exist_ok=True)
    if place.server is None:
        yield Member(os.environ, str(folder), killed_with_parent)
        return
    with Connection(place.server) as connection:
        ticket = connection.ticket(job)
    environment = dict(os.environ)
    if place.library:
        environment |= accelerated(place.library, place.folder, environment.get("LD_PRELOAD", ""))
    with Connection(place.server, ticket) as connection:

        def enter() -> None:
            killed_with_parent()
            connection.join(os.getpid())

        yield Member(environment, str(folder), enter)


def start_load(place: Place, load: Load, interval: float, at: float, member: Member) -> subprocess.Popen[str]:
    """Start a job's processes; :func:`collect` waits for them. SIGTERM ends them early, with a result."""
    argv = [
        str(place.load), "--path", member.folder, "--pattern", load.pattern,
        "--processes", str(load.processes), "--seconds", f"{load.seconds:g}",
        "--at", f"{at + load.start:.6f}", "--interval", f"{interval:g}",
        "--size", str(load.size), "--transfer", str(load.transfer),
    ]  # fmt: skip
    if load.delay:
        argv += ["--delay", f"{load.delay:g}"]
    return subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=member.environment, preexec_fn=member.enter,  # noqa: PLW1509
    )  # fmt: skip


def collect(
    load: Load, process: subprocess.Popen[str], deadline: float, length: float, interval: float
) -> Throughput:
    """Return what a job got, on an axis of `length` seconds; RunFailed where it failed or did not end."""
    try:
        out, err = process.communicate(timeout=max(1.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise RunFailed(f"job {load.job.name} did not end in time") from None
    if process.returncode:
        last = (err.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise RunFailed(f"job {load.job.name}: {last}")
    found: dict[str, Any] = json.loads(out)
    before, intervals = round(load.start / interval), round(length / interval)

    def axis(values: list[int]) -> NDArray[np.float64]:
        whole = np.zeros(intervals)
        room = whole[before : before + len(values)]
        room[:] = np.asarray(values[: len(room)], dtype=float) / interval
        return whole

    return Throughput(
        load.job.name, interval, axis(found["bytes"]), axis(found["operations"]),
        found.get("latency_p50"), found.get("latency_p99"),
    )  # fmt: skip
