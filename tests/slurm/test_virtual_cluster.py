"""A small study on a real Slurm: two nodes, two storage systems, a killed Snakemake and a killed node."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pandas as pd
import pytest

from ..conftest import CHECKOUT
from .conftest import Cluster

#: Runs of four seconds at least (the stonewall), so that there is something to kill.
TINY = """
study: tiny
title: Two nodes, two storage systems
repetitions: {minimum: 2, maximum: 2}
twins: false
timeout: 120s
experiments:
  scaling:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      synced-write:
        {operation: write, transfer_size: 4KiB, data_per_process: 64MiB, fsync: write, stonewall: 4s}
      read: {operation: read, transfer_size: 64KiB, data_per_process: 1MiB}
  metadata:
    nodes: [2]
    processes_per_node: [2]
    workloads:
      small-files: {operation: metadata, items_per_process: 20}
"""

#: One job of one node.
ONE = """
study: tiny
title: One node, one workload
repetitions: {minimum: 1, maximum: 1}
twins: false
timeout: 120s
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB}
"""

#: As the site's file says: 4000 MiB, all that the nodes have.
NODE_MEMORY = 4000 * 1024**2

#: Two workloads on two systems, metadata on the shared one only (no two nodes share a tree on the other);
#: two repetitions of each.
RUNS = (2 * 2 + 1) * 2


def test_study_survives_a_killed_snakemake_and_a_killed_node(cluster: Cluster) -> None:
    cluster.study(TINY)
    cluster.hold.touch()
    first = cluster.snakemake()
    cluster.wait(cluster.begun, "the first run begins", first)
    controller = (cluster.results / ".controller").read_text().split()  # process N on login
    cluster.inside("kill", "-KILL", controller[1])
    first.communicate(timeout=60)
    before = cluster.inside("squeue", "--noheader", "--format=%i").split()
    assert len(before) == 1  # the job that the killed one had submitted still runs

    second = cluster.snakemake()
    try:
        # It has taken over, and looks for jobs at once.
        cluster.wait(
            lambda: (cluster.results / ".controller").read_text().split()[1:2] not in ([], controller[1:2]),
            "the second snakemake takes over",
            second,
        )
        time.sleep(2)
        cluster.hold.unlink()
        # The second round has run ids of repetition 1.
        cluster.wait(
            lambda: any(".r1-" in p.name for p in cluster.begun()), "the second round begins", second
        )
        nodes = cluster.inside("squeue", "--noheader", "--states=RUNNING", "--format=%N").strip()
        assert nodes == "n[1-2]"
        cluster.call("kill-node", "n2")
        output, _ = second.communicate(timeout=900)
    finally:
        second.kill()
    assert second.returncode == 0, output + cluster.logs()
    assert "waiting for 1 jobs of a Snakemake that was killed" in output
    assert before[0] in output  # how to end it instead

    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    assert len(records) == RUNS
    assert {r["status"] for r in records} == {"ok"}, [r["reason"] for r in records]
    # What the first job had measured was not measured again, what the dead node cut off was.
    attempts = {r["run"]: r["attempts"] for r in records}
    assert all(n == 1 for run, n in attempts.items() if ".r0-" in run)
    interrupted = list(cluster.results.glob("raw/interrupted/*"))
    assert len(interrupted) == 1
    assert all(".r1-" in folder.name for folder in interrupted)
    _check_places(cluster)
    _check_memory(cluster)
    page = (cluster.results / "report" / "index.html").read_text()
    assert "shared (virtual)" in page
    assert "node-local (virtual)" in page
    # Node-local folders of the dead node stay (nobody could remove them), all others are gone.
    left = {p.parent.parent.name for p in cluster.state.glob("local/*/tiercel/tiercel-run-*")}
    assert left <= {"n2"}


def _check_places(cluster: Cluster) -> None:
    """Readers of the shared storage sit on the other node than the writers; node-local ones on the same."""
    fractions: dict[str, set[float]] = {"lustre1": set(), "ssd": set()}
    for path in cluster.results.glob("raw/scaling.read.*/read.json"):
        storage = path.parent.name.split(".")[2]
        result = json.loads(path.read_text())["tests"][0]["Results"][0]
        fractions[storage].add(result["taskOffset"]["crossNodeFraction"])
        context: dict[str, Any] = json.loads((path.parent / "context.json").read_text())
        assert len(context["hosts"]) == 2
        assert result["hosts"] == context["hosts"]
        # Evicted before the read, on every node.
        assert result["residency"]["fraction"] == 0
    assert fractions == {"lustre1": {1}, "ssd": {0}}


def _check_memory(cluster: Cluster) -> None:
    """Every run had all memory of its nodes, though a job that asks for none gets 500 MB there."""
    contexts = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/context.json")]
    if cluster.enforces_memory:
        assert {c["memory_limit_bytes"] for c in contexts} == {NODE_MEMORY}
        assert {c["memory_bytes"] for c in contexts} == {NODE_MEMORY}
    assert {c["site_memory_bytes"] for c in contexts} == {NODE_MEMORY}
    flags = pd.read_parquet(cluster.results / "observations.parquet")["flags"]
    assert "less-memory" not in {flag for row in flags for flag in row}


@pytest.mark.nightly  # Slurm's own waits: minutes
def test_a_study_goes_on_when_the_controller_was_gone(cluster: Cluster) -> None:
    """Snakemake's executor forgets jobs whose state it is not told some times, and waits for ever."""
    twice = ONE.replace("minimum: 1, maximum: 1", "minimum: 2, maximum: 2")
    # A step whose end the controller was not told keeps the next one waiting: until its time is over.
    cluster.study(twice.replace("timeout: 120s", "timeout: 40s"))
    cluster.hold.touch()
    said = cluster.root / "said"
    workflow = cluster.snakemake(said=said)
    try:
        cluster.wait(cluster.begun, "the first run begins", workflow)
        cluster.call("kill-controller")
        cluster.wait(lambda: "Slurm does not tell how jobs are" in said.read_text(), "silence", workflow)
        cluster.hold.unlink()  # what runs now ends while nobody is told
        cluster.call("start-controller")
        workflow.wait(timeout=900)
    finally:
        workflow.kill()
    assert workflow.returncode == 0, said.read_text() + cluster.logs()
    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    failed = [record for record in records if record["status"] != "ok"]
    assert not failed, json.dumps(failed, indent=1)
    assert len(pd.read_parquet(cluster.results / "observations.parquet")["run"].unique()) == len(records)
    assert not cluster.begun()


TRAINING = """
study: tiny
title: Training and inference on two nodes
engines: [dlkernel, inferkernel]
repetitions: {minimum: 2, maximum: 2}
twins: false
timeout: 120s
experiments:
  training:
    engines: [dlkernel]
    nodes: [2]
    processes_per_node: [2]
    workloads:
      images:
        operation: deep-learning
        workload: resnet50-vast
        overrides:
          {dataset.num_files_train: 32, dataset.record_length_bytes: 4096, reader.read_threads: 1,
           train.epochs: 2}
  inference:
    engines: [inferkernel]
    nodes: [2]
    processes_per_node: [2]
    workloads:
      search: {operation: vector-search, index_size: 1MiB, hops: 3, queries: 10}
"""


def test_all_nodes_make_the_dataset_and_train_on_it(cluster: Cluster) -> None:
    (cluster.root / "workflows" / "dl-workloads").symlink_to(CHECKOUT / "workflows" / "dl-workloads")
    cluster.study(TRAINING)
    running = cluster.snakemake()
    output, _ = running.communicate(timeout=600)
    assert running.returncode == 0, output + cluster.logs()
    for storage, files in (("lustre1", 16), ("ssd", 32)):
        places = list(cluster.results.glob(f"raw/training.*.{storage}.*"))
        results = [json.loads((p / "dlkernel.json").read_text()) for p in places]
        assert len(results) == 2
        hosts = {
            json.loads(p.read_text())["hostname"] for folder in places for p in folder.glob("*_output.json")
        }
        assert len(hosts) == 2
        for result in results:
            assert (result["nodes"], result["processes"]) == (2, 4)
            # Of 32 files two nodes make half each of what they share, and all of what is their own.
            assert result["generated"]["files_of_hosts"] == dict.fromkeys(hosts, files)
    found = pd.read_parquet(cluster.results / "observations.parquet")
    first = found[found["operation"] == "train"]
    assert first["samples"].tolist() == [32] * 4
    assert (first["nodes"] == 2).all() and first["au"].between(0, 1).all()
    # 4 processes of 10 queries each, on an index that all of them made, or those of their node.
    assert found[found["operation"] == "vector-query"]["operations"].tolist() == [40] * 4
    made = found[(found["operation"] == "generate") & (found["engine"] == "inferkernel")]
    assert made.groupby("storage")["bytes_moved"].unique().map(list).to_dict() == {
        "lustre1": [1 << 20], "ssd": [2 << 20]
    }  # fmt: skip
    page = (cluster.results / "report" / "index.html").read_text()
    # Two repetitions: their range stands beside the median.
    assert re.search(r"\d+\.\d\s% \(\d+\.\d\s% to \d+\.\d\s%\)", page)


def test_a_job_with_a_part_of_its_nodes_memory_is_flagged(cluster: Cluster) -> None:
    """A site that lets nobody have all of it, say: the number stays, and is marked."""
    if not cluster.enforces_memory:
        pytest.skip("no control groups of memory can be made here")
    cluster.study(ONE)
    cluster.environment["SBATCH_MEM_PER_NODE"] = "700M"
    output, _ = (workflow := cluster.snakemake()).communicate(timeout=600)
    assert workflow.returncode == 0, output + cluster.logs()
    observations = pd.read_parquet(cluster.results / "observations.parquet")
    assert set(observations["memory_limit_bytes"]) == {700 * 1024**2}
    assert all("less-memory" in flags for flags in observations["flags"])


def test_a_job_that_is_killed_for_memory_ends_once(cluster: Cluster) -> None:
    """Not as often as `retries` of the profile says: each try would be killed too."""
    if not cluster.enforces_memory:
        pytest.skip("no control groups of memory can be made here")
    cluster.study(ONE)
    cluster.environment["SBATCH_MEM_PER_NODE"] = "60M"  # less than Python needs for what is to be done there
    output, _ = (workflow := cluster.snakemake()).communicate(timeout=600)
    assert workflow.returncode == 1
    assert output.count("was killed: its memory was used up; it asked for SBATCH_MEM_PER_NODE=60M") == 1
    ended = cluster.inside("squeue", "--noheader", "--states=all", "--format=%T").split()
    assert ended == ["OUT_OF_MEMORY"], output
    assert not list(cluster.results.glob("raw/*/record.json"))


@pytest.mark.nightly  # a study, as the one of less memory above
def test_processes_that_are_killed_for_memory_are_a_failed_run(cluster: Cluster) -> None:
    """Each holds a transfer of 2 GiB, where the job has 1500 MB: what else the job has to do, it does."""
    if not cluster.enforces_memory:
        pytest.skip("no control groups of memory can be made here")
    large = "      large: {operation: write, transfer_size: 2GiB, data_per_process: 2GiB}\n"
    cluster.study(ONE.replace("timeout", "stacks: [ssd]\ntimeout") + large)
    cluster.environment["SBATCH_MEM_PER_NODE"] = "1500M"
    output, _ = (workflow := cluster.snakemake()).communicate(timeout=600)
    assert workflow.returncode == 0, output + cluster.logs()
    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    assert {(r["run"].split(".")[1], r["status"], r["attempts"], r["reason"]) for r in records} == {
        ("write", "ok", 1, ""),
        ("large", "failed", 1, "main: killed: its processes needed more memory than their job has"),
    }
    assert cluster.inside("squeue", "--noheader", "--states=all", "--format=%T").split() == ["COMPLETED"]


def test_a_partition_that_refuses_ends_the_study_in_words(cluster: Cluster) -> None:
    cluster.study(TINY)
    site = cluster.root / "site-configs" / "slurm-virtual" / "site.yaml"
    site.write_text(site.read_text().replace("partition: pbatch", "partition: closed"))
    refused = cluster.snakemake("--retries", "0")
    output, _ = refused.communicate(timeout=240)
    assert refused.returncode == 1
    assert "partition" in output
    assert not list(cluster.results.glob("raw/*/record.json"))
