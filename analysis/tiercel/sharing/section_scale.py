"""What the study's policies would do at full scale: simulated, and marked so."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from tiercel.errors import UserError
from tiercel.layers.fairshare.policies import check_policy
from tiercel.pages.tables import Table, table
from tiercel.sharing.scenario import Scenario, SimulatedJob
from tiercel.sharing.simulate import shares_frame, simulate_document
from tiercel.sharing.simulator import available
from tiercel.sharing.workload import SharingWorkload
from tiercel.study.model import StackChoice, Study
from tiercel.units import format_bandwidth, format_share

#: As many as in the paper's section 5.2.
SERVERS = 128
#: Simulated time: some 5000 requests a server, in about a second of one processor.
SECONDS = 0.25
_MOST = 4
CAPTION = f"Simulated: the study's jobs at full scale, {SERVERS} servers"
NOTE = (
    f"The table for {SERVERS} servers is simulated: the layer's own policies and schedulers in a model of "
    "servers and links with the parameters of paper 001, and of each job of the study's first contest as "
    f"many nodes a server as its size. Deviation: of the share, over intervals of {SECONDS / 10:g} s. "
    "The commands tiercel share simulate and tiercel share calibrate ask more of the model."
)


def full_scale(study: Study) -> tuple[Table | None, tuple[str, ...]]:
    """Return the table and what there is to say of it.

    None for a study without a contest through the layer, without the simulator, and where it can do none of
    the study's policies.
    """
    jobs = _jobs(study)
    chosen = _policies(study)
    if not jobs or not chosen:
        return None, ()
    if not available():
        return None, ("What the policies would do at full scale is left out: run `make layers`.",)
    documents, notes = [], []
    for policy, scheduler in chosen[:_MOST]:
        scenario = Scenario(jobs=jobs)
        try:
            documents.append(
                simulate_document(
                    scenario, servers=SERVERS, policy=policy, scheduler=scheduler, duration=SECONDS
                )
            )
        except UserError as error:
            notes.append(f"Not simulated: {policy} with scheduler {scheduler}: {error}.")
    if len(chosen) > _MOST:
        left_out = ", ".join(policy for policy, _ in chosen[_MOST:])
        notes.append(f"Not simulated, since {_MOST} are shown: {left_out}.")
    if not documents:
        return None, tuple(notes)
    rows = [_row(row) for row in shares_frame(documents).to_dict("records")]
    columns = ("Policy", "Job", "Throughput", "Share", "Entitled", "Deviation")
    return table(CAPTION, columns, rows), (NOTE, *notes)


def _row(row: Mapping[Hashable, Any]) -> tuple[Any, ...]:
    policy, scheduler, entitled = row["policy"], row["scheduler"], row["entitled"]
    return (
        policy if policy == "fifo" else f"{policy}, {scheduler}", row["job"],
        (format_bandwidth(row["throughput"]), row["throughput"]),
        (format_share(row["share"], 1), row["share"]),
        "" if pd.isna(entitled) else (format_share(entitled, 1), entitled),
        (format_share(row["share_deviation"], 2), row["share_deviation"]),
    )  # fmt: skip


def _policies(study: Study) -> list[tuple[str, str]]:
    """Return policy and scheduler of the study's stacks with the layer, each once."""
    found: dict[tuple[str, str], None] = {}
    for stack in study.stacks if study.stacks != "all" else []:
        for choice in stack.choices() if isinstance(stack, StackChoice) else []:
            if choice.layer == "fairshare":
                policy = check_policy(str(choice.options.get("policy", "size-fair")))
                found[policy, str(choice.options.get("scheduler", "stride"))] = None
    return list(found)


def _jobs(study: Study) -> list[SimulatedJob]:
    """Return the jobs of the first contest, of as many nodes a server as their size."""
    for experiment in study.experiments.values():
        for workload in experiment.workloads.values():
            if isinstance(workload, SharingWorkload) and len(workload.jobs) > 1:
                return [_job(job.model_dump()) for job in workload.jobs]
    return []


def _job(job: dict[str, Any]) -> SimulatedJob:
    return SimulatedJob(
        name=job["name"], user=str(job["user"]), group=str(job["group"]), priority=job["priority"],
        nodes=job["size"] * SERVERS, transfer_size=job["transfer_size"], file_size=job["file_size"],
    )  # fmt: skip
