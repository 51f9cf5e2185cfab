"""Jobs on several servers that tell each other what was used: paper 001, section 5.6."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import Any

import numpy as np

from tiercel.errors import RunFailed, UserError
from tiercel.layers.fairshare.policies import check_policy
from tiercel.layers.fairshare.programs import required_programs
from tiercel.layers.fairshare.protocol import Job
from tiercel.layers.fairshare.server import Server
from tiercel.sharing.contest_runs import mounted_server, place_of
from tiercel.sharing.experiment import START, time_to_share
from tiercel.sharing.jobs import Load, Throughput, beginning, run_jobs
from tiercel.sharing.scenario import Scenario, SimulatedJob
from tiercel.sharing.simulate import simulate_document
from tiercel.sharing.workload_servers import SharingServersWorkload

#: Means for the time to fairness are over so many seconds.
WINDOW_S = 0.25


def servers_experiment(folder: Path, workload: SharingServersWorkload) -> dict[str, Any]:
    """Run all jobs on their servers; return one document, as ``experiment`` does (without times alone)."""
    programs = required_programs()
    check_policy(workload.policy)
    entitled = global_shares(workload)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(mounted_server(programs, folder / f"server{number}", options))
            for number, options in enumerate(_options(folder, workload))
        ]
        together = _run(servers, workload)
    start, end = workload.contested
    steady = (start + START * (end - start), end)
    rates = {t.job: t.between(*steady) for t in together}
    total = np.sum(list(rates.values()), axis=0)
    jobs = []
    for number, t in enumerate(together):
        shares = rates[t.job][total > 0] / total[total > 0]
        jobs.append({
            "job": t.job, "number": number,
            "bytes_per_second": float(rates[t.job].mean()),
            "operations_per_second": float(t.between(*steady, operations=True).mean()),
            "bytes": int(t.bytes_per_second.sum() * t.interval),
            "operations": int(t.operations_per_second.sum() * t.interval),
            "seconds": workload.jobs[number].seconds, "latency_p50": None, "latency_p99": None,
            "share": float(rates[t.job].mean() / total.mean()) if total.any() else None,
            "entitled": entitled[t.job],
            "deviation": float(shares.std(ddof=1)) if len(shares) > 1 else None,
            "slowdown": None,
            "series": t.bytes_per_second.tolist(),
        })  # fmt: skip
    return {
        "interval": workload.interval, "unit": "B/s", "contested": [start, end], "jobs": jobs,
        "total": {
            "bytes_per_second": sum(job["bytes_per_second"] for job in jobs),
            "operations_per_second": sum(job["operations_per_second"] for job in jobs),
            "seconds": end - start,
            "seconds_to_share": time_to_share(together, entitled, start, end, WINDOW_S),
        },
    }  # fmt: skip


def global_shares(workload: SharingServersWorkload) -> dict[str, float]:
    """Return what the policy entitles each job to over all servers together, by the policy core itself."""
    scenario = Scenario(
        jobs=[
            SimulatedJob(name=j.name, user=str(j.user), group=str(j.group), nodes=j.size, priority=j.priority,
                         processes_per_node=1, servers=j.servers)
            for j in workload.jobs
        ]
    )  # fmt: skip
    found = simulate_document(scenario, servers=workload.servers, policy=workload.policy, duration=0.01)
    shares = {job["name"]: job["entitled"] for job in found["phases"][-1]["jobs"]}
    if any(share is None for share in shares.values()):
        raise UserError(f"policy {workload.policy}: guarantees no shares, so there is no time to fairness")
    return shares


def _options(folder: Path, workload: SharingServersWorkload) -> list[list[str]]:
    """Return each server's options; they know each other by ports of the loopback interface."""
    key = folder / "key"
    folder.mkdir(exist_ok=True)
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(32))
    common = ["--policy", workload.policy, "--parallel", "1", "--key", str(key)]
    if workload.exchange == 0:
        return [common] * workload.servers
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(workload.servers)]
    every = ["--lambda", str(max(1, round(workload.exchange * 1000)))]
    found = []
    for own in addresses:
        peers = [word for other in addresses if other != own for word in ("--peer", other)]
        found.append([*common, *every, "--exchange", own, *peers])
    return found


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket(AF_INET, SOCK_DGRAM)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _run(servers: Sequence[Server], workload: SharingServersWorkload) -> list[Throughput]:
    """Run each server's part of the jobs in a thread of its own, and return each job's sum."""
    programs = required_programs()
    at = beginning()
    parts: list[Throughput] = []
    failed: list[Exception] = []

    def of_server(number: int) -> None:
        loads = []
        for j in workload.jobs:
            if number in j.servers:
                place, deal = j.servers.index(number), len(j.servers)
                processes = j.processes // deal + (place < j.processes % deal)
                job = Job(j.name, j.size, j.priority, j.user, j.group)
                loads.append(
                    Load(job, processes, j.pattern, j.start, j.seconds, j.transfer_size, j.file_size)
                )
        try:
            if loads:
                place_there = place_of(programs, servers[number])
                parts.extend(run_jobs(place_there, loads, workload.interval, at))
        except (RunFailed, UserError) as error:
            failed.append(error)

    threads = [threading.Thread(target=of_server, args=(number,)) for number in range(len(servers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return [_sum([t for t in parts if t.job == job.name]) for job in workload.jobs]


def _sum(parts: Sequence[Throughput]) -> Throughput:
    length = max(len(t.bytes_per_second) for t in parts)

    def added(values: list[Any]) -> Any:
        return np.sum([np.pad(each, (0, length - len(each))) for each in values], axis=0)

    return Throughput(
        parts[0].job, parts[0].interval, added([t.bytes_per_second for t in parts]),
        added([t.operations_per_second for t in parts]), None, None,
    )  # fmt: skip
