"""How far a study is, as another terminal sees it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tiercel.cli.following import rest
from tiercel.errors import UserError
from tiercel.results.raw import RECORD, RawRun, RawStore
from tiercel.runs.batch import run_batch
from tiercel.runs.lock import SiteLock
from tiercel.runs.plan_table import print_plan
from tiercel.runs.planning import make_plan
from tiercel.runs.replaced import Replaced, _differences, _plain
from tiercel.runs.status import Status, status_of
from tiercel.runs.status_words import words_of

from ..conftest import Project

STUDY = """
study: tiny
title: Two workloads, one of which fails
repetitions: {minimum: 2, maximum: 4}
twins: false
experiments:
  scaling:
    processes_per_node: [1]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 64KiB}
  names:
    processes_per_node: [1]
    workloads:
      files: {operation: metadata, items_per_process: 4, directories: false, phases: [create, remove]}
"""

#: Holds the lock of a site until its standard input ends.
HOLD = """
import sys
from pathlib import Path
from tiercel.runs.lock import SiteLock
with SiteLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def look(project: Project) -> Status:
    return status_of(make_plan("local", "tiny", project.root), project.root)


def test_from_nothing_to_the_end(project: Project) -> None:
    project.study("tiny", STUDY)
    before = look(project)
    assert (before.state, before.done, before.failures, before.left) == ("not begun", 0, (), 4)
    assert before.seconds_left > 0 and before.jobs_running is None
    plan = make_plan("local", "tiny", project.root)
    for batch in plan.plan.batches[:1]:  # the first round: one run of each workload
        run_batch(plan, batch, project.results)
    between = look(project)
    assert (between.state, between.done, between.left, between.current) == ("stopped", 2, 2, ())
    for batch in plan.plan.batches:
        run_batch(plan, batch, project.results)
    after = look(project)
    assert after.state == "done" and after.done >= 4 and (after.left, after.seconds_left) == (0, 0)
    assert words_of(after, "local", "tiny")[0] == "site local, study tiny: finished"
    # Two workloads on one storage: of each one of at least two runs is done in between.
    assert [(p.workload, p.done, p.failed, p.left) for p in between.parts] == [
        ("write", 1, 0, 1), ("files", 1, 0, 1),
    ]  # fmt: skip
    assert all(p.done >= 2 and not p.left for p in after.parts)


def test_a_plan_is_shown_without_what_a_title_does_to_a_terminal(project: Project) -> None:
    title = r'"[/bold] \e[2J two"'
    project.study("tiny", STUDY.replace("Two workloads, one of which fails", title))
    out = io.StringIO()
    print_plan(make_plan("local", "tiny", project.root), project.root, out)
    assert r"[/bold] \x1b[2J two" in out.getvalue()


def test_what_is_measured_again_says_what_changed(project: Project) -> None:
    """A setting of one workload, and the version of an engine as it was measured; others are not touched."""
    project.study("tiny", STUDY)
    plan = make_plan("local", "tiny", project.root)
    run_batch(plan, plan.plan.batches[0], project.results)
    assert look(project).replaced == ()
    project.study("tiny", STUDY.replace("transfer_size: 64KiB", "transfer_size: 32KiB"))
    assert look(project).replaced == (Replaced("workload.transfer_size was 65536 and is 32768", 1),)
    assert look(project).parts[0].done == 0 and look(project).parts[1].done == 1
    assert "1 of these runs replace earlier ones" in words_of(look(project), "local", "tiny")[2]
    # Another study's runs of the same names are none of this one's.
    project.study("other", STUDY.replace("study: tiny", "study: other"))
    assert status_of(make_plan("local", "other", project.root), project.root).replaced == ()


def test_layers_that_changed_are_told_by_their_labels() -> None:
    """Whole lists of settings stood there; and each was held against a run through another policy."""

    def layers(version: str, **options: str) -> dict[str, object]:
        said = " ".join(f"{key}={value}" for key, value in options.items())
        label = f"fairshare {said}".strip()
        one = {"layer": "fairshare", "options": options, "label": label, "version": version}
        return {"layers": [one]}

    def told(before: dict[str, object], now: dict[str, object]) -> list[str]:
        return [f"{name} was {_plain(a)} and is {_plain(b)}" for name, a, b in _differences(before, now)]

    fifo = layers("1", policy="fifo")
    assert told(fifo, layers("2", policy="fifo")) == ["layer fairshare: version was 1 and is 2"]
    assert told(fifo, layers("1", policy="size-fair")) == [
        "layers was fairshare policy=fifo and is fairshare policy=size-fair"
    ]
    assert told(fifo, {"layers": []}) == ["layers was fairshare policy=fifo and is not set"]


def test_a_damaged_run_is_no_change(project: Project) -> None:
    project.study("tiny", STUDY)
    plan = make_plan("local", "tiny", project.root)
    run_batch(plan, plan.plan.batches[0], project.results)
    store = RawStore(project.results)
    (store.path(store.ids()[0]) / RECORD).write_text("{")
    found = look(project)
    assert len(found.damaged) == 1 and found.replaced == ()


def test_an_amount_that_a_calibration_found_is_no_change(project: Project) -> None:
    """What was found is no setting; that there is another aim is told."""
    aimed = STUDY.replace("  scaling:\n", "  scaling:\n    phase_time: 0.1\n")
    project.study("tiny", aimed)
    plan = make_plan("local", "tiny", project.root)
    for batch in plan.plan.batches:
        run_batch(plan, batch, project.results)
    project.study("tiny", aimed.replace("0.1", "0.2"))
    assert {each.reason for each in look(project).replaced} == {"phase_time was 0.1 and is 0.2"}


def test_each_run_is_read_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.study("tiny", STUDY)
    plan = make_plan("local", "tiny", project.root)
    run_batch(plan, plan.plan.batches[0], project.results)
    read: list[str] = []
    really = RawStore.read

    def counted(store: RawStore, run_id: str) -> RawRun | None:
        read.append(run_id)
        return really(store, run_id)

    monkeypatch.setattr(RawStore, "read", counted)
    assert look(project).done == len(read) == len(set(read)) > 0


def test_what_goes_on_and_what_was_cut_off_are_told_apart(project: Project) -> None:
    """A run without a record goes on while somebody holds the site's lock; else it was killed."""
    project.study("tiny", STUDY)
    run = make_plan("local", "tiny", project.root).plan.runs[0]
    RawStore(project.results).begin(run.id, run.row())
    assert (look(project).state, look(project).current) == ("stopped", ())
    with SiteLock(project.results):
        during = look(project)
    assert during.state == "measuring" and [each.run for each in during.current] == [run.id]
    assert f"now: {during.current[0].words}, for " in "\n".join(words_of(during, "local", "tiny"))
    assert look(project).state == "stopped"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(project.results)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout and holder.stdin
    holder.stdout.readline()
    assert look(project).state == "measuring"  # another process's
    holder.stdin.close()
    holder.wait()
    holder.stdout.close()


def test_a_page_that_is_made_anew_rests_no_longer_than_its_study_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 of the evaluation its last page said for minutes that it was being measured."""
    waited: list[float] = []
    rest(1e6, project.results)  # nobody measures
    with ExitStack() as measuring:
        measuring.enter_context(SiteLock(project.results))

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 3:
                measuring.close()

        monkeypatch.setattr("tiercel.cli.following.time.sleep", sleep)
        rest(1e6, project.results)
    assert len(waited) == 3


@pytest.mark.nightly
def test_a_study_that_nobody_goes_on_with_is_followed_to_its_page(project: Project) -> None:
    project.study("tiny", STUDY)
    plan = make_plan("local", "tiny", project.root)
    run_batch(plan, plan.plan.batches[0], project.results)
    said = project.tiercel("report", "--study", "tiny", "--follow")
    assert said.returncode == 0 and "no measurement is running (stopped, 2 runs remaining)" in said.stderr
    assert "2 of 4 planned runs" in " ".join(Path(said.stdout.strip()).read_text().split())


def test_failures_are_counted_by_reason(project: Project) -> None:
    project.study("tiny", STUDY)
    plan = make_plan("local", "tiny", project.root)
    run_batch(plan, plan.plan.batches[0], project.results)
    store = RawStore(project.results)
    for n, run_id in enumerate(store.ids()):
        path = store.path(run_id) / RECORD
        record = json.loads(path.read_text())
        path.write_text(json.dumps({**record, "status": "failed", "reason": f"disk {n} is gone"}))
    found = look(project)
    assert found.done == 0 and {f.reason for f in found.failures} == {"disk 0 is gone", "disk 1 is gone"}
    assert [(p.done, p.failed) for p in found.parts] == [(0, 1), (0, 1)]
    assert any("disk 0 is gone" in line for line in words_of(found, "local", "tiny"))


def test_on_the_command_line(project: Project) -> None:
    said = json.loads(project.tiercel("status", "--study", "tiny", "--json").stdout)
    assert (said["site"], said["study"], said["state"]) == ("local", "tiny", "not begun")
    watched = " ".join(project.tiercel("status", "--study", "tiny", "--watch").stdout.split())
    assert "`tiercel evaluate --site local --study tiny`" in watched
    wrong = project.tiercel("status", "--study", "tiny", "--watch", "--json")
    assert wrong.returncode == 2 and "--watch" in wrong.stderr
    assert project.tiercel("status", "--study", "none").returncode == 2
    with pytest.raises(UserError):
        status_of(make_plan("elsewhere", "tiny", project.root), project.root)


def test_a_job_that_waits_has_its_reason() -> None:
    status = Status("waiting", 0, (), 2, 60.0, (), 0, 1, (), (), (), ("job 7 cannot start: PartitionConfig",))
    lines = words_of(status, "here", "tiny")
    assert lines[lines.index("jobs: 0 running, 1 waiting") + 1] == "job 7 cannot start: PartitionConfig"
