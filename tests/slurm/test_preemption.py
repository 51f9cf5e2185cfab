"""Jobs that somebody else's take the nodes from: what was cut off is measured again, once."""

from __future__ import annotations

import json

import pandas as pd

from .conftest import Cluster

#: Three rounds on one node, all in one job.
STUDY = """
study: tiny
title: One node, three rounds
repetitions: {minimum: 3, maximum: 3}
twins: false
timeout: 120s
experiments:
  scaling:
    processes_per_node: [2]
    stacks: [lustre1]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB}
"""


def test_a_preempted_job_goes_on_where_it_was(cluster: Cluster) -> None:
    """Slurm puts the same job in the queue again; of its runs those that are done do not go again."""
    _preempt(cluster)


def test_a_preempted_job_that_slurm_ends_is_submitted_again(cluster: Cluster) -> None:
    """`PreemptMode=CANCEL`: no job waits anew, and Snakemake's executor would wait for one for ever."""
    cluster.call("stop")
    cluster.environment["PREEMPT"] = "CANCEL"
    cluster.call("start")
    job, output = _preempt(cluster)
    assert f"tiercel: job {job} lost its nodes to another job" in output
    assert cluster.state_of(job) == "PREEMPTED"


def _preempt(cluster: Cluster) -> tuple[str, str]:
    """Carry out the study, of which a job loses its nodes; return that job and what Snakemake said."""
    cluster.study(STUDY)
    workflow = cluster.snakemake()
    try:
        # The first run is done, the second one waits.
        cluster.wait(lambda: list(cluster.results.glob("raw/*/record.json")), "the first run ends", workflow)
        cluster.hold.touch()
        cluster.wait(cluster.begun, "a run begins", workflow)
        (job,) = cluster.inside("squeue", "--noheader", "--format=%i").split()
        cluster.inside("sbatch", "-p", "urgent", "-N4", "--exclusive", "--wrap", "true")
        cluster.wait(lambda: cluster.state_of(job) != "RUNNING", "the job loses its nodes", workflow)
        cluster.hold.unlink()
        output, _ = workflow.communicate(timeout=900)
    finally:
        workflow.kill()
    assert workflow.returncode == 0, output + cluster.logs()
    _each_once(cluster)
    return job, output


def _each_once(cluster: Cluster) -> None:
    """Of three runs the one that was cut off went again, and no other."""
    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    assert [record["status"] for record in records] == ["ok"] * 3
    interrupted = list(cluster.results.glob("raw/interrupted/*"))
    assert len(interrupted) == 1
    again = {record["run"] for record in records if record["attempts"] == 2}
    assert {record["attempts"] for record in records} == {1, 2} and len(again) == 1
    assert json.loads((interrupted[0] / "run.json").read_text())["run"] in again
    found = pd.read_parquet(cluster.results / "observations.parquet")
    assert found.groupby("run").size().tolist() == [1, 1, 1]
    assert not cluster.begun()
    assert list(cluster.state.glob("lustre1/tiercel/tiercel-run-*")) == []
