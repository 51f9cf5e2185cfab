"""Submits the checklist's jobs through Snakemake, waits for them, and makes facts of what they found.

Two jobs: one of one node and one of two, each with the resources, licences and options that a study's job of
that size gets. More would prove nothing more: what a job asks for hangs on its nodes alone, and all storage
systems can be looked at from the same one, while each further job may wait in a queue for hours.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tiercel
from tiercel.checklist.guard import end_jobs, guarded
from tiercel.errors import UserError
from tiercel.launchers import resolve
from tiercel.pages.words import count
from tiercel.project import provided, results_folder
from tiercel.runs.controller import take_over
from tiercel.runs.execute import last_line
from tiercel.runs.lock import EvaluationLock
from tiercel.runs.workflow import run_workflow
from tiercel.schedulers import Job as SubmittedJob
from tiercel.schedulers import Request, Scheduler, scheduler_of
from tiercel.site.facts import Found, Measured
from tiercel.site.model import Site
from tiercel.site.profile import profile_of
from tiercel.site.scheduler import SchedulerSettings

FOLDER = "check"
WORKFLOW = "workflows/check.smk"
#: Minutes that a job asks for: a launcher that hangs is given up before.
MINUTES = 15

#: What says in a workflow's output why a job was not taken, or ended.
_SAID = (
    re.compile(r"(?:sbatch|bsub|qsub|flux[- ]batch|submit): *(?:error: *)?(.*)"),
    re.compile(r"status is: '?(\w+)"),
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Job:
    name: str
    nodes: int


def jobs_of(site: Site) -> list[Job]:
    """Return the jobs of the checklist: what differs between jobs of a study is how many nodes they have."""
    several = site.nodes > 1 and resolve(site.launcher, site.launcher_options).several_nodes
    return [Job(f"nodes-{nodes}", nodes) for nodes in ((1, 2) if several else (1,))]


def check_on_nodes(site: Site, root: Path, patience: float) -> Measured:
    """Carry out the checklist in jobs of the site and return what they found.

    `patience`: seconds for the jobs to begin. A job that is refused, does not begin, or dies is one fact that
    does not fit; UserError for what keeps all from being submitted.
    """
    results = results_folder(root, site.site)
    folder = results / FOLDER
    scheduler = scheduler_of(site)
    with ExitStack() as held:
        held.enter_context(EvaluationLock(results))
        taken = take_over(site, root, results)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        jobs = jobs_of(site)
        plan = root / ".snakemake" / f"tiercel-{site.site}.check.json"  # who pays stands in it: no result
        plan.parent.mkdir(exist_ok=True)
        plan.write_text(json.dumps({job.name: _asked(site, job) for job in jobs}))
        if taken is not None:
            held.enter_context(guarded(site.site, root, taken.lock))
        waiting = _Waiting(
            jobs, folder, patience if scheduler else math.inf,
            lambda: scheduler.left_behind(site.site, root) if scheduler else [],
        )  # fmt: skip
        try:
            _workflow(site, root, folder, plan, waiting)
        finally:
            if scheduler is not None:
                end_jobs(scheduler, site.site, root)
    found = [_of_job(job, folder, scheduler, waiting) for job in jobs]
    return Measured(
        site=site.site, date=time.strftime("%Y-%m-%d"), tiercel=tiercel.__version__,
        facts=[*_of_scheduler(site, jobs, found), *merged(found)],
    )  # fmt: skip


def merged(found: Sequence[Sequence[Found]]) -> list[Found]:
    """Return each fact once, of jobs from fewer nodes to more: what does not fit wins, then what is known."""
    facts: dict[str, Found] = {}
    for each in (fact for of_job in found for fact in of_job):
        before = facts.get(each.fact)
        if before is None or before.fits is None or (before.fits and each.fits is not None):
            facts[each.fact] = each
    return list(facts.values())


def _asked(site: Site, job: Job) -> dict[str, Any]:
    """Return what a job is: its nodes, and the resources that a study's job of that size asks for."""
    scheduler = scheduler_of(site)
    resources: dict[str, int | str] = {}
    if scheduler is not None and site.scheduler is not None:
        minutes = min(MINUTES, int(site.scheduler.walltime // 60))
        resources = scheduler.resources(Request(site, site.scheduler, job.nodes, minutes, site.storages))
    return {"nodes": job.nodes, "resources": resources}


class _Waiting:
    """Watches whether the jobs begin."""

    def __init__(
        self,
        jobs: Sequence[Job],
        folder: Path,
        patience: float,
        submitted: Callable[[], Sequence[SubmittedJob]],
    ) -> None:
        """`submitted` asks the scheduler about the jobs."""
        self._jobs, self._folder, self._patience = jobs, folder, patience
        self._submitted = submitted
        self._reasons: list[str] = []
        self._since = time.monotonic()
        self.over = False

    def begun(self, job: Job) -> bool:
        return (self._folder / f"{job.name}.begun").exists()

    def enough(self) -> bool:
        """Return whether some job has not begun in time; asked while the workflow goes on."""
        list(self._folder.iterdir())  # NFS looks for new names when a folder is listed
        late = time.monotonic() - self._since > self._patience
        if not self.over and late and not all(self.begun(job) for job in self._jobs):
            self.over = True
            with suppress(UserError):  # it does not answer
                self._reasons = [job.words for job in self._submitted() if job.reason]
        return self.over

    def sentence(self) -> str:
        minutes = self._patience / 60
        said = f"did not begin within {minutes:g} minutes (--wait): cancelled"
        return "; ".join([said, *self._reasons])


def _workflow(site: Site, root: Path, folder: Path, plan: Path, waiting: _Waiting) -> None:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(provided(root, WORKFLOW))]
    command += [
        "--profile",
        profile_of(site.site, root),
        "--retries",
        "0",
        "--quiet",
        "host",
        "--config",
        f"jobs={plan}",
    ]
    with (folder / "snakemake.log").open("wb") as log:
        run_workflow(command, root, log.fileno(), waiting.enough)


def _of_job(job: Job, folder: Path, scheduler: Scheduler | None, waiting: _Waiting) -> list[Found]:
    try:
        content = json.loads((folder / f"{job.name}.json").read_text())
        return [Found.model_validate(each) for each in content["facts"]]
    except FileNotFoundError:
        pass
    where = f"job of {count(job.nodes, 'node')}"
    log = _COLOURS.sub("", (folder / "snakemake.log").read_text(errors="replace"))
    said = _own_words(folder / f"{job.name}.log") or why_not(of_job(log, f"{job.name}.json"))
    if waiting.over and not waiting.begun(job):
        said = waiting.sentence()
    elif waiting.begun(job):
        said = f"began, and ended before it had finished: {said}"
    name = scheduler.name if scheduler else "snakemake"
    return [Found(fact=where, fits=False, problem=f"{name}: {said}")]


def _own_words(log: Path) -> str:
    """Return what tiercel itself said in a job; empty where it was killed before."""
    if not log.exists():
        return ""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("tiercel: ")]
    # Interrupted: whoever ended the job knows why.
    return "" if not lines or "interrupted" in lines[-1] else lines[-1].removeprefix("tiercel: ")


def of_job(log: str, output: str) -> str:
    """Return the part of a workflow's log on the job that was to write `output`, else all of it."""
    parts = [part for part in re.split(r"^(?=Error in rule )", log, flags=re.MULTILINE)[1:] if output in part]
    return parts[0] if parts else log


def why_not(said: str) -> str:
    """Return what a workflow's output says of a job that did not end well, in one line."""
    for pattern in _SAID:
        matches = [match[1].strip() for match in pattern.finditer(said) if match[1].strip()]
        if matches:
            return matches[-1]
    return last_line(said) or "nobody says why (see the workflow's log under .snakemake)"


def _of_scheduler(site: Site, jobs: Sequence[Job], found: Sequence[Sequence[Found]]) -> list[Found]:
    """Return what jobs that ran say of the scheduler's settings."""
    settings: SchedulerSettings | None = site.scheduler
    ran = [job.nodes for job, facts in zip(jobs, found, strict=True) if not facts[0].fact.startswith("job ")]
    if settings is None or not ran:
        return []
    said = f"jobs ran: {' and '.join(count(nodes, 'node') for nodes in ran)}"
    facts = [
        Found(fact="scheduler.name", stated=settings.name, found=said, fits=True),
        Found(fact="scheduler.partition", stated=settings.partition or "default", found=said, fits=True),
    ]
    for name, storage in site.storages.items():
        if storage.licence:
            key = f"storages.{name}.licence"
            facts.append(Found(fact=key, stated=storage.licence, found="given to the jobs", fits=True))
    return facts
