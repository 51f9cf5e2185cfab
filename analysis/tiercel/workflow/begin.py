"""What is done before the jobs of a workflow begin: Snakemake's ``onstart``, so never in a dry run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tiercel.project import project_root, results_folder
from tiercel.runs.controller import take_over
from tiercel.runs.filesystems import record_file_systems
from tiercel.runs.planning import Project, check_site
from tiercel.schedulers import scheduler_of
from tiercel.site import load_site
from tiercel.site.profile import check_executor
from tiercel.stack import prepare
from tiercel.workflow.plan import WorkflowPlan, is_prepared, plan_again
from tiercel.workflow.writable import check_writable

#: Set once Snakemake has started over: it does so once, whatever else changes.
_ONCE = "TIERCEL_STARTED_OVER"


def begin(plan: WorkflowPlan, root: Path, executor: str) -> bool:
    """Build the stack where the site asks for it, check the site, and take over what a killed Snakemake left.

    `executor`: by name, what jobs go to. Returned is whether that changed what is to be done;
    then Snakemake is to start over. What `tiercel evaluate` has done before this Snakemake is not done again.
    UserError where the site cannot carry out the plan.
    """
    site = plan.project.plan.site
    if not site.simulated:
        check_executor(plan.site, site.scheduler is not None, executor)
    first = _ONCE not in os.environ
    if not is_prepared(plan.site, plan.study, root):
        if prepare(plan.site, root) and first:
            return True  # planned without the engines that there are now
        check_site(plan.project)
        make_ready(plan.project, root)
    taken = take_over(site, root, results_folder(root, plan.site))
    if scheduler := scheduler_of(site):
        scheduler.prepare()
    return first and taken is not None and taken.jobs > 0


def make_ready(project: Project, root: Path) -> None:
    """Check that jobs can write their results, and record the site's file systems; UserError as for these."""
    site, study = project.plan.site.site, project.plan.study.study
    check_writable(root, site, study)
    record_file_systems(project.plan, results_folder(root, site))


def prepare_scheduler(site: str) -> None:
    """Have this Snakemake's executor mended for the site, in a workflow that begins nothing else."""
    if scheduler := scheduler_of(load_site(site, project_root())):
        scheduler.prepare()


def start_over() -> None:
    """Become a new Snakemake with the same words; it sees what is there now."""
    os.environ[_ONCE] = "1"
    plan_again()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *sys.argv[1:]])
