"""What a policy promises jobs while all of them have requests (ThemisIO paper, section 3, figures 2 to 4)."""

from __future__ import annotations

from typing import Any

from tiercel.sharing.parts import Member, Part, parts_of
from tiercel.sharing.scenario import Scenario, SimulatedJob, to_simulator
from tiercel.sharing.simulator import run_simulator


def promise(policy: str, scenario: Scenario) -> dict[str, Any]:
    """Return the policy's ``levels``, its transition ``matrices`` and for each of the ``jobs`` ``share`` and
    ``segment``, begin and end of what a token's random number in [0, 1) hits.

    A matrix has ``rows`` (entities of the level above) and ``columns`` (those of its own level), each with
    the one ``row`` whose part it gets a fraction of, and that ``value``. Under ``fifo`` nobody is promised
    anything: no levels, no matrices, shares are None. UserError for what is no policy.
    """
    return run_simulator("promise", {"policy": policy, **to_simulator(scenario, 1)})


def promised_parts(document: dict[str, Any], scenario: Scenario) -> tuple[Part, ...]:
    """Return the tree of what :func:`promise` found; empty under ``fifo``."""
    if not document["levels"]:
        return ()
    pairs = zip(document["jobs"], scenario.jobs, strict=True)
    return parts_of(
        document["levels"], [Member(found["name"], _whose(job), found["share"]) for found, job in pairs]
    )


def _whose(job: SimulatedJob) -> dict[str, str]:
    return {
        "group": str(job.group), "user": str(job.user),
        "size": str(job.nodes), "priority": str(job.priority),
    }  # fmt: skip
