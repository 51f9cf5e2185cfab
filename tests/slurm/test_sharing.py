"""Runs through the layer fairshare on several nodes: one server, reached by all of them over TCP."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tiercel.layers.fairshare.programs import find_programs

from .conftest import SITE, Cluster

pytestmark = pytest.mark.skipif(find_programs() is None, reason="the fairshare layer is not built")

STUDY = """
study: tiny
title: Through a server on two nodes
engines: [iokernel]
stacks:
  - {storage: lustre1, layers: [{layer: fairshare, options: {policy: job-fair, cleartext: true}}]}
  - {storage: lustre1, layers: [{layer: fairshare, options: {cleartext: true, address: 198.51.100.1}}]}
  - {storage: lustre1, layers: [fairshare]}
repetitions: {minimum: 1, maximum: 1}
twins: false
timeout: 120s
experiments:
  shared:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      shared: {operation: write, layout: shared, transfer_size: 1MiB, data_per_process: 4MiB}
"""


def test_all_nodes_reach_the_one_server(cluster: Cluster) -> None:
    """The second stack's server is where nobody answers (RFC 5737); the third one has nobody's leave."""
    cluster.study(STUDY)
    said = cluster.snakemake().communicate(timeout=400)[0]
    records = [json.loads(path.read_text()) for path in cluster.results.glob("raw/*/record.json")]
    good = [record for record in records if record["status"] == "ok"]
    bad = [record for record in records if record["status"] != "ok"]
    assert (len(good), len(bad)) == (1, 1), said + cluster.logs()
    assert re.search(r"198\.51\.100\.1:\d+: no fairshare server answers there", bad[0]["reason"])
    assert "address" in bad[0]["reason"]
    # The engine wrote to the mount of each node. The ticket is in no command, and in no file any more.
    words = good[0]["steps"][0]["argv"]
    assert any("/tiercel-share-" in word for word in words)
    assert not any("FAIRSHARE_TICKET" in word for word in words)
    assert not list(cluster.results.glob("raw/*/.fairshare-ticket"))
    planned = cluster.inside(sys.executable, "-m", "tiercel", "plan", "--site", SITE, "--study", "tiny")
    assert "shared is left out (lustre1 with fairshare: on several nodes nothing is encrypted" in " ".join(
        planned.split()
    )
