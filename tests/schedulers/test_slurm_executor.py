"""Jobs that Snakemake's Slurm executor would wait for without end: each is ended, or looked at again."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tiercel.schedulers import slurm_executor

#: What the executor's module asks Slurm with; None in place of states: no answer.
Answer = dict[str, str] | None


@dataclass
class Plugin:
    """The module as far as it matters: an executor that knows what the one of version 2.8 knows."""

    answers: list[Answer]
    reported: list[tuple[str, str]] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)

    def module(self) -> ModuleType:
        plugin, found = self, ModuleType("snakemake_executor_plugin_slurm")

        async def query_job_status(_command: str, _logger: object) -> tuple[Answer, float | None]:
            answer = plugin.answers.pop(0)
            return answer, None if answer is None else 0.1

        class Executor:
            async def check_active_jobs(self, jobs: list[Any]) -> AsyncIterator[Any]:
                self.next_seconds_between_status_checks = 170  # grows while nothing ends
                told, _ = await found.query_job_status("squeue", None)  # type: ignore[attr-defined]
                for job in jobs if told is not None else []:  # without an answer it forgets them all
                    state = told.get(job.external_jobid, "")
                    if state == "COMPLETED":
                        self.report_job_success(job)
                    elif state.split(" ")[0] in ("FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED"):
                        self.report_job_error(job, msg=state)
                    else:
                        yield job

            def report_job_success(self, job: Any) -> None:
                plugin.reported.append((job.external_jobid, "success"))

            def report_job_error(self, job: Any, msg: str = "") -> None:
                plugin.reported.append((job.external_jobid, msg))

            def run_job(self, job: Any) -> None:
                plugin.submitted.append(job)

            def cancel(self) -> None:
                pass

            def shutdown(self) -> None:
                pass

        found.query_job_status = query_job_status  # type: ignore[attr-defined]
        found.Executor = Executor  # type: ignore[attr-defined]
        slurm_executor.mend(found)
        slurm_executor.mend(found)  # again, as when Snakemake starts over in its process: once is enough
        return found


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put stand-ins for Slurm's programs on PATH; what they are told to do is shell."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(**programs: str) -> None:
        for name, body in programs.items():
            aside = tmp_path / f"{name}.new"
            aside.write_text(f"#!/bin/sh\n{body}\n")
            aside.chmod(0o755)
            aside.replace(tmp_path / name)

    return write


def look(executor: Any, jobs: list[Any]) -> list[str]:
    """Return the numbers of those jobs that are still waited for."""

    async def looked() -> list[str]:
        return [job.external_jobid async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(looked())


def jobs(*numbers: str) -> list[Any]:
    return [
        SimpleNamespace(external_jobid=number, job=SimpleNamespace(attempt=1, restart_times=5))
        for number in numbers
    ]


def test_without_an_answer_no_job_is_dropped(slurm: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = Plugin([None, None, {"1": "COMPLETED", "2": "RUNNING"}])
    executor = plugin.module().Executor()
    assert look(executor, jobs("1", "2")) == ["1", "2"]
    assert look(executor, jobs("1", "2")) == ["1", "2"]
    assert look(executor, jobs("1", "2")) == ["2"]
    assert plugin.reported == [("1", "success")]
    assert capsys.readouterr().err.count("Slurm does not tell how jobs are") == 1
    # Else a job that has ended would be seen up to three minutes later, and its nodes wait.
    assert executor.next_seconds_between_status_checks is None


def test_a_job_that_lost_its_nodes_for_good_is_submitted_again(
    slurm: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm(squeue="case $* in *--jobs=1) echo PREEMPTED ;; *) echo PENDING ;; esac")
    plugin = Plugin([{"1": "PREEMPTED", "2": "PREEMPTED", "3": "RUNNING"}])
    # The second is in the queue again by the time that it is looked at.
    assert look(plugin.module().Executor(), jobs("1", "2", "3")) == ["2", "3"]
    ((number, why),) = plugin.reported
    assert number == "1" and "lost its nodes" in why
    assert "tiercel: job 1 lost its nodes" in capsys.readouterr().err


def test_a_job_that_slurm_has_forgotten_is_submitted_again(slurm: Any) -> None:
    slurm(squeue="echo slurm_load_jobs error: Invalid job id specified >&2; exit 1")
    plugin = Plugin([{}, {"1": "RUNNING"}, {}, {}, {}])
    executor = plugin.module().Executor()
    # Twice is no proof: what accounting tells comes late.
    assert [look(executor, jobs("1")) for _ in range(4)] == [["1"]] * 4
    assert look(executor, jobs("1")) == []
    assert [why for _, why in plugin.reported] == ["SLURM-job '1' is not known to Slurm any more. "]


@pytest.mark.parametrize(
    "squeue", ["echo RUNNING", "echo 'Unable to contact slurm controller' >&2; exit 1", "exit 1"]
)
def test_a_job_that_may_run_is_waited_for(slurm: Any, squeue: str) -> None:
    """Submitted again while it runs, it would measure itself."""
    slurm(squeue=squeue)
    plugin = Plugin([{} for _ in range(6)])
    executor = plugin.module().Executor()
    assert [look(executor, jobs("1")) for _ in range(6)] == [["1"]] * 6
    assert plugin.reported == []


def test_what_slurm_ended_a_job_for_is_said(
    slurm: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a job cannot say it; one that failed has its own words."""
    monkeypatch.setenv("SBATCH_MEM_PER_NODE", "0")
    states = {"1": "OUT_OF_MEMORY", "2": "TIMEOUT", "3": "CANCELLED by 1000", "4": "FAILED"}
    plugin = Plugin([states, {"5": "OUT_OF_MEMORY"}])
    executor = plugin.module().Executor()
    looked_at = jobs(*states)
    assert look(executor, looked_at) == []
    assert len(plugin.reported) == 4
    # Snakemake tries again while attempt - 1 < restart_times: not what would be killed once more.
    assert [each.job.attempt for each in looked_at] == [6, 1, 1, 1]
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in said] == [
        "job 1 was killed", "job 2 was ended at its time limit", "job 3 was cancelled"
    ]  # fmt: skip
    assert "it asked for all of its nodes" in said[0]
    monkeypatch.setenv("SBATCH_MEM_PER_NODE", "700M")
    look(executor, jobs("5"))
    assert "SBATCH_MEM_PER_NODE=700M, as the environment says: unset it" in capsys.readouterr().err


def test_a_submission_waits_for_the_controller(
    slurm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(slurm_executor, "_PAUSE_S", 0.05)
    slurm(scontrol="echo 'Slurmctld(primary) at login is DOWN'; exit 1")
    plugin = Plugin([])
    executor = plugin.module().Executor()
    thread = threading.Thread(target=executor.run_job, args=("a job",), daemon=True)
    thread.start()
    while "controller does not answer" not in capsys.readouterr().err:
        time.sleep(0.01)
    assert plugin.submitted == []
    slurm(scontrol="printf 'Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n'")
    thread.join(60)
    assert plugin.submitted == ["a job"]


def test_an_interrupted_workflow_submits_nothing_more(slurm: Any) -> None:
    slurm(scontrol="echo 'Slurmctld(primary) at login is DOWN'; exit 1")
    plugin = Plugin([])
    executor = plugin.module().Executor()
    thread = threading.Thread(target=executor.run_job, args=("a job",), daemon=True)
    thread.start()
    executor.cancel()
    thread.join(60)
    assert not thread.is_alive() and plugin.submitted == []


def test_the_executor_that_is_installed_is_one_that_can_be_mended() -> None:
    """The names that the mends hang on; a newer version may have others, or need none."""
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    assert callable(plugin.query_job_status)
    for name in ("check_active_jobs", "report_job_success", "report_job_error", "run_job"):
        assert callable(getattr(plugin.Executor, name))
    for name in ("cancel", "shutdown"):
        assert callable(getattr(plugin.Executor, name))
