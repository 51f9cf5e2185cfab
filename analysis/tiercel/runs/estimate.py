"""How long runs, jobs and studies will take, and what they cost: from history, else by assumption."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tiercel.runs.history import History
from tiercel.runs.planning import Project, certain
from tiercel.runs.resting import rest_of_job
from tiercel.study.assumptions import BAD, GOOD, assumed_seconds
from tiercel.study.plan import Run

#: A job asks for this many times what its runs are expected to take, and for so much to begin and end.
_MARGIN, _AROUND_S = 1.5, 180.0


@dataclass(frozen=True)
class Cost:
    """What some runs of one number of nodes will take."""

    nodes: int
    jobs: int
    runs: int
    """That are certain to come and not done."""
    judged: int
    """Of these, by how long their likes took; the others by assumption."""
    seconds: float
    core_hours: float
    least_seconds: float
    """Where what is assumed of the others is a good day's; `seconds` is a bad one's."""


def seconds_of(run: Run, history: History) -> float:
    """Return how long `run` will take: as its likes did, else as assumed (study.assumptions)."""
    likes = history.seconds_of_likes(run)
    return assumed_seconds(run.configuration, calibration=run.calibration) if likes is None else likes


def _least_seconds_of(run: Run, history: History) -> float:
    likes = history.seconds_of_likes(run)
    return assumed_seconds(run.configuration, GOOD, calibration=run.calibration) if likes is None else likes


def wanted_runs(runs: Iterable[Run], history: History, done: set[str]) -> list[Run]:
    return [run for run in runs if run.id not in done and history.wanted(run)]


def job_minutes(project: Project, runs: Sequence[Run], history: History, done: set[str]) -> int:
    """Return the walltime to ask for, in minutes: with a margin, and no more than the site allows."""
    scheduler = project.plan.site.scheduler
    most = math.inf if scheduler is None else scheduler.walltime
    left = wanted_runs(runs, history, done)
    expected = sum(seconds_of(run, history) for run in left) + rest_of_job(left)
    return max(1, math.ceil(min(most, _AROUND_S + _MARGIN * expected) / 60 - 1e-9))


def costs(project: Project, history: History, done: set[str]) -> list[Cost]:
    """Return what the plan's certain runs still take, one row for each number of nodes."""
    site = project.plan.site
    found = []
    for nodes in sorted({batch.nodes for batch in project.plan.batches}):
        batches = [b for b in project.plan.batches if b.nodes == nodes]
        left = {
            b.name: [r for r in wanted_runs(b.runs, history, done) if certain(project, r)] for b in batches
        }
        runs = [run for each in left.values() for run in each]
        resting = sum(rest_of_job(each) for each in left.values())
        seconds = sum(seconds_of(run, history) for run in runs) + resting
        least = sum(_least_seconds_of(run, history) for run in runs) + resting
        found.append(
            Cost(
                nodes=nodes,
                jobs=sum(bool(each) for each in left.values()),
                runs=len(runs),
                judged=sum(history.seconds_of_likes(run) is not None for run in runs),
                seconds=seconds,
                core_hours=seconds * nodes * site.cores / 3600,
                least_seconds=least,
            )
        )
    return found


def assumptions() -> str:
    """Return in one sentence what is assumed where no run has been measured."""
    return f"{BAD}; on a good day {GOOD}"
