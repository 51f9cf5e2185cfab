"""Jobs that compete for one storage: the first one alone, then all of them.

Below a layer or none. With the layer fairshare on, FAIRSHARE_SERVER names
its server: every job then gets a ticket of its own, and the server says what each is entitled to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiercel.layers.fairshare.protocol import Job
from tiercel.sharing.jobs import Load, Place, Throughput, beginning, run_jobs
from tiercel.sharing.watch import Watch
from tiercel.sharing.workload import SharingWorkload

#: Part of the contested time that is the start: queues fill, and shares settle.
START = 0.2


def experiment(load: Path, folder: Path, workload: SharingWorkload) -> dict[str, Any]:
    """Run the first job alone, then all of them; return one document (rates per second, times in seconds)."""
    server = os.environ.get("FAIRSHARE_SERVER")
    place = Place(load, folder, Path(server) if server else None)
    loads = [
        Load(
            Job(j.name, j.size, j.priority, j.user, j.group), j.processes, j.pattern, j.start, j.seconds,
            j.transfer_size, j.file_size,
        )
        for j in workload.jobs
    ]  # fmt: skip
    folder.mkdir(exist_ok=True)
    first = loads[0]
    alone = run_jobs(
        place, [Load(**{**vars(first), "start": 0.0, "seconds": workload.alone})], workload.interval
    )
    start, end = workload.contested
    at = beginning()
    watch = Watch(place.server, at, end, workload.interval) if place.server else None
    together = run_jobs(place, loads, workload.interval, at)
    steady = (start + START * (end - start), end)
    served = watch.rates([load.job.name for load in loads], *steady) if watch else None
    return summary(workload, alone[0], together, watch.entitled if watch else {}, served)


def summary(
    workload: SharingWorkload,
    alone: Throughput,
    together: list[Throughput],
    entitled: dict[str, float],
    served: Mapping[str, NDArray[np.float64]] | None = None,
) -> dict[str, Any]:
    """Return the document: of each job the mean in steady state, share, deviation, slowdown and series.

    Shares are of what the server served (bytes and the charge for each operation), where that is known;
    else of bytes, or of operations where a job moves none.
    """
    start, end = workload.contested
    steady = (start + START * (end - start), end)
    moves = all(t.bytes_per_second.any() for t in together)
    rates = {t.job: t.between(*steady, operations=not moves) for t in together}
    basis = served or rates
    total: NDArray[np.float64] = np.sum(list(basis.values()), axis=0)
    shares = {name: rate / np.where(total > 0, total, np.nan) for name, rate in basis.items()}
    # Entitled among those that run here: the experiment's own process is a client, too.
    sum_entitled = sum(entitled.get(t.job, 0.0) for t in together)
    before = alone.between(START * workload.alone, workload.alone, operations=not moves).mean()
    jobs = []
    for number, t in enumerate(together):
        job, rate = workload.jobs[number], rates[t.job]
        mean = float(rate.mean())
        jobs.append({
            "job": t.job, "number": number,
            "bytes_per_second": float(t.between(*steady).mean()),
            "operations_per_second": float(t.between(*steady, operations=True).mean()),
            "bytes": int(t.bytes_per_second.sum() * t.interval),
            "operations": int(t.operations_per_second.sum() * t.interval),
            "seconds": job.seconds, "latency_p50": t.latency_p50, "latency_p99": t.latency_p99,
            "share": float(basis[t.job].mean() / total.mean()) if total.any() else None,
            "entitled": entitled.get(t.job, 0.0) / sum_entitled if sum_entitled else None,
            "deviation": _deviation(shares[t.job]),
            "slowdown": float(before) / mean - 1 if number == 0 and mean > 0 else None,
            "series": t.bytes_per_second.tolist() if moves else t.operations_per_second.tolist(),
        })  # fmt: skip
    return {
        "interval": workload.interval,
        "unit": "B/s" if moves else "1/s",
        "contested": [start, end],
        "alone": float(before),
        "jobs": jobs,
        "total": {
            "bytes_per_second": sum(j["bytes_per_second"] for j in jobs),
            "operations_per_second": sum(j["operations_per_second"] for j in jobs),
            "seconds": end - start,
            "seconds_to_share": time_to_share(together, {j["job"]: j["entitled"] for j in jobs}, start, end),
        },
    }


def _deviation(share: NDArray[np.float64]) -> float | None:
    seen = share[~np.isnan(share)]
    return float(seen.std(ddof=1)) if len(seen) > 1 else None


def time_to_share(
    together: Sequence[Throughput],
    entitled: Mapping[str, float | None],
    start: float,
    end: float,
    over: float = 1.0,
) -> float | None:
    """Return the time from `start` at which the mean of every job is first within 10 % of its share.

    The mean is over the last `over` seconds (from `start` on, where less have passed), so what is reached
    in less is told too late, and what comes after is not looked at; None where that is never so, or nothing
    is entitled.
    """
    if any(value is None for value in entitled.values()):
        return None
    interval = together[0].interval
    window = max(1, round(over / interval))
    rates = {t.job: t.between(start, end) for t in together}
    for last in range(1, len(next(iter(rates.values()))) + 1):
        sums = {name: rate[max(0, last - window) : last].sum() for name, rate in rates.items()}
        total = sum(sums.values())
        if total and all(
            abs(sums[n] / total - (s or 0)) <= 0.1 * (s or 0) + 1e-9 for n, s in entitled.items()
        ):
            return last * interval
    return None
