"""How far a study is on a site, asked from anywhere that sees its results: another terminal, another node."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tiercel.project import results_folder
from tiercel.results.raw import RawStore
from tiercel.results.reasons import Failure, by_reason
from tiercel.runs.estimate import seconds_of
from tiercel.runs.history import History
from tiercel.runs.lock import EvaluationLock, SiteLock
from tiercel.runs.planning import Project, certain
from tiercel.runs.progress import describe
from tiercel.runs.replaced import Replaced, replaced
from tiercel.schedulers import scheduler_of
from tiercel.study.plan import Run

#: measuring: a process here measures, or a job runs; waiting: jobs wait, none runs; stopped: begun, and
#: nobody goes on; done: nothing is left.
State = Literal["not begun", "measuring", "waiting", "stopped", "done"]


@dataclass(frozen=True)
class Current:
    """A run that goes on."""

    run: str
    words: str
    seconds: float
    """Since it began."""


@dataclass(frozen=True)
class Part:
    """How far one workload is on one stack, over all scales; runs that only find an amount do not count."""

    experiment: str
    workload: str
    title: str
    storage: str
    storage_label: str
    layer: str
    """As in tables: ``none``, or the layers by their labels."""
    done: int
    failed: int
    left: int


@dataclass(frozen=True)
class Status:
    """What is done of a study, what goes on and what is left."""

    state: State
    done: int
    """Runs that ended well."""
    failures: tuple[Failure, ...]
    left: int
    """Runs that are certain to come; further repetitions are not."""
    seconds_left: float
    """Of measuring: by how long likes of what is left took, else as assumed."""
    current: tuple[Current, ...]
    jobs_running: int | None
    """Jobs of ours that the scheduler knows; None for a site without one."""
    jobs_waiting: int | None
    parts: tuple[Part, ...]
    """Each workload on each stack, in the order of the plan."""
    damaged: tuple[str, ...]
    """Runs that cannot be read, a sentence each; they count as left."""
    replaced: tuple[Replaced, ...]
    """Of what is left: what was measured before, with something else."""
    waiting_for: tuple[str, ...] = ()
    """A sentence for each job that waits, where the scheduler says why."""


def status_of(project: Project, root: Path) -> Status:
    """Return how far the plan is; nothing is changed, and no lock is taken."""
    plan = project.plan
    results = results_folder(root, plan.site.site)
    store = RawStore(results)
    damaged: list[str] = []
    history = History.load(plan, store, damaged)
    ended = history.ended
    failed = [(run.id, ended[run.id]) for run in plan.runs if ended.get(run.id)]
    done = len(ended) - len(failed)
    left = [r for r in plan.runs if r.id not in ended and certain(project, r) and history.wanted(r)]
    scheduler = scheduler_of(plan.site)
    jobs = None if scheduler is None or scheduler.missing() else scheduler.left_behind(plan.site.site, root)
    running = None if jobs is None else sum(job.running for job in jobs)
    waiting = None if jobs is None else sum(not job.running for job in jobs)
    names = {path.name for path in store.folder.iterdir()} if store.folder.is_dir() else set()
    begun = tuple(_begun(plan.runs, store, names - ended.keys()))
    state: State
    if running or held(results):
        state = "measuring"
    elif waiting:
        state = "waiting"
    elif left:
        state = "stopped" if done or failed or begun else "not begun"
    else:
        state = "done"
    return Status(
        state,
        done,
        failures=tuple(by_reason(failed)),
        left=len(left),
        seconds_left=sum(seconds_of(run, history) for run in left),
        current=begun if state == "measuring" else (),
        jobs_running=running,
        jobs_waiting=waiting,
        waiting_for=tuple(job.words for job in jobs or () if job.reason and not job.running),
        parts=tuple(_parts(plan.runs, ended, {run.id for run in left})),
        damaged=tuple(damaged),
        replaced=replaced(left, store, names),
    )


def _parts(runs: Sequence[Run], ended: Mapping[str, str], left: Set[str]) -> Iterator[Part]:
    """Yield what is done and left of each workload on each stack, of which anything is."""
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        c = run.configuration
        if not run.calibration and (run.id in ended or run.id in left):
            groups.setdefault((c.experiment, c.name, c.stack.name, c.stack.layer), []).append(run)
    for (experiment, workload, storage, layer), some in groups.items():
        first = some[0].configuration
        failed = sum(bool(ended.get(run.id)) for run in some)
        waiting = sum(run.id in left for run in some)
        yield Part(
            experiment, workload, first.workload.title or workload, storage,
            first.stack.storage.label or storage, layer,
            done=len(some) - failed - waiting, failed=failed, left=waiting,
        )  # fmt: skip


def _begun(runs: Sequence[Run], store: RawStore, unfinished: Set[str]) -> Iterator[Current]:
    """Yield runs that began and have not ended: those that go on, or were killed."""
    planned = {run.id: run for run in runs}
    now = time.time()
    for name in sorted(planned.keys() & unfinished):
        try:
            began = (store.path(name) / "run.json").stat().st_mtime
        except OSError:
            continue  # it has not quite begun
        yield Current(name, describe(planned[name]), max(0.0, now - began))


def held(results: Path) -> bool:
    """Return whether a process of this machine holds a lock of the site (proc_locks(5)): to try it oneself
    would turn away who wants it in that moment."""
    wanted = set()
    for name in (SiteLock.name, EvaluationLock.name):
        try:
            found = (results / name).stat()
        except OSError:
            continue
        wanted.add(f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}")
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return False
    # 1: FLOCK  ADVISORY  WRITE 123 fe:00:456 0 EOF; one that waits has an arrow before its kind.
    locks = (line.split() for line in lines)
    return any(len(words) > 5 and words[1] == "FLOCK" and words[5] in wanted for words in locks)
