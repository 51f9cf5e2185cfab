"""Trainings through the layer cachevol on several nodes: a node-local folder on each, none left behind."""

from __future__ import annotations

import json

from tests.caching.conftest import needs_connector

from .conftest import Cluster

pytestmark = needs_connector

FILE = """
model: {name: small}
framework: pytorch
workflow: {generate_data: true, train: true}
dataset: {format: hdf5, num_files_train: 1, num_samples_per_file: 64, record_length_bytes: 65536}
reader: {data_loader: pytorch, file_access: shared, batch_size: 4, read_threads: 0}
train: {epochs: 3, computation_time: 0.001}
"""
STUDY = """
study: tiny
title: Training through a cache on two nodes
engines: [dlkernel]
stacks:
  - {storage: lustre1, layers: [{layer: cachevol, options: {adaptive: false, quiet: 0, %s}}]}
repetitions: {minimum: 1, maximum: 1}
twins: false
timeout: 120s
experiments:
  training:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      small: {operation: deep-learning, workload: %s}
"""


def test_each_node_has_copies_of_its_own(cluster: Cluster) -> None:
    file = cluster.root / "small.yaml"
    file.write_text(FILE)
    cluster.study(STUDY % ("storage: $TIERCEL_CLUSTER/ssd", file))
    done = cluster.snakemake()
    said = done.communicate(timeout=400)[0]
    assert done.returncode == 0, said + cluster.logs()
    (stats,) = cluster.results.glob("raw/*/**/cachevol-stats.jsonl")
    served = [row["hit_bytes"] > 0 for row in map(json.loads, stats.read_text().splitlines())]
    assert sum(served) == 4, stats.read_text()  # all processes of both nodes, in later epochs
    assert not list((cluster.state / "local").glob("*/tiercel-cachevol-*"))


def test_a_folder_that_nodes_share_is_refused(cluster: Cluster) -> None:
    """It counted as cached on every node, while one node's copies were all that there was."""
    file = cluster.root / "small.yaml"
    file.write_text(FILE)
    cluster.study(STUDY % ("storage: $TIERCEL_CLUSTER/lustre1", file))
    said = cluster.snakemake().communicate(timeout=400)[0]
    (record,) = cluster.results.glob("raw/*/record.json")
    reason = json.loads(record.read_text())["reason"]
    assert "nodes share" in reason and "name a folder that is local to each node" in reason, said
    assert not list((cluster.state / "lustre1").glob("tiercel-cachevol-*"))
