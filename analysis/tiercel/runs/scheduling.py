"""From a plan to jobs: which Snakemake resources each batch asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tiercel.results.raw import RawStore
from tiercel.runs.estimate import job_minutes
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.schedulers import Request, scheduler_of


def batch_resources(project: Project, results: Path, dry_run: bool) -> Mapping[str, Callable[..., int | str]]:
    """Return the resources of Snakemake's rule `batch`: functions of its wildcards; none without a scheduler.

    A dry run needs neither the environment variables of the site nor its machine.
    """
    site = project.plan.site
    scheduler, settings = scheduler_of(site), site.scheduler
    if scheduler is None or settings is None:
        return {}
    if dry_run:
        settings = settings.model_copy(update={"account": ""})

    @cache
    def request(name: str, attempt: int) -> dict[str, int | str]:
        batch = project.plan.batch(name)
        if batch is None:  # in a job whose plan has changed since it was submitted: `tiercel batch` says so
            return scheduler.resources(Request(site, settings, 1, 1))
        history, done = _so_far(attempt)
        stacks = {run.configuration.stack.name: run.configuration.stack for run in batch.runs}
        licences = tuple(sorted({s.storage.licence for s in stacks.values() if s.storage.licence}))
        minutes = job_minutes(project, batch.runs, history, done)
        return scheduler.resources(Request(site, settings, batch.nodes, minutes, licences))

    @cache
    def _so_far(_attempt: int) -> tuple[History, set[str]]:
        # Once for each attempt: thousands of records are read.
        store = RawStore(results)
        return History.load(project.plan, store), set(store.ids())

    def resource(key: str) -> Callable[..., int | str]:
        def value(wildcards: Any, attempt: int) -> int | str:
            return request(wildcards.batch, attempt)[key]

        return value

    return {key: resource(key) for key in request(project.plan.batches[0].name, 1)}
