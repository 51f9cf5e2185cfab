"""Trainings of a study, from the plan to the answer for programs: what does nothing, and AU with its mark."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median

from tests.conftest import Project

WORKLOAD = """
    model: {name: small}
    framework: pytorch
    workflow: {generate_data: true, train: true}
    dataset: {format: npy, num_files_train: 12, num_samples_per_file: 1, record_length_bytes: 4096}
    reader: {batch_size: 2, read_threads: 1, pin_memory: false, shuffle_size: 7}
    train: {epochs: 2, computation_time: 0.01}
    metric: {au: 0.05}
    """
STUDY = """
    study: trainings
    title: Small trainings
    repetitions: {minimum: 3, maximum: 3}
    twins: false
    engines: [dlkernel]
    experiments:
      training:
        processes_per_node: [2]
        workloads:
          small: {operation: deep-learning, workload: small.yaml}
          idle: {operation: deep-learning, workload: small.yaml, overrides: {train.computation_time: 0}}
    """
IDLE = "reader.shuffle_size, reader.pin_memory"


def test_utilisation_has_its_interval_and_mark_and_idle_keys_are_told(
    new_project: Callable[[str], Project],
) -> None:
    project = new_project("scratch")
    (project.root / "small.yaml").write_text(WORKLOAD)
    project.study("trainings", STUDY)
    planned = project.tiercel("plan", "--study", "trainings", env={"COLUMNS": "200"})
    assert planned.returncode == 0, planned.stderr
    assert f"training/small and 1 more: without effect on dlkernel: {IDLE}\n" in planned.stdout
    done = project.tiercel("evaluate", "--study", "trainings")
    assert done.returncode == 0, done.stderr
    shown = project.tiercel("show", "--study", "trainings", "--json")
    assert shown.returncode == 0, shown.stderr
    told = json.loads(shown.stdout)["subjects"]["deep-learning"]
    assert [(row["workload"], row["keys"]) for row in told["without_effect"]] == [
        ("small", IDLE.split(", ")), ("idle", IDLE.split(", "))
    ]  # fmt: skip
    rows = {(row["workload"], row["epochs"]): row for row in told["trainings"]}
    assert set(rows) == {(name, epochs) for name in ("small", "idle") for epochs in ("first", "later")}
    # What the engine's own files say of the three runs' first epochs.
    counted = []
    for run in (project.results / "raw").iterdir():
        if json.loads((run / "run.json").read_text())["workload"]["overrides"]:
            continue
        content = json.loads(next(run.rglob("dlkernel.json")).read_text())
        counted.append(next(row["au"] for row in content["rows"] if row["epoch"] == 1))
    first = rows["small", "first"]
    assert len(counted) == 3
    assert first["au"] == {"median": median(counted), "low": min(counted), "high": max(counted), "n": 3}
    assert (first["au_goal"], first["mark"]) == (0.05, "passes")
    assert first["samples_per_second"]["low"] <= first["samples_per_second"]["median"]
    # Without computation there is no utilisation, and no mark that it could miss.
    assert rows["idle", "first"]["au"] is None and rows["idle", "first"]["mark"] is None
    page = (project.results / "report" / "index.html").read_text()
    assert f"Keys without effect on dlkernel in small, idle: {IDLE} (see <code>tiercel dl check" in page
