"""Shows to people the jobs that a study would submit: ``tiercel plan --jobs``. Nothing is submitted."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tiercel.documents import read_yaml
from tiercel.errors import UserError
from tiercel.results.raw import RawStore
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.runs.scheduling import resources_of
from tiercel.schedulers import scheduler_of
from tiercel.site.profile import check_profile, profile_of
from tiercel.study.plan import Batch


class _Resources(dict[str, Any]):
    """A job's resources as Snakemake's executors see them: by name, and as attributes."""

    __getattr__ = dict.__getitem__


def print_jobs(project: Project, root: Path, results: Path) -> None:
    """Print for each job the command that submits it and the one that it runs.

    UserError for a site without a scheduler.
    """
    site = project.plan.site
    scheduler = scheduler_of(site)
    if scheduler is None:
        raise UserError(
            f"site {site.site}: has no scheduler: its runs start on this machine, and no job is submitted"
        )
    check_profile(site.site, root)
    profile = read_yaml(root / profile_of(site.site, root) / "config.yaml")
    store = RawStore(results)
    history, done = History.load(project.plan, store), set(store.ids())
    variables = "".join(f"{name}={value} " for name, value in scheduler.environment().items())
    for batch in project.plan.batches:
        found = _Resources(resources_of(project, batch, history, done))
        what = f"at most {len(batch.runs)} runs on {batch.nodes} nodes"
        print(f"# {batch.name}: {what}, {found['runtime']} minutes")
        print(variables + _submission(profile, found, batch, project))
        print(f"    {_command(batch, project, found)}")


def _command(batch: Batch, project: Project, resources: Mapping[str, Any]) -> str:
    plan = project.plan
    words = [sys.executable, "-m", "tiercel", "batch", "--site", plan.site.site, "--study", plan.study.study]
    return shlex.join([*words, "--name", batch.name, "--minutes", str(resources["runtime"])])


def _submission(profile: Mapping[str, Any], resources: _Resources, batch: Batch, project: Project) -> str:
    """Return the command with which the profile's executor submits a job; JOBSCRIPT stands for its script."""
    if script := profile.get("cluster-generic-submit-cmd"):
        return f"{str(script).format(resources=resources)} JOBSCRIPT"
    # The executor's own words, so that nothing here can differ from what it does.
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command  # noqa: PLC0415

    settings = project.plan.site.scheduler
    assert settings is not None
    parameters = {
        "run_uuid": f"{profile.get('slurm-jobname-prefix', 'snakemake')}_UUID",
        "slurm_logfile": f".snakemake/slurm_logs/rule_batch/{batch.name}/%j.log",
        "comment_str": f"rule_batch_wildcards_{batch.name}",
        "account": f"-A {settings.account}" if settings.account else "",
        "partition": f"-p {settings.partition}" if settings.partition else "",
        "workdir": "",
    }
    job = SimpleNamespace(resources=resources, threads=1)
    options = SimpleNamespace(
        requeue=profile.get("slurm-requeue", False), no_requeue=profile.get("slurm-no-requeue", False),
        qos=profile.get("slurm-qos"), reservation=profile.get("slurm-reservation"),
    )  # fmt: skip
    return f"{get_submit_command(job, parameters, settings=options)} JOBSCRIPT"
