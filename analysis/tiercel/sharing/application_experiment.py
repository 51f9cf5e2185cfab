"""A real application beside a background job: paper 001, section 5.5."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.clock import since
from tiercel.errors import RunFailed
from tiercel.layers.fairshare.protocol import Connection, Job
from tiercel.sharing.applications import commands_of
from tiercel.sharing.jobs import Load, Place, Throughput, beginning, collect, membership, start_load
from tiercel.sharing.timed import timed
from tiercel.sharing.watch import Watch
from tiercel.sharing.workload_application import SharingApplicationWorkload

#: The largest request that a server serves in one piece, bytes: the shared memory's slots.
PIECE = 128 << 10
_GRACE_S = 60.0
#: The background job has this time for itself before the application starts, seconds.
_LEAD_S = 0.5


def application_experiment(load: Path, folder: Path, workload: SharingApplicationWorkload) -> dict[str, Any]:
    """Run the application alone, beside the background job, and alone again; return one document.

    Through the layer rates, shares and what the policy allows are of the server's own account; on plain
    storage only the background job's throughput and the slowdown are known.
    """
    server = os.environ.get("FAIRSHARE_SERVER")
    place = Place(load, folder, Path(server) if server else None)
    job = Job(workload.application, workload.size, workload.priority, workload.user, workload.group)
    b = workload.background
    other = Job(b.name, b.size, b.priority, b.user, b.group)
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tiercel-sharing-") as output, ExitStack() as there:
        member = there.enter_context(membership(place, job))
        background_member = there.enter_context(membership(place, other))
        own = member.folder
        commands = commands_of(workload, own, Path(output))

        def ready() -> None:
            """Let a run find its folder as the first one does, whatever another made there or used up."""
            shutil.rmtree(own)
            Path(own).mkdir()
            for command in commands.prepare:
                timed(command, member, workload, "its preparation: ")

        ready()
        alone = [timed(commands.run, member, workload)]
        ready()
        at = beginning()
        clock = since(at)
        disturbing = Load(
            other, b.processes, b.pattern, 0.0, workload.longest + 2 * _LEAD_S, b.transfer_size, b.file_size
        )
        length = disturbing.seconds
        watch = Watch(place.server, at, length, workload.interval) if place.server else None
        process = start_load(place, disturbing, workload.interval, at, background_member)
        try:
            time.sleep(max(0.0, _LEAD_S - clock()))
            before = _account(place.server)
            start = clock()
            together = timed(commands.run, member, workload)
            after, end = _account(place.server), clock()
            if process.poll() is not None:
                collect(disturbing, process, time.monotonic() + 1, length, workload.interval)
                raise RunFailed("the background job ended before the application")
            process.send_signal(signal.SIGTERM)
            background = collect(disturbing, process, time.monotonic() + _GRACE_S, length, workload.interval)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            if watch:
                watch.end()
        ready()
        alone.append(timed(commands.run, member, workload))
    found = summary(
        workload, alone, together, (start, end), background, before.moved, after.moved,
        before.entitled, before.rate,
    )  # fmt: skip
    served = watch.rates([job.name], 0.0, end) if watch else None
    if served:
        found["jobs"][0]["series"] = served[job.name].tolist()
    return found


def summary(
    workload: SharingApplicationWorkload,
    alone_seconds: Sequence[float],
    together: float,
    contested: tuple[float, float],
    background: Throughput,
    before: Mapping[str, Mapping[str, float]],
    after: Mapping[str, Mapping[str, float]],
    entitled: Mapping[str, float],
    storage_rate: int = 0,
) -> dict[str, Any]:
    """Return the document.

    `alone_seconds` (of each run alone) and `together` are the application's; `before` and `after` the
    server's accounts; `storage_rate` the bytes per second that it paces itself to, 0 for none.
    """
    alone = float(np.mean(alone_seconds))
    start, end = contested
    names = (workload.application, background.job)
    moved = {name: _difference(before, after, name) for name in names} if after else {}
    sum_entitled = sum(entitled.get(name, 0.0) for name in names)
    shares = {n: entitled[n] / sum_entitled for n in names if n in entitled} if sum_entitled else {}
    total = sum(m["bytes"] for m in moved.values())
    last = round(end / workload.interval)
    jobs = []
    for number, name in enumerate(names):
        application = number == 0
        seen = moved.get(name)
        during = background.between(start, end)
        rate = seen["bytes"] / (end - start) if seen else 0.0 if application else float(during.mean())
        jobs.append({
            "job": name, "number": number,
            "bytes_per_second": rate,
            "operations_per_second": seen["operations"] / (end - start) if seen else None,
            "bytes": round(seen["bytes"]) if seen else None,
            "operations": round(seen["operations"]) if seen else None,
            "seconds": together if application else end - start,
            "latency_p50": None if application else background.latency_p50,
            "latency_p99": None if application else background.latency_p99,
            "share": seen["bytes"] / total if seen and total else None,
            "entitled": shares.get(name),
            "deviation": None,
            "slowdown": together / alone - 1 if application else None,
            "allowed": allowed(seen, total / (end - start), shares.get(name), alone) if application else None,
            "noise": float(np.ptp(alone_seconds)) / alone if application else None,
            "series": [] if application else background.bytes_per_second[: last + 1].tolist(),
        })  # fmt: skip
    return {
        "interval": workload.interval, "unit": "B/s", "contested": [start, end], "alone": alone,
        "alone_seconds": list(alone_seconds), "rate": storage_rate, "jobs": jobs,
        "total": {
            "bytes_per_second": total / (end - start) if total else jobs[1]["bytes_per_second"],
            "operations_per_second": None, "seconds": end - start, "seconds_to_share": None,
        },
    }  # fmt: skip


def allowed(
    moved: Mapping[str, float] | None, capacity: float, share: float | None, alone: float
) -> float | None:
    """Return the slowdown that a fair share allows, None where share or account is not known.

    By hand: data that takes W / C seconds at the storage's full rate C takes W / (s C) with a share s, so
    the application loses W / C (1 / s - 1) at most; and each of its requests may have to wait for the one
    that is being served. (That processors are shared, too, is not in it.)
    """
    if moved is None or not share or not capacity:
        return None
    waiting = moved["operations"] * PIECE / capacity
    return (moved["bytes"] / capacity * (1 / share - 1) + waiting) / alone


@dataclass(frozen=True)
class _Account:
    """What a server says: its rate, what it has moved for each job so far, what each is entitled to now."""

    rate: int = 0
    moved: dict[str, dict[str, float]] = field(default_factory=dict)
    entitled: dict[str, float] = field(default_factory=dict)


def _account(server: Path | None) -> _Account:
    """Ask a server; empty without one. First come, first served entitles nobody to anything."""
    if server is None:
        return _Account()
    with Connection(server) as connection:
        found = connection.status()
    jobs = found["jobs"]
    moved = {
        j["job"]: {"bytes": j["bytes_read"] + j["bytes_written"], "operations": j["operations"]} for j in jobs
    }
    shares = {j["job"]: j["share"] for j in jobs if j["share"] is not None}
    return _Account(found.get("rate", 0), moved, {} if found["policy"] == "fifo" else shares)


def _difference(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]], name: str
) -> dict[str, float]:
    old, new = before.get(name, {}), after.get(name, {})
    return {key: new.get(key, 0) - old.get(key, 0) for key in ("bytes", "operations")}
