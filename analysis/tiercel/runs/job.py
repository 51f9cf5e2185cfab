"""Looks at the job that a batch of runs was given: its nodes, its storage systems, its end.

Without a scheduler there is nothing to look at: the machine was checked before (planning.check_site).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiercel.errors import RunFailed, UserError
from tiercel.runs.node import tidy
from tiercel.runs.objects import check_storage
from tiercel.runs.places import Nodes
from tiercel.runs.planning import Project, check_launcher
from tiercel.site.model import Stack
from tiercel.study.plan import Batch

#: Kept free at the end of a job, so that the last run's records are written.
RESERVE_S = 30.0


@dataclass(frozen=True)
class Allocation:
    """The job: when it ends (monotonic clock; None: never), and what each storage is like on its nodes."""

    end: float | None = None
    around: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By name of the storage: what every run's context says of its nodes."""
    nodes: Nodes | None = None
    """The job's nodes; None without a scheduler."""

    def nodes_answer(self) -> bool:
        return self.nodes is None or self.nodes.answer()

    def time_for(self, seconds: float) -> bool:
        """Return whether a run that may take `seconds` can still end in time."""
        return self.end is None or time.monotonic() + seconds + RESERVE_S <= self.end


def look_at_job(project: Project, batch: Batch, walltime: float | None) -> Allocation:
    """Check what could not be checked where the job was submitted; UserError names storage and node.

    `walltime` is in seconds from now.
    """
    site = project.plan.site
    end = None if walltime is None else time.monotonic() + walltime
    if site.scheduler is None:
        return Allocation(end)
    missing = project.launcher.missing()
    if missing:
        raise UserError(f"site {site.site}: launcher {project.launcher.name}: {missing} (in the job)")
    check_launcher(project)
    stacks = {run.configuration.stack.name: run.configuration.stack for run in batch.runs}
    nodes = Nodes(project.launcher, batch.nodes)
    here = site.scheduler.head == "compute" and batch.nodes == 1
    around: dict[str, dict[str, Any]] = {}
    for name, stack in stacks.items():
        if here:
            check_storage(stack)
            if site.node_local(stack.storage):
                tidy(stack)
            around[name] = {"hosts": [os.uname().nodename]}
            continue
        around[name] = _common(nodes, stack, on_service=site.scheduler.head == "service")
    return Allocation(end, around, nodes)


def _common(nodes: Nodes, stack: Stack, on_service: bool) -> dict[str, Any]:
    """Return what a run's context says of its nodes; the least of what differs from node to node."""
    try:
        answers = nodes.ask("look" if stack.storage.shared else "tidy", stack)
    except RunFailed as failure:
        raise UserError(f"storage {stack.name}: {failure}") from None
    found: dict[str, Any] = {"hosts": [answer["host"] for answer in answers]}
    around = [answer["around"] for answer in answers]
    if on_service or not stack.storage.shared:
        found |= around[0]
        found["free_bytes"] = min(each["free_bytes"] for each in around)
    # As a process sees them that the launcher started: this one may be bound, or limited, otherwise.
    for key in ("memory_bytes", "memory_limit_bytes", "cores"):
        found[key] = min((each[key] for each in around if each[key] is not None), default=None)
    return found
