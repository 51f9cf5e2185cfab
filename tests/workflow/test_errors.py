"""Snakemake's own errors reach the user of ``tiercel evaluate``, which keeps Snakemake quiet."""

from __future__ import annotations

import getpass
import logging
import os
import pwd
from pathlib import Path

import pytest

from tiercel.workflow.account import name_user
from tiercel.workflow.errors import ErrorsOnce

from ..conftest import Project, needs_iokernel


def test_each_error_once_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("tests.snakemake")
    logger.propagate = False
    logger.addHandler(handler := ErrorsOnce())
    try:
        for _ in range(3):
            logger.error("sinfo: no controller\n")
        logger.warning("a warning")
        logger.error("Error in rule batch", extra={"event": "job_error"})
        logger.error("KeyError: uid not found", extra={"event": "error"})  # an exception of Snakemake's own
        logger.error("CalledProcessError in file measure.smk", extra={"event": "error"})
        logger.error("Exiting because a job execution failed. Look above for error messages")
        logger.error("")
    finally:
        logger.removeHandler(handler)
    said = capsys.readouterr().err
    assert said == "tiercel: snakemake: sinfo: no controller\ntiercel: snakemake: KeyError: uid not found\n"


def test_a_user_without_a_name_is_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as a number: Snakemake asks who it is, and ended in a traceback."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)

    def unknown(number: int) -> object:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    name_user()
    assert getpass.getuser() == str(os.getuid())


@needs_iokernel
def test_a_controller_that_does_not_answer_is_heard(project: Project, tmp_path: Path) -> None:
    """Of this nothing was heard but exit code 1: the executor tells Snakemake, and Snakemake was quiet.

    `squeue` answers, as tiercel itself asks it first whether jobs of before are under way.
    """
    for name in ("sinfo", "sbatch", "squeue", "sacct", "sacctmgr", "scontrol", "scancel"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'no controller' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "squeue").write_text("#!/bin/sh\n")
    profile = project.root / "site-configs" / "local" / "config.yaml"
    profile.unlink()
    profile.write_text(
        "configfile: site.yaml\nexecutor: slurm\njobs: 1\ncores: 1\nnolock: true\nretries: 2\n"
        "slurm-jobname-prefix: tiercel-local\nresources: [measuring=1]\n"
        # Snakemake ends when its executor has waited for this: 40 s by default.
        "slurm-init-seconds-before-status-checks: 1\nseconds-between-status-checks: 1\n"
    )
    with (profile.parent / "site.yaml").open("a") as site:
        site.write("scheduler: {name: slurm}\n")
    said = project.tiercel("evaluate", "--study", "tiny", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert said.returncode == 1, said.stderr
    assert said.stderr.count("tiercel: snakemake: ") == said.stderr.count("no controller") == 1, said.stderr
    assert said.stderr.splitlines()[-1].startswith("tiercel: site local: the workflow failed")
