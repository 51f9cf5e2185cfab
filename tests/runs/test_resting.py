"""Data that rests before it is read: all of a job's at the same time, and never less than asked for."""

from __future__ import annotations

import pytest

from tiercel.errors import UserError
from tiercel.results.observations import collect
from tiercel.results.raw import RawStore
from tiercel.runs import resting
from tiercel.runs.batch import run_batch
from tiercel.runs.estimate import costs
from tiercel.runs.history import History
from tiercel.runs.planning import Project as Plan
from tiercel.runs.planning import make_plan

from ..conftest import Project, needs_iokernel

pytestmark = needs_iokernel

REST = 2.0
STUDY = """
study: tiny
title: Old data
repetitions: {minimum: 1, maximum: 1}
twins: false
experiments:
  data:
    processes_per_node: [1, 2]
    workloads:
      old: {operation: read, transfer_size: 64KiB, segments: 16, rest: 2s}
      new: {operation: read, transfer_size: 64KiB, segments: 16}
"""


@pytest.fixture
def plan(project: Project) -> Plan:
    project.study("tiny", STUDY)
    return make_plan("local", "tiny", project.root)


def carry_out(plan: Plan, project: Project) -> None:
    for batch in plan.plan.batches:
        run_batch(plan, batch, project.results)


def test_all_data_of_a_job_rests_at_the_same_time_while_others_work(project: Project, plan: Plan) -> None:
    carry_out(plan, project)
    observations, runs = collect(project.results)
    began = observations.pivot(index="run", columns="role", values="began")
    workload = observations.groupby("run")["workload"].first()
    old, new = began[workload == "old"], began[workload == "new"]
    assert len(old) == len(new) >= 2 and (runs["status"] == "ok").all()
    assert ((old["measured"] - old["setup"]) >= REST).all()
    # What rests was written before anything else began, and was read after all else.
    assert old["setup"].max() < new["setup"].min()
    assert new["measured"].max() < old["measured"].min()
    ages = observations[observations["role"] == "measured"].set_index("run")["data_age"]
    assert (ages[workload == "old"] >= REST).all() and ages[workload == "new"].isna().all()


def test_the_plan_counts_one_rest_for_each_job(project: Project, plan: Plan) -> None:
    history = History.load(plan.plan, RawStore(project.results))
    with_rest = sum(cost.seconds for cost in costs(plan, history, set()))
    project.study("tiny", STUDY.replace(", rest: 2s", ""))
    other = make_plan("local", "tiny", project.root)
    without = sum(cost.seconds for cost in costs(other, history, set()))
    assert len(plan.plan.batches) == 1
    assert with_rest - without == pytest.approx(REST)


def test_what_ends_while_data_rests_leaves_nothing_and_goes_again(
    project: Project, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        pass

    def end(_: float) -> None:
        raise Ended

    with monkeypatch.context() as patched:
        patched.setattr(resting.time, "sleep", end)
        with pytest.raises(Ended):
            carry_out(plan, project)
    assert not list(project.root.rglob("tiercel-run-*/data/*"))
    names = [raw.run["name"] for raw in RawStore(project.results)]
    assert names and set(names) == {"new"}
    carry_out(plan, project)
    assert {raw.run["name"] for raw in RawStore(project.results) if raw.ok} == {"old", "new"}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("operation: write, segments: 1, rest: 2s", "rest is of a cold read"),
        ("operation: read, access: RAW, segments: 1, rest: 2s", "rest is of a cold read"),
        ("operation: read, segments: 1, repeats: 2, rest: 2s", "rest excludes repeats"),
    ],
)
def test_what_cannot_rest_is_refused(project: Project, keys: str, says: str) -> None:
    old = "operation: read, transfer_size: 64KiB, segments: 16, rest: 2s"
    project.study("tiny", STUDY.replace(old, keys))
    with pytest.raises(UserError, match=says):
        make_plan("local", "tiny", project.root)
