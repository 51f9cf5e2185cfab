"""What is simulated, as a user writes it: servers, links and jobs, in YAML or by options.

The simulator itself (``native/fairshare/sim``) reads JSON with plain numbers; the documents here read
sizes and durations with units, users and groups by name, and say what is wrong by key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError
from tiercel.quantities import Duration, Size

Operation = Literal["write", "read", "write-read", "stat"]


class SimulatedJob(Document):
    """A job: what it is to the policy, and what each of its processes does."""

    name: str | None = None
    user: str | int = 0
    group: str | int = 0
    priority: int = Field(default=1, ge=1)
    nodes: int = Field(default=1, ge=1)
    processes_per_node: int = Field(default=16, ge=1)
    start: Duration = 0.0
    stop: Duration | None = None
    operation: Operation = "write-read"
    transfer_size: Size = 1 << 20
    #: Requests that a process has outstanding.
    depth: int = Field(default=1, ge=1)
    #: Between an answer and the next request.
    think: Duration = 0.0
    #: Written and read back, by write-read.
    file_size: Size = 10 << 20
    #: Each process moves so much, then all wait for each other and compute.
    data_per_cycle: Size | None = None
    compute: Duration = 0.0
    cycles: int | None = Field(default=None, ge=1)
    #: On so many servers the file of a process lies.
    pieces: int | None = Field(default=None, ge=1)
    placement: Literal["hash", "balanced"] = "hash"
    #: The only servers that hold its files, by number from 0.
    servers: list[int] | None = None


class ServerModel(Document):
    """One server; the defaults are the ThemisIO paper's (sections 5.2 and 5.3: 11.7 GB/s a direction)."""

    #: Bytes per second of one direction.
    bandwidth: float = Field(default=11.7e9, gt=0)
    duplex: bool = True
    #: Of a worker on a request, beside moving its bytes.
    overhead: Duration = 20e-6
    jitter: float = Field(default=0.1, ge=0, le=1)
    workers: int = Field(default=16, ge=1)
    #: Schedulers of a server: one, or as many as workers for the published ThemisIO.
    queues: int = Field(default=1, ge=1)


class LinkModel(Document):
    """A compute node's network card, in each direction, and the way to a server."""

    bandwidth: float = Field(default=12.5e9, gt=0)
    latency: Duration = 3e-6


class Scenario(Document):
    """The file behind ``tiercel share simulate --jobs``; everything but the jobs can be left out."""

    server: ServerModel = ServerModel()
    link: LinkModel = LinkModel()
    jobs: list[SimulatedJob] = Field(min_length=1)


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in a YAML file; UserError that names file and key."""
    return parse(Scenario, read_yaml(path), str(path))


def read_job(text: str) -> SimulatedJob:
    """Return the job in ``nodes=4,user=ana,start=3s``; UserError that quotes the text."""
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"--job {text}: {part}: write KEY=VALUE, as in nodes=4")
        key = key.strip().replace("-", "_")
        if key in values:
            raise UserError(f"--job {text}: {key} is given twice")
        values[key] = (
            [int(n) if n.isdecimal() else n for n in value.split("+")] if key == "servers" else value
        )
    return parse(SimulatedJob, values, f"--job {text}")


def four_to_one(servers: int) -> Scenario:
    """Return the paper's pair of jobs (figure 8), for each server one of 4 nodes and one of 1 node."""
    return Scenario(
        jobs=[
            SimulatedJob(name="large", user="ana", nodes=4 * servers),
            SimulatedJob(name="small", user="bo", nodes=servers),
        ]
    )


#: The best compromise between the paper's throughputs on 8 and on 128 servers (docs/sharing-policies.md).
PIECES = 6


def to_simulator(scenario: Scenario, servers: int) -> dict[str, Any]:
    """Return the parts ``server``, ``link`` and ``jobs`` of the simulator's document."""
    users: dict[str | int, int] = {}
    groups: dict[str | int, int] = {}
    jobs = []
    for number, job in enumerate(scenario.jobs, 1):
        jobs.append(
            {
                "id": number,
                "name": job.name or f"job {number}",
                "user": users.setdefault(job.user, len(users)),
                "group": groups.setdefault(job.group, len(groups)),
                "priority": job.priority,
                "nodes": job.nodes,
                "processes_per_node": job.processes_per_node,
                "start_s": job.start,
                "stop_s": job.stop,
                "operation": job.operation,
                "size": job.transfer_size,
                "depth": job.depth,
                "think_s": job.think,
                "file_size": max(job.file_size, job.transfer_size),
                "bytes_per_cycle": job.data_per_cycle,
                "compute_s": job.compute,
                "cycles": job.cycles,
                "pieces": job.pieces or (PIECES if servers > 1 else 1),
                "placement": job.placement,
                "servers": job.servers,
            }
        )
    return {
        "server": {
            "bandwidth": scenario.server.bandwidth,
            "duplex": scenario.server.duplex,
            "overhead_s": scenario.server.overhead,
            "jitter": scenario.server.jitter,
            "workers": scenario.server.workers,
            "queues": scenario.server.queues,
        },
        "link": {"bandwidth": scenario.link.bandwidth, "latency_s": scenario.link.latency},
        "jobs": jobs,
    }
