"""``tiercel share bench``: what the layer costs, and whether it shares as the policy says.

Everything is a ratio of things measured beside each other, in interleaved rounds: the speed of a shared
machine is nobody's property.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.programs import Programs, required_programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.layers.fairshare.server import Server, memory_folder, running_server
from tiercel.sharing.jobs import PREFIX, Load, Place, Throughput, run_jobs

#: Of the file that the solo jobs write and read, bytes: what the limit stores, too.
FILE_SIZE = 10 << 20


@dataclass(frozen=True)
class Contest:
    """Jobs that compete under a policy, and the shares that it entitles them to."""

    name: str
    policy: str
    jobs: Sequence[tuple[Job, int]]
    """Each with its number of processes."""
    entitled: dict[str, float]
    scheduler: str = "stride"
    options: tuple[str, ...] = field(default=())


def contests(schedulers: Sequence[str] = ("stride", "token")) -> list[Contest]:
    """Return the contests of the paper's section 5.3, with numbers of processes for a small machine.

    Entitled shares by hand: size-fair 4:1 is 4/5 and 1/5; user-fair gives each of two users a half, and a
    user's two jobs halves of that; user-then-size splits a user's half 1:2 and 4:6; group-user-size gives
    each group a half, each of group 2's users a half of that, and splits by size within a user.
    """
    found = [
        Contest("size-fair 4:1", "size-fair", [(Job("big", size=4), 8), (Job("small"), 4)],
                {"big": 4 / 5, "small": 1 / 5}),
        Contest("job-fair", "job-fair", [(Job("big", size=4), 8), (Job("small"), 4)],
                {"big": 1 / 2, "small": 1 / 2}),
        Contest("user-fair, 2 users", "user-fair",
                [(Job("a1", user=1), 4), (Job("a2", user=1), 4), (Job("b1", user=2), 4)],
                {"a1": 1 / 4, "a2": 1 / 4, "b1": 1 / 2}),
        Contest("user-then-size-fair", "user-then-size-fair",
                [(Job("a1", user=1, size=1), 3), (Job("a2", user=1, size=2), 3),
                 (Job("b1", user=2, size=4), 3), (Job("b2", user=2, size=6), 3)],
                {"a1": 1 / 6, "a2": 1 / 3, "b1": 1 / 5, "b2": 3 / 10}),
        Contest("group-user-size-fair", "group-user-size-fair",
                [(Job("g1", group=1, user=1), 4), (Job("g2u2a", group=2, user=2, size=2), 3),
                 (Job("g2u2b", group=2, user=2, size=3), 3), (Job("g2u3", group=2, user=3), 3)],
                {"g1": 1 / 2, "g2u2a": 1 / 10, "g2u2b": 3 / 20, "g2u3": 1 / 4}),
    ]  # fmt: skip
    for scheduler in schedulers:
        if scheduler != "stride":
            first = found[1]
            found.append(
                Contest(f"job-fair by {scheduler}", first.policy, first.jobs, first.entitled, scheduler)
            )
    return found


def bench(
    rounds: int = 2,
    seconds: float = 2.0,
    data: Path | None = None,
    parallel: int = 1,
    schedulers: Sequence[str] = ("stride", "token"),
) -> dict[str, Any]:
    """Measure and return one document; all times in seconds, rates in bytes per second.

    `data`: the folder under test (default: in memory, where the layer's own cost shows most).
    """  # fmt: skip
    programs = required_programs()
    place = data or memory_folder()
    if place is None or not place.is_dir():
        raise UserError(f"{data or '/dev/shm'}: not a folder that can be written to; give --data")
    folder = Path(tempfile.mkdtemp(prefix="tiercel-share-", dir=place))
    try:
        return _bench(programs, folder, rounds, seconds, parallel, schedulers)
    except RunFailed as error:
        raise UserError(f"share bench: {error}") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bench(
    programs: Programs, folder: Path, rounds: int, seconds: float, parallel: int, schedulers: Sequence[str]
) -> dict[str, Any]:
    solo: dict[str, list[float]] = {}
    shared: dict[str, list[dict[str, Any]]] = {}
    listed = contests(schedulers)
    for number in range(rounds):
        for name, seen in _costs(programs, folder / f"solo{number}", seconds / 4, parallel).items():
            solo.setdefault(name, []).append(seen)
        for contest in listed if number % 2 == 0 else listed[::-1]:
            place = folder / f"{number}-{contest.name.replace(' ', '-').replace(':', '-')}"
            result = _contest(programs, place, contest, seconds, parallel)
            shared.setdefault(contest.name, []).append(result)
            shutil.rmtree(place, ignore_errors=True)
    value = {name: statistics.median(values) for name, values in solo.items()}
    return {
        "measured": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "rounds": rounds,
        "parallel": parallel,
        "solo": {
            **value,
            "throughput_ratio": value["limit_1m"] / value["write_1m"],
            "read_ratio": value["limit_1m"] / value["read_1m"],
            "cached_throughput_ratio": value["cached_limit_1m"] / value["write_1m"],
            "latency_ratio": value["write_4k"] / value["limit_4k"],
            "targets": {"throughput_ratio": 0.70, "latency_ratio": 3.0},
        },
        "sharing": [_summary(contest, shared[contest.name]) for contest in listed],
    }


def _costs(programs: Programs, folder: Path, seconds: float, parallel: int) -> dict[str, float]:
    """Return seconds for a transfer: of the limit and through the layer, 1 MiB and 4 KiB."""
    found: dict[str, float] = {}
    with running_server(programs, folder, ["--policy", "job-fair", "--parallel", str(parallel)]) as server:
        for size, word in ((1 << 20, "1m"), (4096, "4k")):
            found[f"limit_{word}"] = _limit(programs, size, FILE_SIZE, seconds)
            found[f"cached_limit_{word}"] = _limit(programs, size, size, seconds / 2)
            for pattern in ("write", "read"):
                load = Load(Job("solo"), 1, pattern, seconds=seconds, transfer=size, size=FILE_SIZE)
                latency = run_jobs(_place(programs, server, load.job), [load])[0].latency_p50
                if latency is None:
                    raise RunFailed(f"no {pattern} of {size} bytes ended in {seconds:g} s")
                found[f"{pattern}_{word}"] = latency
    return found


def _place(programs: Programs, server: Server, *jobs: Job) -> Place:
    for job in jobs:
        (server.tree / job.name).mkdir(exist_ok=True)
    return Place(programs.load, Path(PREFIX), server.socket, programs.library)


def _limit(programs: Programs, size: int, extent: int, seconds: float) -> float:
    """Return the median time of one copy and its acknowledgement, into an extent of so many bytes."""
    done = subprocess.run(
        [
            str(programs.limit), "--size", str(size), "--extent", str(extent), "--seconds", f"{seconds:g}",
        ],
        capture_output=True, text=True, check=False, timeout=seconds + 60,
    )  # fmt: skip
    if done.returncode:
        raise RunFailed(f"fairshare-limit: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["seconds_p50"])


def _contest(
    programs: Programs, folder: Path, contest: Contest, seconds: float, parallel: int
) -> dict[str, Any]:
    """Run one contest; before it, its first job alone, for the cost of sharing."""
    options = ["--policy", contest.policy, "--scheduler", contest.scheduler, "--parallel", str(parallel)]
    with running_server(programs, folder, [*options, *contest.options]) as server:
        job, processes = contest.jobs[0]
        place = _place(programs, server, *(job for job, _ in contest.jobs))
        alone = run_jobs(place, [Load(job, processes, seconds=seconds / 2)])
        loads = [Load(job, processes, seconds=seconds) for job, processes in contest.jobs]
        together = run_jobs(place, loads)
    # The first fifth is the start: queues fill.
    steady = {t.job: t.between(seconds / 5, seconds) for t in together}
    total = sum(steady.values())
    return {
        "alone": float(alone[0].between(seconds / 10, seconds / 2).mean()),
        "total": float(np.mean(total)),
        "jobs": {name: float(rate.mean()) for name, rate in steady.items()},
        "fractions": {name: (rate / np.where(total > 0, total, 1)).tolist() for name, rate in steady.items()},
        "reached": _time_to_share(contest, together, seconds),
    }


def _time_to_share(contest: Contest, together: Sequence[Throughput], seconds: float) -> float | None:
    """Return when every job's mean so far lies within a tenth of its share, None for never."""
    rates = {t.job: t.bytes_per_second for t in together}
    interval = together[0].interval
    for end in range(1, round(seconds / interval) + 1):
        sums = {name: rate[:end].sum() for name, rate in rates.items()}
        total = sum(sums.values())
        if total and all(abs(sums[n] / total - s) <= s / 10 for n, s in contest.entitled.items()):
            return end * interval
    return None


def _summary(contest: Contest, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    jobs = []
    for name, entitled in contest.entitled.items():
        share = statistics.median(r["jobs"][name] / r["total"] for r in results)
        fractions = np.concatenate([r["fractions"][name] for r in results])
        jobs.append({
            "job": name, "entitled": entitled, "measured": share, "error": share / entitled - 1,
            "bytes_per_second": statistics.median(r["jobs"][name] for r in results),
            "deviation": float(fractions.std(ddof=1)) if len(fractions) > 1 else None,
        })  # fmt: skip
    reached = [r["reached"] for r in results if r["reached"] is not None]
    return {
        "contest": contest.name,
        "policy": contest.policy,
        "scheduler": contest.scheduler,
        "jobs": jobs,
        "worst_error": max(abs(job["error"]) for job in jobs),
        "total_to_alone": statistics.median(r["total"] / r["alone"] for r in results),
        "seconds_to_share": statistics.median(reached) if reached else None,
    }
