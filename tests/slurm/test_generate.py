"""A dataset that all nodes of a job make together, and one for each node where they share no files."""

from __future__ import annotations

import json
import subprocess
import sys

from .conftest import CHECKOUT, SITE, Cluster

FILE = """
model: {name: small}
framework: pytorch
workflow: {generate_data: true, train: true}
dataset: {format: npy, num_files_train: 14, record_length_bytes: 10000}
reader: {batch_size: 1, read_threads: 1}
train: {epochs: 1, computation_time: 0.001}
"""
STUDY = """
study: tiny
title: Training on two nodes
engines: [dlkernel]
repetitions: {minimum: 1, maximum: 1}
twins: false
timeout: 120s
experiments:
  training:
    nodes: [2]
    processes_per_node: [2]
    stacks: [lustre1]
    workloads:
      small: {operation: deep-learning, workload: %s}
"""


def in_a_job(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `tiercel dl generate` in a job of two nodes."""
    (cluster.root / "small.yaml").write_text(FILE)
    argv = ["salloc", "--quiet", "--nodes=2", "--ntasks-per-node=2"]
    argv += [sys.executable, "-m", "tiercel", "dl", "generate", "small.yaml", *words]
    return subprocess.run(
        [CHECKOUT / "tools" / "slurm-virtual" / "cluster", "exec", *argv], env=cluster.environment,
        cwd=cluster.root, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


def test_all_nodes_of_a_job_make_a_dataset(cluster: Cluster) -> None:
    shared, own = cluster.state / "lustre1" / "d", cluster.state / "ssd" / "d"
    one = in_a_job(cluster, "--folder", str(shared))
    assert one.returncode == 2
    assert one.stderr.startswith("tiercel: this job has 2 nodes: --nodes 2 makes the dataset on all of them")
    made = in_a_job(cluster, "--folder", str(shared), "-n", "2", "--nodes", "2", "--site", SITE, "--json")
    assert made.returncode == 0, made.stderr
    # 14 files over 4 processes: 4, 4, 3, 3; two processes on each node.
    assert sorted(json.loads(made.stdout)["files_of_hosts"].values()) == [6, 8]
    assert len(list((shared / "train").iterdir())) == 14
    assert len(json.loads((shared / "dataset.json").read_text())["contents"]) == 14
    each = in_a_job(cluster, "--folder", str(own), "-n", "2", "--nodes", "2", "--site", SITE, "--json")
    assert each.returncode == 0, each.stderr
    assert list(json.loads(each.stdout)["files_of_hosts"].values()) == [14, 14]
    # Without the way of PMI-2 this MPI makes four programs that would all write the same files.
    cluster.environment["SLURM_MPI_TYPE"] = "none"
    lonely = in_a_job(cluster, "--folder", str(shared) + "2", "-n", "2", "--nodes", "2")
    assert lonely.returncode == 2
    assert "the launcher started 4 processes and MPI knows of one" in lonely.stderr


def test_a_study_makes_its_dataset_on_all_nodes(cluster: Cluster) -> None:
    file = cluster.root / "small.yaml"
    file.write_text(FILE)
    cluster.study(STUDY % file)
    done = cluster.snakemake()
    said = done.communicate(timeout=400)[0]
    assert done.returncode == 0, said + cluster.logs()
    (found,) = cluster.results.glob("raw/*/**/dlkernel.json")
    content = json.loads(found.read_text())
    assert (content["nodes"], content["processes"]) == (2, 4)
    # 14 files over 4 processes: 4, 4, 3, 3.
    assert sorted(content["generated"]["files_of_hosts"].values()) == [6, 8]
