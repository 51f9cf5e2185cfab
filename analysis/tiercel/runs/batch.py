"""Carries out one job of the plan: many runs in one process, one after the other.

A batch is resumable at any point: finished runs are never repeated, one that was cut off goes again.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain
from pathlib import Path

from tiercel.children import interrupt
from tiercel.launchers import resolve
from tiercel.results.raw import RawStore
from tiercel.runs.estimate import seconds_of
from tiercel.runs.execute import Equipment, execute
from tiercel.runs.history import History
from tiercel.runs.job import Allocation, look_at_job
from tiercel.runs.lock import SiteLock
from tiercel.runs.planning import Project, certain
from tiercel.runs.progress import Progress
from tiercel.runs.stamps import carry_out_again
from tiercel.study.plan import Batch, Run


class OutOfTime(Exception):
    """The job's time does not suffice for another run; submitted again, the batch goes on."""


def run_batch(project: Project, batch: Batch, results: Path, walltime: float | None = None) -> Counter[str]:
    """Do what is still wanted of `batch`; return how many runs were ok, failed, done before, not needed.

    `walltime`: seconds that the job has left (None: no end). OutOfTime when they do not suffice,
    JobBroken when a node of the job is gone: both times what was measured is kept, and the rest is to go
    again.
    """
    store = RawStore(results)
    before = signal.signal(signal.SIGTERM, interrupt)
    counts: Counter[str] = Counter()
    started = False  # the first run always goes: what it took so far may have been bad luck
    try:
        with SiteLock(results) as lock:
            history = History.load(project.plan, store)
            done = set(store.ids())  # whoever holds the lock alone adds to them
            wanted = any(run.id not in done and history.wanted(run) for run in batch.runs)
            job = look_at_job(project, batch, walltime) if wanted else Allocation()
            later = _later_runs(project, batch, done)
            progress = Progress(*_totals(project, done))
            try:
                for position, run in enumerate(batch.runs):
                    if run.id in done:
                        counts["done"] += 1
                    elif not history.wanted(run):
                        counts["unneeded"] += 1
                        progress.skip(certain(project, run))
                    elif over_budget(project, history):
                        counts["over budget"] += 1
                        progress.skip(certain(project, run))
                    elif started and not job.time_for(seconds_of(run, history)):
                        raise OutOfTime(f"{len(batch.runs) - position} runs of this batch are left")
                    else:
                        started = True
                        progress.start(run)
                        outcome = execute(run, _equipment(project, run, store, lock.descriptor, job))
                        history.add(outcome)
                        counts[outcome.status] += 1
                        rest = (r for r in batch.runs[position + 1 :] if r.id not in done)
                        left = partial(_time_left, history, chain(rest, later))
                        progress.end(outcome, left, certain(project, run))
            finally:
                progress.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    return counts


def over_budget(project: Project, history: History) -> bool:
    """Return whether the study has used the core-hours that its site allows it (limits.core_hours)."""
    site = project.plan.site
    most = site.limits.core_hours
    return most is not None and history.node_hours * site.cores >= most


def retry_failed(project: Project, results: Path) -> int:
    """Set the plan's failed runs aside, so that they go again; return how many."""
    store = RawStore(results)
    with SiteLock(results):  # a batch that still measures would write what is moved away
        failed = [r for r in project.plan.runs if (raw := store.read(r.id)) and not raw.ok]
        again = {run.id for run in failed}
        # First, so that whatever interrupts this, they do go again.
        batches = (b.name for b in project.plan.batches if any(run.id in again for run in b.runs))
        carry_out_again(project, results, batches)
        for run in failed:
            store.set_aside(run.id)
    return len(failed)


def _equipment(project: Project, run: Run, store: RawStore, lock: int, job: Allocation) -> Equipment:
    engine, launcher = run.configuration.engine, run.configuration.launcher
    same = launcher == project.launcher.name
    return Equipment(
        engine=project.engines[engine],
        installation=project.installations[engine],
        launcher=project.launcher if same else resolve(launcher),
        store=store,
        timeout=project.plan.study.timeout,
        inherit=(lock,),
        site=project.plan.site,
        layers=project.layers,
        around=job.around.get(run.configuration.stack.name, {}),
        nodes_answer=job.nodes_answer,
    )


def _later_runs(project: Project, batch: Batch, done: set[str]) -> list[Run]:
    """Return the runs of other jobs that are certain to come; further repetitions are not certain."""
    return [
        run
        for other in project.plan.batches
        if other.name != batch.name
        for run in other.runs
        if certain(project, run) and run.id not in done
    ]


def _totals(project: Project, done: set[str]) -> tuple[int, int]:
    """Return (finished, all) runs of the study, counting of the uncertain ones those that are done."""
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
