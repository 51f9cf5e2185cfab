"""A batch that ends before its runs do: the job's time, a lost node, core-hours; and what a study costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

from tiercel.errors import Interrupted
from tiercel.results.raw import RawStore
from tiercel.runs import batch as batches
from tiercel.runs.batch import OutOfTime, run_batch
from tiercel.runs.estimate import costs, job_minutes
from tiercel.runs.execute import JobBroken
from tiercel.runs.history import History
from tiercel.runs.job import Allocation
from tiercel.runs.planning import Project as Plan
from tiercel.runs.planning import make_plan
from tiercel.runs.workflow import run_workflow
from tiercel.workflow import workflow_plan

from ..conftest import Project, needs_iokernel

pytestmark = needs_iokernel

#: Assumed: 2 x 5 s to start two steps, 200 MiB written and read again at 200 MiB/s of one node: 12 s a run.
STUDY = """
study: tiny
title: One workload, two rounds
repetitions: {minimum: 2, maximum: 3}
twins: false
experiments:
  scaling:
    processes_per_node: [1]
    workloads:
      write: {operation: write, transfer_size: 1MiB, data_per_process: 200MiB}
      read: {operation: read, transfer_size: 1MiB, data_per_process: 200MiB}
"""


@pytest.fixture
def small(project: Project) -> Project:
    project.study("tiny", STUDY)
    change_site(project, cores_per_node=36)
    return project


def change_site(project: Project, **keys: object) -> None:
    path = project.root / "site-configs" / "local" / "site.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **keys}))


def planned(project: Project) -> Plan:
    return make_plan("local", "tiny", project.root)


def history_of(project: Project, plan: Plan) -> tuple[History, set[str]]:
    store = RawStore(project.results)
    return History.load(plan.plan, store), set(store.ids())


def test_cost_by_assumption_and_by_likes(small: Project) -> None:
    plan = planned(small)
    (cost,) = costs(plan, *history_of(small, plan))
    # Two workloads, two certain repetitions (the third hangs on the spread), one job a round.
    assert (cost.nodes, cost.jobs, cost.runs, cost.judged) == (1, 2, 4, 0)
    assert cost.seconds == pytest.approx(4 * 12)
    assert cost.core_hours == pytest.approx(4 * 12 * 36 / 3600)
    assert 0 < cost.least_seconds < cost.seconds / 10  # on a good day
    # Without a scheduler's limit: 3 minutes around 1.5 times two runs of 12 s, 216 s, in whole minutes.
    assert job_minutes(plan, plan.plan.batches[0].runs, *history_of(small, plan)) == 4

    run_batch(plan, plan.plan.batches[0], small.results)
    (cost,) = costs(plan, *history_of(small, plan))
    assert (cost.jobs, cost.runs, cost.judged) == (1, 2, 2)
    durations = [raw.record["duration"] for raw in RawStore(small.results)]
    assert cost.seconds == pytest.approx(sum(durations))  # each as long as its like

    shown = small.tiercel("plan", "--study", "tiny", "--cost")
    assert shown.returncode == 0
    assert "2 runs: similar runs" in " ".join(shown.stdout.split())
    table = json.loads(small.tiercel("plan", "--study", "tiny", "--cost", "--json").stdout)
    assert table["core_hours"] == pytest.approx(cost.core_hours)
    assert table["core_hours_used"] == pytest.approx(sum(durations) * 36 / 3600)
    assert table["core_hours_limit"] is None


def test_a_probe_judges_by_runs_that_count(small: Project) -> None:
    """One run of each experiment on each storage: here one of each, and it is not measured again."""
    plan = planned(small)
    shown = small.tiercel("plan", "--study", "tiny", "--cost", "--probe")
    assert shown.returncode == 0, shown.stderr
    (raw,) = RawStore(small.results)
    assert raw.ok and raw.run["run"] in {run.id for run in plan.plan.batches[0].runs}
    (cost,) = costs(plan, *history_of(small, plan))
    assert (cost.runs, cost.judged) == (3, 3)
    assert cost.seconds == cost.least_seconds == pytest.approx(3 * raw.record["duration"])
    assert "3 runs: similar runs" in " ".join(shown.stdout.split())
    again = small.tiercel("plan", "--study", "tiny", "--cost", "--probe")
    assert again.returncode == 0
    assert len(RawStore(small.results).ids()) == 1
    alone = small.tiercel("plan", "--study", "tiny", "--probe")
    assert alone.returncode == 2 and "--probe needs --cost" in alone.stderr


def snakemake(project: Project) -> str:
    """Carry out the study up to its tables and return what the user is told."""
    words = ["--profile", "local", "results/local/runs.parquet", "--config", "study=tiny", "announce=false"]
    ended = subprocess.run(
        [sys.executable, "-m", "snakemake", *words], cwd=project.root, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def test_core_hours_end_a_study_cleanly_and_a_raised_limit_goes_on(small: Project) -> None:
    # Any run takes longer than 0.1 ms of 36 cores: the first one begins, no other does.
    change_site(small, limits={"core_hours": 1e-6})
    assert "runs skipped: the budget limits.core_hours is used up" in snakemake(small)
    assert len(RawStore(small.results).ids()) == 1
    assert len(pd.read_parquet(small.results / "runs.parquet")) == 1

    # Again: said at once, nothing is started to find that out.
    assert "tiercel: site local: limits.core_hours are used up" in snakemake(small)
    assert len(RawStore(small.results).ids()) == 1

    change_site(small, limits={"core_hours": 100})
    snakemake(small)
    assert len(RawStore(small.results).ids()) >= 4
    assert len(pd.read_parquet(small.results / "runs.parquet")) >= 4


def test_a_used_up_budget_submits_nothing(small: Project) -> None:
    change_site(small, limits={"core_hours": 1e-6})
    plan = planned(small)
    first, *others = plan.plan.batches
    run_batch(plan, first, small.results)
    stamps = small.results / "batches" / "tiny"
    stamps.mkdir(parents=True)
    (stamps / f"{first.name}.done").write_text('{"ok": 1, "over budget": 1}')
    seen = workflow_plan("local", "tiny", small.root, make=True)
    assert "limits.core_hours are used up" in seen.used_up
    assert "more runs are left out; the report is made from what there is" in seen.used_up
    assert seen.stamps == [f"{first.name}.done"]  # and no job of the other rounds
    # Raised: all of them, and the one that left something out once more.
    change_site(small, limits={"core_hours": 100})
    raised = workflow_plan("local", "tiny", small.root, make=True)
    assert raised.used_up == ""
    assert raised.stamps == [f"{first.name}.again-1.done", *(f"{b.name}.done" for b in others)]
    # Looking has changed nothing.
    assert [p.name for p in stamps.iterdir()] == [f"{first.name}.done"]
    run_batch(planned(small), first, small.results)
    (stamps / f"{first.name}.again-1.done").write_text('{"ok": 1, "done": 1}')
    assert workflow_plan("local", "tiny", small.root, make=True).stamps == raised.stamps


def test_a_batch_goes_again_whose_run_was_moved_away(small: Project) -> None:
    first, *others = planned(small).plan.batches
    run_batch(planned(small), first, small.results)
    stamps = small.results / "batches" / "tiny"
    stamps.mkdir(parents=True)
    (stamps / f"{first.name}.done").write_text("{}")
    whole = workflow_plan("local", "tiny", small.root, make=True).stamps
    assert whole == [f"{b.name}.done" for b in (first, *others)]
    RawStore(small.results).path(first.runs[0].id).rename(small.root / "elsewhere")
    again = workflow_plan("local", "tiny", small.root, make=True).stamps
    assert again == [f"{first.name}.again-1.done", *whole[1:]]


def test_a_job_stops_before_its_time_is_over_and_the_next_one_goes_on(small: Project) -> None:
    plan = planned(small)
    first = plan.plan.batches[0]
    # Less than what is kept free at the end: the first run goes all the same, or a batch might never end.
    with pytest.raises(OutOfTime, match="1 runs of this batch are left"):
        run_batch(plan, first, small.results, walltime=5.0)
    assert len(RawStore(small.results).ids()) == 1
    counts = run_batch(plan, first, small.results, walltime=600.0)
    assert counts == {"done": 1, "ok": 1}


def test_the_command_asks_to_be_submitted_again(small: Project) -> None:
    name = planned(small).plan.batches[0].name
    words = ["batch", "--site", "local", "--study", "tiny", "--name", name, "--stamp", "done"]
    stopped = small.tiercel(*words, "--minutes", "0.1")
    assert stopped.returncode == 75
    assert "the next job resumes the batch" in stopped.stderr
    assert not (small.root / "done").exists()
    ended = small.tiercel(*words)
    assert ended.returncode == 0, ended.stderr
    assert json.loads((small.root / "done").read_text()) == {"done": 1, "ok": 1}


class Gone:
    """The nodes of a job that lost one."""

    def answer(self) -> bool:
        return False


def test_a_lost_node_is_no_result(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(small)
    first = plan.plan.batches[0]
    real = batches.look_at_job
    # The study's time limit ends the engine, as a dead node would, and then no node answers.
    broken = plan.plan.study.model_copy(update={"timeout": 0.001})
    hurried = Plan(
        type(plan.plan)(plan.plan.site, broken, plan.plan.configurations, plan.plan.batches),
        plan.engines, plan.installations, plan.launcher, plan.notes, plan.layers,
    )  # fmt: skip
    monkeypatch.setattr(batches, "look_at_job", lambda *_: Allocation(nodes=Gone()))  # type: ignore[arg-type]
    with pytest.raises(JobBroken, match="a node of the job is gone"):
        run_batch(hurried, first, small.results)
    assert RawStore(small.results).ids() == []

    monkeypatch.setattr(batches, "look_at_job", real)
    counts = run_batch(plan, first, small.results)
    assert counts["ok"] == 2
    attempts = sorted(raw.record["attempts"] for raw in RawStore(small.results))
    assert attempts == [1, 2]
    assert len(list((small.results / "raw" / "interrupted").iterdir())) == 1


def test_a_run_that_fails_while_all_nodes_answer_is_a_result(small: Project) -> None:
    plan = planned(small)
    hurried = plan.plan.study.model_copy(update={"timeout": 0.001})
    changed = Plan(
        type(plan.plan)(plan.plan.site, hurried, plan.plan.configurations, plan.plan.batches),
        plan.engines, plan.installations, plan.launcher, plan.notes, plan.layers,
    )  # fmt: skip
    counts = run_batch(changed, plan.plan.batches[0], small.results)
    assert counts == {"failed": 2}
    reasons = {raw.record["reason"] for raw in RawStore(small.results)}
    assert all("the study's timeout" in reason for reason in reasons)


def test_a_signal_while_the_workflow_starts_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    start = subprocess.Popen

    def asked_to_end_first(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGTERM)
        return start(*arguments, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(subprocess, "Popen", asked_to_end_first)
    with pytest.raises(Interrupted):
        run_workflow([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path)
