"""Carries out one job of the plan: many runs in one process, one after the other.

A batch is resumable at any point: finished runs are never repeated, one that was cut off goes again.
"""

from __future__ import annotations

import math
import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from tiercel.interruption import interrupt
from tiercel.launchers import resolve
from tiercel.results.raw import RawStore
from tiercel.runs.calibrate import amount_of, calibrate
from tiercel.runs.estimate import seconds_of
from tiercel.runs.execute import Equipment, Outcome, Stages, executing, recording, to_the_end
from tiercel.runs.filesystems import recorded_file_systems
from tiercel.runs.history import History
from tiercel.runs.job import Allocation, look_at_job
from tiercel.runs.lock import SiteLock
from tiercel.runs.planning import Project, certain
from tiercel.runs.progress import Progress
from tiercel.runs.resting import Resting, rest_of, resting_first
from tiercel.runs.simulated import simulation_of
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
        with SiteLock(results) as lock, ExitStack() as stack:
            history = History.load(project.plan, store)
            done = set(store.ids())  # whoever holds the lock alone adds to them
            wanted = any(run.id not in done and history.wanted(run) for run in batch.runs)
            job = look_at_job(project, batch, walltime) if wanted else Allocation()
            file_systems = recorded_file_systems(results)
            later = _later_runs(project, batch, done)
            progress = Progress(*_totals(project, done))
            runs = resting_first(batch.runs)
            resting = stack.enter_context(Resting())
            settle = partial(_settle, project, history, progress, counts)
            try:
                for position, run in enumerate(runs):
                    if run.id in done:
                        counts["done"] += 1
                    elif not history.wanted(run):
                        counts["unneeded"] += 1
                        progress.skip(certain(project, run))
                    elif over_budget(project, history):
                        counts["over budget"] += 1
                        progress.skip(certain(project, run))
                    elif started and not job.time_for(seconds_of(run, history) + rest_of(run)):
                        resting.end(partial(settle, [*_not(done, runs[position:]), *later]))
                        raise OutOfTime(f"{len(batch.runs) - position} runs of this batch are left")
                    else:
                        started = True
                        for each in _with_calibration(project, run, store):
                            if not resting.leaves_room(each):
                                resting.end(partial(settle, [*_not(done, runs[position:]), *later]))
                            progress.start(each)
                            equipment = replace(
                                equipment_of(project, each, store, lock.descriptor, job),
                                recorded=file_systems.get(each.configuration.stack.name),
                            )
                            stages = _carry_out(project, each, equipment)
                            done.add(each.id)
                            if resting.began(each, stages):
                                continue
                            outcome = to_the_end(stages)
                            settle(chain(_not(done, runs[position + 1 :]), later), each, outcome)
                            if outcome.status == "failed":
                                break
                resting.end(partial(settle, later))
            finally:
                progress.close()
    finally:
        signal.signal(signal.SIGTERM, before)
    return counts


def _settle(
    project: Project, history: History, progress: Progress, counts: Counter[str], left: Iterable[Run],
    run: Run, outcome: Outcome,
) -> None:  # fmt: skip
    """Take note of what a run came to; `left` are those that may still come."""
    history.add(outcome)
    counts[outcome.status] += 1
    progress.end(outcome, partial(_time_left, history, left), certain(project, run))


def _not(done: set[str], runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if run.id not in done]


def _with_calibration(project: Project, run: Run, store: RawStore) -> list[Run]:
    """Return what is to be carried out so that a run is: before it its calibration, where that is missing.

    The plan has calibrations in a round of their own; missing it is where runs are picked from the plan
    (runs.probe), or where a program that was replaced has other calibrations than its runs so far.
    """
    calibration = project.plan.calibrations.get(run.configuration.key)
    if calibration is None or run.calibration or amount_of(project.plan, run, store):
        return [run]
    return [calibration, run]


def _carry_out(project: Project, run: Run, equipment: Equipment) -> Stages[Outcome]:
    if run.configuration.simulated:
        return recording(run, equipment, simulation_of(run))
    if run.calibration:
        return calibrate(run, equipment, seconds_of_a_run(project))
    if run.configuration.phase_time is None:
        return executing(run, equipment)
    amount = amount_of(project.plan, run, equipment.store)
    assert amount is not None
    return executing(replace(run, amount=amount), equipment)


def seconds_of_a_run(project: Project) -> float:
    """Return what a run may take so that all that are certain end before the study has used twice its
    budget. Infinite without a budget."""
    budget = project.plan.study.budget
    some = sum(certain(project, run) and not run.calibration for run in project.plan.runs)
    return math.inf if budget is None else 2 * budget / max(1, some)


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
        for run in failed:
            store.set_aside(run.id)
    return len(failed)


def equipment_of(project: Project, run: Run, store: RawStore, lock: int, job: Allocation) -> Equipment:
    """Return what carries out a run of a plan; `lock` is the descriptor that engines keep open."""
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
