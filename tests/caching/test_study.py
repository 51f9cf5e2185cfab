"""A study through the layer: planned, measured on the real connector, reported."""

from __future__ import annotations

import pandas as pd

from tests.conftest import Project

from .conftest import needs_connector

pytestmark = needs_connector

STUDY = """
study: cached
title: Both ways
engines: [h5kernel]
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
      write: {operation: hdf5-checkpoint, steps: 2, datasets: 2, dataset_size: 1MiB, compute: 50ms}
  stream:
    processes_per_node: [1]
    workloads:
      read: {operation: hdf5-stream, samples: 100, sample_size: 64KiB, batch: 7, epochs: 3, pattern: random}
"""


def test_a_study_with_and_without_the_layer(project: Project) -> None:
    project.study("cached", STUDY)
    done = project.tiercel("evaluate", "--study", "cached")
    assert done.returncode == 0, done.stderr
    rows = pd.read_parquet(project.results / "observations.parquet")
    assert set(rows["layer"]) == {"none", "cachevol adaptive=False"}
    for _, group in rows.groupby("layer"):
        counts = group["operation"].value_counts()
        # One row for the checkpoint; the first epoch has its own, the two later ones have one together.
        assert dict(counts) == {"hdf5-read-later": 1, "hdf5-write": 1, "hdf5-read-first": 1}
        assert group.set_index("operation")["epochs"]["hdf5-read-later"] == 2
        write = group[group["operation"] == "hdf5-write"].iloc[0]
        assert write["bytes_moved"] == 2 * 2 * 2 * 1024**2  # processes, steps, datasets
    page = (project.results / "report" / "index.html").read_text()
    assert "Node-local caching" in page
    left = list(project.results.rglob("cachevol-stats.jsonl"))
    assert len(left) == 2  # the layer's counts lie in the raw folder of each run through it
