"""The plan is made once: the jobs of a workflow carry out what was kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiercel.engines.iokernel import IOKernel
from tiercel.errors import UserError
from tiercel.programs import Installation
from tiercel.results.raw import RawStore
from tiercel.runs.planning import here, make_plan
from tiercel.workflow import workflow_plan
from tiercel.workflow.plan import hand_over, is_prepared, plan_again, read_plan

from ..conftest import ONE, Project, needs_iokernel

pytestmark = needs_iokernel


@pytest.fixture
def one(project: Project) -> Project:
    project.study("tiny", ONE)
    return project


def test_a_kept_plan_is_the_plan_that_was_made(one: Project) -> None:
    made = workflow_plan("local", "tiny", one.root, make=True)
    kept = workflow_plan("local", "workflows/studies/tiny.yaml", one.root, make=False)
    assert kept.batches == made.batches
    assert [run.row() for run in kept.project.plan.runs] == [run.row() for run in made.project.plan.runs]
    assert [batch.name for batch in kept.project.plan.batches] == [batch.name for batch in made.batches]


def test_a_batch_carries_out_what_was_planned(one: Project, tmp_path: Path) -> None:
    """A study that is edited meanwhile is for the next workflow."""
    planned = workflow_plan("local", "tiny", one.root, make=True)
    (batch,), (run,) = planned.batches, planned.project.plan.runs
    one.study("tiny", ONE.replace("64KiB", "128KiB"))
    words = ("batch", "--site", "local", "--study", "tiny", "--stamp", str(tmp_path / "stamp"), "--name")
    done = one.tiercel(*words, batch.name)
    assert done.returncode == 0, done.stderr
    assert RawStore(one.results).ids() == [run.id]
    assert workflow_plan("local", "tiny", one.root, make=True).batches[0].name != batch.name
    refused = one.tiercel(*words, batch.name)
    assert refused.returncode == 2 and "planned again since the workflow began" in refused.stderr


def test_an_engine_that_was_built_anew_since_refuses_its_runs(
    one: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_plan("local", "tiny", one.root)
    (batch,) = project.plan.batches
    assert here(project, batch, one.root) == project
    monkeypatch.setattr(IOKernel, "find", lambda _: Installation("iokernel", "0.0", {}))
    with pytest.raises(UserError, match=r"engine iokernel: version 0.0 on .*when the workflow began"):
        here(project, batch, one.root)
    monkeypatch.setattr(IOKernel, "find", lambda _: None)
    with pytest.raises(UserError, match="engine iokernel: not there on "):
        here(project, batch, one.root)


def test_the_snakemake_of_a_command_reads_the_plan_of_that_command(
    one: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    project = make_plan("local", "tiny", one.root)
    hand_over(project, one.root)
    one.study("tiny", ONE.replace("64KiB", "128KiB"))
    assert is_prepared("local", "tiny", one.root) and not is_prepared("local", "quick", one.root)
    (run,) = project.plan.runs
    assert [r.id for r in workflow_plan("local", "tiny", one.root, make=True).project.plan.runs] == [run.id]
    plan_again()
    (other,) = workflow_plan("local", "tiny", one.root, make=True).project.plan.runs
    assert other.id != run.id


@pytest.mark.parametrize("content", [b"", b"{}", b"cnothing.here\nx\n.", b"\x80\x05K\x01."])
def test_a_damaged_plan(one: Project, content: bytes) -> None:
    folder = one.root / ".snakemake" / "tiercel"
    folder.mkdir(parents=True)
    (folder / "local.tiny.plan").write_bytes(content)
    with pytest.raises(
        UserError, match=r"local.tiny.plan: not a plan of this tiercel \(.*\): start the work"
    ):
        read_plan("local", "tiny", one.root)
