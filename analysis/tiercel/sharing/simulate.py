"""What would this policy do at full scale? The policies and schedulers of the layer, simulated.

The numbers come from a model (``docs/sharing-policies.md`` says which), so every table and document here
carries the origin ``simulated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tiercel.sharing.scenario import Scenario, four_to_one, to_simulator
from tiercel.sharing.simulator import run_simulator

#: A simulated second of 128 servers is some 3 million requests.
LARGE = 16


def simulate(
    scenario: Scenario | None = None,
    *,
    servers: int = 1,
    policy: str = "size-fair",
    scheduler: str = "stride",
    duration: float | None = None,
    interval: float | None = None,
    lambda_: float | None = None,
    per_request: bool = False,
    seed: int = 1,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Simulate one policy under one scheduler.

    Without a `scenario`: the paper's pair of jobs of 4 and 1 nodes a server. `duration`, `interval` and
    `lambda_` in seconds; `lambda_` None: servers do not exchange their job tables. `per_request`
    charges every request the same, as the published ThemisIO does, instead of bytes and a charge for
    each operation.

    Returns throughput in bytes/s by ``time`` (s) and ``job`` with origin, policy and scheduler (one row
    each), and a document with what is true of the whole: ``throughput``, ``jobs``, ``phases`` (entitled and
    simulated shares, standard deviation, time to fairness), ``notes``. UserError for what cannot be.
    """
    document = simulate_document(
        scenario, servers=servers, policy=policy, scheduler=scheduler, duration=duration, interval=interval,
        lambda_=lambda_, per_request=per_request, seed=seed,
    )  # fmt: skip
    frame = series_frame(document)
    del document["series"]
    return frame, document


def series_frame(document: dict[str, Any]) -> pd.DataFrame:
    """Return throughput in bytes/s by ``time`` and ``job`` of what :func:`simulate_document` gave."""
    names = {job["id"]: job["name"] for job in document["jobs"]}
    return pd.DataFrame(
        {
            "origin": document["origin"],
            "policy": document["policy"],
            "scheduler": document["scheduler"],
            "time": [row["time_s"] for row in document["series"]],
            "job": [names[row["job"]] for row in document["series"]],
            "throughput": [row["throughput"] for row in document["series"]],
        }
    )


def simulate_document(
    scenario: Scenario | None = None,
    *,
    servers: int = 1,
    policy: str = "size-fair",
    scheduler: str = "stride",
    duration: float | None = None,
    interval: float | None = None,
    lambda_: float | None = None,
    per_request: bool = False,
    seed: int = 1,
) -> dict[str, Any]:
    """As :func:`simulate`, as the one document that the simulator wrote, with its ``series``."""
    if duration is None:
        duration = 3.0 if servers > LARGE else 10.0
    if interval is None:
        interval = min(1.0, duration / 10)
    return run_simulator(
        "run",
        {
            "seed": seed,
            "servers": servers,
            "duration_s": duration,
            "interval_s": interval,
            "policy": policy,
            "scheduler": scheduler,
            "lambda_s": lambda_,
            **({"cost": "request"} if per_request else {}),
            **to_simulator(scenario or four_to_one(servers), servers),
        },
    )


def shares_frame(documents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return one row for each job in each phase: entitled and simulated share, throughput, deviations.

    Throughputs in bytes/s; ``time_to_fairness`` in seconds, missing where it was not reached or a job is
    alone.
    """
    rows = [
        {
            "origin": document["origin"],
            "policy": document["policy"],
            "scheduler": document["scheduler"],
            "begin": phase["begin_s"],
            "end": phase["end_s"],
            "job": job["name"],
            "entitled": job["entitled"],
            "share": job["share"],
            "throughput": job["throughput"],
            "median": job["median"],
            "standard_deviation": job["standard_deviation"],
            "share_deviation": job["share_deviation"],
            "total": phase["throughput"],
            "time_to_fairness": phase["time_to_fairness_s"],
        }
        for document in documents
        for phase in document["phases"]
        for job in phase["jobs"]
    ]
    return pd.DataFrame(rows)
