"""Processes of several nodes on one file: HDF5 through cachevol, and a node that reads what another wrote."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from tests.caching.conftest import needs_connector
from tiercel.engines.hdf5_library import HOW, hdf5_library

from .conftest import Cluster

pytestmark = needs_connector

STUDY = """
study: tiny
title: Together on two nodes
engines: [h5kernel, iokernel]
stacks:
  - storage: lustre1
  - storage: lustre1
    layers: [{layer: cachevol, options: {adaptive: false, quiet: 0, storage: $TIERCEL_CLUSTER/ssd}}]
repetitions: {minimum: 1, maximum: 1}
twins: false
timeout: 120s
experiments:
  checkpoint:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      write:
        operation: hdf5-checkpoint
        layout: shared
        collective: true
        steps: 2
        datasets: 2
        dataset_size: 1MiB
  stream:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      read:
        operation: hdf5-stream
        divided: true
        samples: 256
        sample_size: 64KiB
        batch: 4
        epochs: 4
        pattern: random
  another:
    processes_per_node: [2]
    workloads:
      read: {operation: read, another_client: true, transfer_size: 1MiB, segments: 4, verify: true}
"""


def test_several_nodes_share_a_file(cluster: Cluster) -> None:
    """Four processes: each has a part of each dataset; shuffled, each reads in later epochs what the other
    node has read before, out of its copies."""
    library = hdf5_library()
    if library is None or not library.parallel:
        pytest.skip(f"no HDF5 with MPI: {HOW}")
    cluster.study(STUDY)
    done = cluster.snakemake()
    said = done.communicate(timeout=500)[0]
    assert done.returncode == 0, said + cluster.logs()
    rows = pd.read_parquet(cluster.results / "observations.parquet")
    rows = rows[rows["role"] == "measured"]
    moved: dict[str, set[int]] = {}
    for row in rows.itertuples():
        moved.setdefault(f"{row.experiment} {row.operation}", set()).add(int(row.bytes_moved))  # type: ignore[arg-type]
    samples = 256 * 65536
    assert moved == {
        "checkpoint hdf5-write": {4 * 2 * 2 * 1024**2},  # processes, steps, datasets
        "stream hdf5-read-first": {samples},
        "stream hdf5-read-later": {3 * samples},
        "another read": {2 * 4 * 1024**2},
    }
    (read,) = rows[rows["experiment"] == "another"].to_dict("records")
    assert read["cross_node_fraction"] == 1.0
    writes, reads = (_counts(cluster, name) for name in ("checkpoint", "stream"))
    assert all(each["staged_together"] > 0 for each in writes) and len(writes) == 4
    assert len(reads) >= 4 and sum(each["neighbour_bytes"] for each in reads) > 0
    assert not list((cluster.state / "local").glob("*/tiercel-cachevol-*"))


def _counts(cluster: Cluster, experiment: str) -> list[dict[str, Any]]:
    """Return what the connector counted in each process of an experiment's run that moved data."""
    found = []
    for path in cluster.results.glob("raw/*/**/cachevol-stats.jsonl"):
        if json.loads((path.parent / "run.json").read_text())["experiment"] == experiment:
            found += [json.loads(line) for line in path.read_text().splitlines()]
    return [each for each in found if each["staged_together"] or each["hit_bytes"] or each["miss_bytes"]]
