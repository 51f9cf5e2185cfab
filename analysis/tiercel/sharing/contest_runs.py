"""Runs the contests of ``tiercel share bench`` and sums up what their rounds gave."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.errors import RunFailed
from tiercel.layers.fairshare.mounting import choose
from tiercel.layers.fairshare.programs import Programs
from tiercel.layers.fairshare.server import Server, running_server
from tiercel.sharing.contests import Contest
from tiercel.sharing.jobs import Load, Place, Throughput, beginning, run_jobs
from tiercel.sharing.watch import Watch

#: What a deviation is over, seconds. At 2 GB/s one holds 1600 pieces of 128 KiB: the paper's draw among two
#: equal jobs then has a deviation of 0.5 / sqrt(1600), some 1.3 %, which is what has to be seen.
INTERVAL = 0.1
#: Part of the time that is the start: queues fill.
START = 0.2


def place_of(programs: Programs, server: Server) -> Place:
    """Return where jobs reach `server`: in its mount, with large data through shared memory."""
    assert server.mounted is not None
    return Place(programs.load, server.mounted, server.socket, programs.library)


@contextmanager
def mounted_server(programs: Programs, folder: Path, options: Sequence[str]) -> Iterator[Server]:
    """A server below `folder` whose files are mounted there, where this user's programs see them."""
    mount = folder / "mount"
    mount.mkdir(parents=True)
    choose(str(mount), alone=False)
    with running_server(programs, folder / "served", options, mount=mount) as server:
        yield server


def run_contest(
    programs: Programs, folder: Path, contest: Contest, seconds: float, parallel: int
) -> dict[str, Any]:
    """Run one contest; before and after it all its processes as one job, for the cost of sharing.

    Rates in bytes per second; ``fractions`` are each interval's parts of what the server served,
    ``rates`` what the clients saw in each interval.
    """
    options = ["--policy", contest.policy, "--scheduler", contest.scheduler, "--parallel", str(parallel)]
    with mounted_server(programs, folder, [*options, *contest.options]) as server:
        place = place_of(programs, server)
        # As many processes with as much data: else the caches, not the sharing, would make the difference.
        lonely = [Load(contest.jobs[0][0], sum(p for _, p in contest.jobs), seconds=seconds / 3)]
        alone = [_lonely_rate(place, lonely)]
        loads = [Load(job, processes, seconds=seconds) for job, processes in contest.jobs]
        at = beginning()
        watch = Watch(server.socket, at, seconds, INTERVAL)
        together = run_jobs(place, loads, INTERVAL, at)
        served = watch.rates([t.job for t in together], START * seconds, seconds)
        alone.append(_lonely_rate(place, lonely))
    if served is None:
        raise RunFailed(f"{contest.name}: the server did not say what it served")
    steady = {t.job: t.between(START * seconds, seconds) for t in together}
    silent = [name for name, rate in steady.items() if not rate.any()]
    if silent or not all(alone):
        raise RunFailed(f"job {(silent or [lonely[0].job.name])[0]} moved nothing: the machine was too busy")
    total = np.sum(list(served.values()), axis=0)
    return {
        "alone": float(np.mean(alone)),
        "total": float(np.sum(list(steady.values()), axis=0).mean()),
        "jobs": {name: float(rate.mean()) for name, rate in steady.items()},
        "rates": {name: rate.tolist() for name, rate in steady.items()},
        "fractions": {name: (rate / np.where(total > 0, total, 1)).tolist() for name, rate in served.items()},
        "reached": _time_to_share(contest, together, seconds),
    }


def _lonely_rate(place: Place, loads: Sequence[Load]) -> float:
    seconds = loads[0].seconds
    return float(run_jobs(place, loads)[0].between(START * seconds, seconds).mean())


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


def summary(contest: Contest, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the rounds of one contest say together: medians, and [least, greatest] of the rounds.

    Of every job: ``measured`` share against ``entitled``; ``deviation``, the standard deviation of its
    share over intervals of 0.1 s (served cost, by the server's account; one value a round);
    ``rate_deviation``, that of its throughput at the clients as a fraction of its mean.
    """
    jobs = []
    for name, entitled in contest.entitled.items():
        share = statistics.median(r["jobs"][name] / sum(r["jobs"].values()) for r in results)
        deviations = [float(np.std(r["fractions"][name], ddof=1)) for r in results]
        uneven = [float(np.std(r["rates"][name], ddof=1) / np.mean(r["rates"][name])) for r in results]
        jobs.append({
            "job": name, "entitled": entitled, "measured": share, "error": share / entitled - 1,
            "bytes_per_second": statistics.median(r["jobs"][name] for r in results),
            "deviation": statistics.median(deviations), "deviation_range": _range(deviations),
            "rate_deviation": statistics.median(uneven), "rate_deviation_range": _range(uneven),
        })  # fmt: skip
    reached = [r["reached"] for r in results if r["reached"] is not None]
    against_alone = [r["total"] / r["alone"] for r in results]
    return {
        "contest": contest.name,
        "policy": contest.policy,
        "scheduler": contest.scheduler,
        "interval": INTERVAL,
        "intervals": sum(len(next(iter(r["fractions"].values()))) for r in results),
        "jobs": jobs,
        "worst_error": max(abs(job["error"]) for job in jobs),
        "total_to_alone": statistics.median(against_alone),
        "total_to_alone_range": _range(against_alone),
        "seconds_to_share": statistics.median(reached) if reached else None,
    }


def _range(values: Sequence[float]) -> list[float]:
    return [min(values), max(values)]


def deviations(sharing: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the schedulers of one contest, least deviation first, each with its multiple of the least.

    ``separate``: whether even its steadiest round lies above every round of the steadiest scheduler.
    """
    rows = [
        {
            "scheduler": contest["scheduler"],
            "deviation": max(job["deviation"] for job in contest["jobs"]),
            "range": max((job["deviation_range"] for job in contest["jobs"]), key=lambda r: r[1]),
            "rate_deviation": statistics.mean(job["rate_deviation"] for job in contest["jobs"]),
        }
        for contest in sharing
        if contest["contest"].startswith("job-fair")
    ]
    rows.sort(key=lambda row: float(row["deviation"]))
    for row in rows:
        least = rows[0]
        row["multiple"] = row["deviation"] / least["deviation"] if least["deviation"] else None
        row["separate"] = row is not least and row["range"][0] > least["range"][1]
    return rows
