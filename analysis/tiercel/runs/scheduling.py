"""From a plan to jobs: which Snakemake resources each batch asks for."""

from __future__ import annotations

from tiercel.errors import UserError
from tiercel.runs.estimate import job_minutes
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.schedulers import Request, scheduler_of
from tiercel.schedulers.base import account
from tiercel.study.plan import Batch


def resources_of(project: Project, batch: Batch, history: History, done: set[str]) -> dict[str, int | str]:
    """Return what a batch asks for, `done` being the runs that are finished; nothing without a scheduler.

    Who pays is left out where the site's variable for it is not set: a plan needs nothing of the machine, and
    before jobs are submitted it is asked for (planning.check_site).
    """
    site = project.plan.site
    scheduler, settings = scheduler_of(site), site.scheduler
    if scheduler is None or settings is None:
        return {}
    try:
        account(settings)
    except UserError:
        settings = settings.model_copy(update={"account": ""})
    stacks = {run.configuration.stack.name: run.configuration.stack.storage for run in batch.runs}
    minutes = job_minutes(project, batch.runs, history, done)
    return scheduler.resources(Request(site, settings, batch.nodes, minutes, stacks))
