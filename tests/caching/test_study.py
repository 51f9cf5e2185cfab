"""A study through the layer: planned, measured on the real connector, reported."""

from __future__ import annotations

import json
from collections.abc import Callable

import pandas as pd
import pytest

from tests.conftest import Project
from tiercel.engines.hdf5_library import HOW, hdf5_library

from .conftest import needs_connector

pytestmark = needs_connector

STUDY = """
study: cached
title: Both ways
engines: [h5kernel, iokernel]
stacks:
  - storage: all
  - {storage: all, layers: [{layer: cachevol, options: {adaptive: false}}]}
repetitions: {minimum: 1, maximum: 1, target: 0.5}
twins: false
timeout: 120s
experiments:
  checkpoint:
    processes_per_node: [2]
    workloads:
      write: &write {operation: hdf5-checkpoint, steps: 2, datasets: 2, dataset_size: 1MiB, compute: 50ms}
      at-once: {<<: *write, compute: 0s}
  stream:
    processes_per_node: [1]
    workloads:
      read: {operation: hdf5-stream, samples: 100, sample_size: 64KiB, batch: 7, epochs: 3, pattern: random}
  data:
    launcher: fork
    processes_per_node: [2]
    workloads:
      hdf5: &data {operation: read, access: RAW, transfer_size: 64KiB, segments: 4, verify: true, api: hdf5}
      posix: {<<: *data, api: posix}
"""


def test_a_study_with_and_without_the_layer(project: Project) -> None:
    project.study("cached", STUDY)
    done = project.tiercel("evaluate", "--study", "cached")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    assert set(rows["layer"]) == {"none", "cachevol adaptive=False"}
    # Data go through the layer where they are HDF5's.
    data = rows[(rows["experiment"] == "data") & (rows["role"] == "measured")]
    pairs = {(w, n.split()[0]) for w, n in zip(data["workload"], data["layer"], strict=True)}
    assert pairs == {("hdf5", "none"), ("hdf5", "cachevol"), ("posix", "none")}
    rows = rows[rows["experiment"] != "data"]
    for _, group in rows.groupby("layer"):
        counts = group["operation"].value_counts()
        # One row for each checkpoint; the first epoch has its own, the two later ones have one together.
        assert dict(counts) == {"hdf5-read-later": 1, "hdf5-write": 2, "hdf5-read-first": 1}
        assert group.set_index("operation")["epochs"]["hdf5-read-later"] == 2
        write = group[group["operation"] == "hdf5-write"].iloc[0]
        assert write["bytes_moved"] == 2 * 2 * 2 * 1024**2  # processes, steps, datasets
    page = (project.results / "report" / "index.html").read_text()
    assert "Node-local caching" in page
    figures = project.results / "report" / "figures"
    over = pd.read_csv(figures / "caching-compute-checkpoint-2.csv")
    assert sorted(over["computation of all steps, s"]) == [0, 0, 0.05, 0.05]  # plain and through the layer
    assert list(pd.read_csv(figures / "caching-epochs-stream-1.csv")["epoch"]) == [1, 2, 3, 1, 2, 3]
    left = list(project.results.rglob("cachevol-stats.jsonl"))
    assert len(left) == 4  # the layer's counts lie in the raw folder of each run through it


TOGETHER = """
study: together
title: One file of all processes
engines: [h5kernel]
stacks:
  - storage: all
  - {storage: all, layers: [{layer: cachevol, options: {adaptive: false, quiet: 0}}]}
repetitions: {minimum: 1, maximum: 1, target: 0.5}
twins: false
timeout: 120s
experiments:
  checkpoint:
    processes_per_node: [1, 2]
    workloads:
      write:
        operation: hdf5-checkpoint
        layout: shared
        collective: true
        steps: 2
        datasets: 2
        dataset_size: 1MiB
        compute: 50ms
  stream:
    processes_per_node: [2]
    workloads:
      read:
        operation: hdf5-stream
        divided: true
        samples: 100
        sample_size: 64KiB
        batch: 7
        epochs: 3
        pattern: random
"""


@pytest.fixture
def with_mpi(new_project: Callable[..., Project]) -> Project:
    library = hdf5_library()
    if library is None or not library.parallel:
        pytest.skip(f"no HDF5 with MPI: {HOW}")
    return new_project(launcher="mpiexec")


def test_processes_that_share_a_file_with_and_without_the_layer(with_mpi: Project) -> None:
    """Each has a part of each dataset; together they read all samples once. What they write is staged."""
    project = with_mpi
    project.study("together", TOGETHER)
    done = project.tiercel("evaluate", "--study", "together")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    assert set(rows["layer"].str.split().str[0]) == {"none", "cachevol"}
    assert set(rows["launcher"]) != {"fork"} and set(rows["layout"]) == {"shared"}
    for _, group in rows.groupby("layer"):
        moved = {(r.operation, r.processes): r.bytes_moved for r in group.itertuples()}
        part, samples = 2 * 2 * 1024**2, 100 * 65536  # steps, datasets; all samples
        assert moved == {
            ("hdf5-write", 1): part, ("hdf5-write", 2): 2 * part,
            ("hdf5-read-first", 2): samples, ("hdf5-read-later", 2): 2 * samples,
        }  # fmt: skip
    staged, hits = 0, 0
    for stats in project.results.rglob("cachevol-stats.jsonl"):
        counts = [json.loads(line) for line in stats.read_text().splitlines()]
        staged += sum(each["staged_together"] for each in counts)
        hits += sum(each["hit_bytes"] for each in counts)
    assert staged > 0 and hits > 0
    figures = project.results / "report" / "figures"
    over = pd.read_csv(figures / "caching-processes-checkpoint.csv")
    assert sorted(over["processes"]) == [1, 1, 2, 2]
    assert list(pd.read_csv(figures / "caching-epochs-stream-2.csv")["epoch"]) == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        (
            "processes_per_node: [1, 2]",
            "launcher: fork",
            "checkpoint.launcher: fork has no MPI, which write needs",
        ),
        ("layout: shared", "layout: file-per-process", "collective needs layout: shared"),
        ("batch: 7", "batch: 100", "1 batches are fewer than 2 processes"),
    ],
)
def test_what_processes_cannot_share(with_mpi: Project, was: str, becomes: str, says: str) -> None:
    with_mpi.study("together", TOGETHER.replace(was, becomes))
    done = with_mpi.tiercel("plan", "--study", "together")
    assert says in " ".join((done.stdout + done.stderr).split())
    assert done.returncode == (0 if "fewer" in says else 2)


TRAINING = """
study: trained
title: Trainings through the layer
engines: [dlkernel]
stacks:
  - storage: all
  - {storage: all, layers: [{layer: cachevol, options: {adaptive: false, quiet: 0}}]}
repetitions: {minimum: 1, maximum: 1, target: 0.5}
twins: false
timeout: 120s
experiments:
  training:
    processes_per_node: [2]
    workloads:
      hdf5: {operation: deep-learning, workload: small.yaml}
      npy:
        operation: deep-learning
        workload: small.yaml
        overrides: {dataset.format: npy, reader.file_access: multi, dataset.num_files_train: 2}
"""
SMALL = """
model: {name: small}
framework: pytorch
workflow: {generate_data: true, train: true}
dataset: {format: hdf5, num_files_train: 1, num_samples_per_file: 32, record_length_bytes: 65536}
reader: {data_loader: pytorch, file_access: shared, batch_size: 4, read_threads: 0, sample_shuffle: random}
train: {epochs: 3}
"""


def test_a_training_with_and_without_the_layer(project: Project) -> None:
    """HDF5 trainings are served by copies in later epochs; those of other formats do not count as cached."""
    (project.root / "small.yaml").write_text(SMALL)
    project.study("trained", TRAINING)
    done = project.tiercel("evaluate", "--study", "trained")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    pairs = {(w, n.split()[0]) for w, n in zip(rows["workload"], rows["layer"], strict=True)}
    assert pairs == {("hdf5", "none"), ("hdf5", "cachevol"), ("npy", "none")}
    (stats,) = project.results.rglob("cachevol-stats.jsonl")
    hits = [json.loads(line)["hit_bytes"] for line in stats.read_text().splitlines()]
    # The 32 samples of two later epochs at most, and what HDF5 says of them.
    assert 0 < sum(hits) < 2 * 32 * 65536 + 128 * 1024
    page = (project.results / "report" / "index.html").read_text()
    assert "time of each epoch" in page
    times = pd.read_csv(next(project.results.rglob("dl-seconds-training-hdf5.csv")))
    assert sorted(times["epoch"]) == [1, 1, 2, 2, 3, 3]
