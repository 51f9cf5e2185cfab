"""Carries out one job of the plan: many runs in one process, one after the other.

A batch is resumable at any point: finished runs are never repeated, one that was cut off goes again.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from tiercel.results.raw import RawStore
from tiercel.runs.execute import Equipment, execute
from tiercel.runs.history import History
from tiercel.runs.lock import SiteLock
from tiercel.runs.planning import Project, certain
from tiercel.runs.progress import Progress
from tiercel.study.plan import Batch, Run


class Interrupted(BaseException):
    """SIGTERM from a scheduler or a user: like KeyboardInterrupt, it unwinds and cleans up."""


def run_batch(project: Project, batch: Batch, results: Path) -> Counter[str]:
    """Do what is still wanted of `batch`; return how many runs were ok, failed, done before, not needed."""
    store = RawStore(results)
    before = signal.signal(signal.SIGTERM, _interrupt)
    counts: Counter[str] = Counter()
    try:
        with SiteLock(results) as lock:
            history = History.load(project.plan, store)
            later = _later_runs(project, batch, store)
            progress = Progress(*_totals(project, store))
            try:
                for position, run in enumerate(batch.runs):
                    if store.finished(run.id):
                        counts["done"] += 1
                    elif not history.wanted(run):
                        counts["unneeded"] += 1
                        progress.skip(certain(project, run))
                    else:
                        progress.start(run)
                        outcome = execute(run, _equipment(project, run, store, lock.descriptor))
                        history.add(outcome)
                        counts[outcome.status] += 1
                        rest = [r for r in batch.runs[position + 1 :] if not store.finished(r.id)]
                        left = _time_left(history, [*rest, *later])
                        progress.end(outcome, left, certain(project, run))
            finally:
                progress.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    return counts


def retry_failed(project: Project, results: Path) -> int:
    """Set the plan's failed runs aside, so that they go again; return how many."""
    store = RawStore(results)
    failed = [r for r in project.plan.runs if (raw := store.read(r.id)) and not raw.ok]
    for run in failed:
        store.set_aside(run.id)
    return len(failed)


def _equipment(project: Project, run: Run, store: RawStore, lock: int) -> Equipment:
    engine = run.configuration.engine
    return Equipment(
        engine=project.engines[engine],
        installation=project.installations[engine],
        launcher=project.launcher,
        store=store,
        timeout=project.plan.study.timeout,
        inherit=(lock,),
        site=project.plan.site,
        layers=project.layers,
    )


def _later_runs(project: Project, batch: Batch, store: RawStore) -> list[Run]:
    """Return the runs of other jobs that are certain to come; further repetitions are not certain."""
    return [
        run
        for other in project.plan.batches
        if other.name != batch.name
        for run in other.runs
        if certain(project, run) and not store.finished(run.id)
    ]


def _totals(project: Project, store: RawStore) -> tuple[int, int]:
    """Return (finished, all) runs of the study, counting of the uncertain ones those that are done."""
    done = set(store.ids())
    finished = sum(run.id in done for run in project.plan.runs)
    waiting = sum(run.id not in done and certain(project, run) for run in project.plan.runs)
    return finished, finished + waiting


def _time_left(history: History, runs: Iterable[Run]) -> float | None:
    total = 0.0
    for run in runs:
        if history.wanted(run):
            seconds = history.seconds(run)
            if seconds is None:
                return None
            total += seconds
    return total


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise Interrupted
