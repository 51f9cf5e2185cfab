"""Calibrations carried out: found once, kept whatever happens, the same for all, no number of the report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tiercel.errors import UserError
from tiercel.results.dataset import to_dataset
from tiercel.results.observations import collect
from tiercel.results.raw import RawRun, RawStore
from tiercel.runs.batch import retry_failed, run_batch
from tiercel.runs.estimate import costs
from tiercel.runs.history import History
from tiercel.runs.planning import Project as Plan
from tiercel.runs.planning import make_plan

from ..conftest import Project, needs_iokernel

pytestmark = needs_iokernel

STUDY = """
study: tiny
title: One that aims at a time
repetitions: {minimum: 2, maximum: 2}
experiments:
  data:
    phase_time: 100ms
    processes_per_node: [1]
    workloads:
      write: {operation: write, transfer_size: 64KiB, segments: 3, fsync: phase}
  items:
    phase_time: 100ms
    processes_per_node: [2]
    workloads:
      items: {operation: metadata, items_per_process: 10, directories: false, phases: [create, stat, remove]}
"""


@pytest.fixture
def aiming(project: Project) -> Project:
    project.study("tiny", STUDY)
    return project


def planned(project: Project) -> Plan:
    return make_plan("local", "tiny", project.root)


def carry_out(project: Project) -> Plan:
    plan = planned(project)
    for batch in plan.plan.batches:
        run_batch(plan, batch, project.results)
    return plan


def measured(project: Project, experiment: str) -> list[RawRun]:
    runs = [raw for raw in RawStore(project.results) if raw.run["experiment"] == experiment]
    return [raw for raw in runs if not raw.run["calibration"]]


def calibrations(project: Project) -> dict[str, RawRun]:
    return {raw.run["experiment"]: raw for raw in RawStore(project.results) if raw.run["calibration"]}


def test_all_runs_of_a_configuration_do_what_its_calibration_found(aiming: Project) -> None:
    carry_out(aiming)
    found = calibrations(aiming)
    for experiment, key in (("data", "segments"), ("items", "items_per_process")):
        amount = found[experiment].record["amount"]
        runs = measured(aiming, experiment)
        # Two repetitions of both halves of the A/A pair.
        assert len(runs) == 4 and all(raw.ok for raw in runs)
        assert {raw.run["workload"][key] for raw in runs} == {amount["amount"]}
        assert all(raw.run["amount"] == amount for raw in runs)
        assert all(raw.context["phase_time"] == 0.1 for raw in runs)
        assert {raw.context["amount_bound"] for raw in runs} == {amount["bound"]}
        assert amount["calibration"] == found[experiment].run["run"] and amount["why"]
        # Trials are whole runs, and are kept: a power of two, or the least (3 blocks; 8 items).
        assert (found[experiment].folder / "trial-0" / "context.json").is_file()
        assert amount["amount"] == {"data": 3, "items": 8}[experiment] or amount["amount"].bit_count() == 1


def test_no_calibration_becomes_a_number(aiming: Project) -> None:
    carry_out(aiming)
    observations, runs = collect(aiming.results)
    assert runs["calibration"].sum() == 2 and len(runs) == 10
    known = set(runs[~runs["calibration"].astype(bool)]["run"])
    assert set(observations["run"]) == known
    data = observations[observations["experiment"] == "data"]
    amount = calibrations(aiming)["data"].record["amount"]["amount"]
    assert set(data["bytes_per_process"]) == {amount * 65536} == set(data["bytes_moved"])
    assert set(observations["phase_time"]) == {0.1}
    # An amount that follows from the storage is no property of a workload.
    assert "bytes_per_process" not in to_dataset(observations)
    shown = aiming.tiercel("report", "--study", "tiny")
    assert shown.returncode == 0, shown.stderr
    page = (aiming.results / "report" / "index.html").read_text()
    assert "> · 8 runs · 4 results · " in page


def test_what_leaves_things_as_they_were_is_done_again(aiming: Project) -> None:
    carry_out(aiming)
    observations, _ = collect(aiming.results)
    items = observations[(observations["experiment"] == "items") & (observations["role"] == "measured")]
    amount = calibrations(aiming)["items"].record["amount"]
    assert amount["again"] == 0.1
    by = items.groupby("operation")
    # Created and removed once by each of 2 processes; looked at until 0.1 s were over.
    assert set(by.get_group("file-create")["operations"]) == {2 * amount["amount"]}
    assert set(by.get_group("file-remove")["operations"]) == {2 * amount["amount"]}
    assert (by.get_group("file-stat")["total_time"] >= 0.1).all()
    assert not any("short-phase" in flags for flags in by.get_group("file-stat")["flags"])


def test_a_kill_between_calibration_and_measurement_changes_no_amount(aiming: Project) -> None:
    plan = planned(aiming)
    store = RawStore(aiming.results)
    words = ["batch", "--site", "local", "--study", "tiny", "--name", plan.plan.batches[0].name]
    process = subprocess.Popen(
        [sys.executable, "-m", "tiercel", *words, "--stamp", "done"], cwd=aiming.root,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while not store.ids():
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    before = {name: (store.path(name) / "record.json").read_bytes() for name in store.ids()}
    carry_out(aiming)
    assert {name: (store.path(name) / "record.json").read_bytes() for name in before} == before
    for experiment, raw in calibrations(aiming).items():
        assert all(run.run["amount"] == raw.record["amount"] for run in measured(aiming, experiment))


@pytest.mark.parametrize("change", [{"amuont": 8}, {"amount": -64}, {"amount": "many"}])
def test_a_calibration_that_says_nothing_sensible_is_named(aiming: Project, change: dict[str, Any]) -> None:
    plan = planned(aiming)
    run_batch(plan, plan.plan.batches[0], aiming.results)  # the calibrations
    raw = calibrations(aiming)["data"]
    amount = {**raw.record["amount"], **change}
    (raw.folder / "record.json").write_text(json.dumps({**raw.record, "amount": amount}))
    with pytest.raises(UserError, match=r"record\.json: amount: not what a calibration of"):
        carry_out(aiming)


def test_what_was_measured_decides_where_the_calibration_is_gone(aiming: Project) -> None:
    plan = planned(aiming)
    for batch in plan.plan.batches[:2]:
        run_batch(plan, batch, aiming.results)
    before = {raw.run["run"]: raw.run["amount"] for raw in measured(aiming, "data")}
    (amount,) = {amount["amount"] for amount in before.values()}
    shutil.rmtree(calibrations(aiming)["data"].folder)
    run_batch(plan, plan.plan.batches[2], aiming.results)
    after = measured(aiming, "data")
    assert len(after) > len(before)
    assert {raw.run["amount"]["amount"] for raw in after} == {amount}


def test_a_run_that_is_picked_from_the_plan_is_calibrated_first(aiming: Project) -> None:
    plan = planned(aiming)
    run_batch(plan, plan.plan.batches[1], aiming.results)  # the first round, without the one before it
    assert set(calibrations(aiming)) == {"data", "items"}
    assert all(raw.ok and raw.run["amount"] for raw in measured(aiming, "data"))


def test_nothing_goes_whose_calibration_failed_until_it_is_retried(aiming: Project) -> None:
    path = aiming.root / "site-configs" / "local" / "site.yaml"
    site = yaml.safe_load(path.read_text())
    # Fuller than it may be: not even the least is written.
    full = {"main": {**site["storages"]["main"], "fill_limit": 1e-9}}
    path.write_text(yaml.safe_dump({**site, "storages": full}))
    carry_out(aiming)
    assert not measured(aiming, "data") and not measured(aiming, "items")
    for raw in calibrations(aiming).values():
        assert not raw.ok and "fill_limit" in raw.record["reason"]
    path.write_text(yaml.safe_dump(site))
    assert retry_failed(planned(aiming), aiming.results) == 2
    carry_out(aiming)
    assert len(measured(aiming, "data")) == 4


def test_the_room_of_a_storage_bounds_the_amount(aiming: Project, tmp_path: Path) -> None:
    space = os.statvfs(tmp_path / "scratch")
    used = (space.f_blocks - space.f_bfree) * space.f_frsize
    path = aiming.root / "site-configs" / "local" / "site.yaml"
    site = yaml.safe_load(path.read_text())
    limit = (used + 2**30) / (space.f_blocks * space.f_frsize)
    site["storages"]["main"]["fill_limit"] = limit
    path.write_text(yaml.safe_dump(site))
    study = yaml.safe_load(STUDY)
    study["experiments"] = {"data": {**study["experiments"]["data"], "phase_time": "10min"}}
    study["timeout"] = "2h"
    aiming.study("tiny", yaml.safe_dump(study))
    plan = planned(aiming)
    run_batch(plan, plan.plan.batches[0], aiming.results)
    (raw,) = calibrations(aiming).values()
    # 1 GiB may still be written, of which a run takes half: 8,192 blocks, or 4,096 where others wrote too.
    assert raw.ok and raw.record["amount"]["bound"] == "storage"
    assert raw.record["amount"]["amount"] in (2048, 4096, 8192)


def test_the_cost_of_a_study_has_its_calibrations(aiming: Project) -> None:
    plan = planned(aiming)
    store = RawStore(aiming.results)
    (cost,) = costs(plan, History.load(plan.plan, store), set())
    # Two calibrations; two repetitions of the A/A pairs of two workloads. Assumed of a bad day: 5 s to start
    # a step, of which there are two (in three trials six), and two phases of 0.1 s
    # (of the items three).
    assert (cost.runs, cost.judged) == (10, 0)
    assert cost.seconds == pytest.approx((30 + 0.2) + (30 + 0.3) + 4 * (10 + 0.2) + 4 * (10 + 0.3))
    run_batch(plan, plan.plan.batches[0], aiming.results)
    done = set(store.ids())
    (cost,) = costs(plan, History.load(plan.plan, store), done)
    # How long a calibration took says nothing of how long a run takes.
    assert (cost.runs, cost.judged) == (8, 0)
    run_batch(plan, plan.plan.batches[1], aiming.results)
    (cost,) = costs(plan, History.load(plan.plan, store), set(store.ids()))
    assert (cost.runs, cost.judged) == (4, 4)
