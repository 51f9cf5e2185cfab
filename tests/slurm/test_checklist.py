"""`tiercel site check SITE --submit` on a real Slurm: what it finds, and that it leaves no job behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from .conftest import SCRIPT, SITE, Cluster


def begin(cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    command = [SCRIPT, "exec", sys.executable, "-m", "tiercel", "site", "check", SITE, "--submit", *words]
    return subprocess.Popen(
        command, env=cluster.environment, cwd=cluster.root, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def check(cluster: Cluster, *words: str) -> tuple[int, dict[str, Any], str]:
    """Return exit code, what it says as JSON, and its other lines."""
    process = begin(cluster, "--json", *words)
    out, said = process.communicate(timeout=420)
    assert out, said + cluster.logs()
    return process.returncode, json.loads(out), said


def settings(cluster: Cluster, *changes: tuple[str, str]) -> None:
    """Two processes on a node, which is quicker, and `changes`."""
    path = cluster.root / "site-configs" / SITE / "site.yaml"
    text = path.read_text()
    for old, new in (("processes_per_node: 4", "processes_per_node: 2"), *changes):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def jobs(cluster: Cluster) -> list[str]:
    return cluster.inside("squeue", "--noheader", "--format=%i %T %R").splitlines()


def wait(condition: Callable[[], object], what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def left(cluster: Cluster) -> list[str]:
    scratch = [*cluster.state.glob("local/*/tiercel/*"), *cluster.state.glob("lustre1/tiercel/*")]
    return [path.name for path in scratch if path.name.startswith("tiercel-run-")]


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_it_measures_the_sites_facts(cluster: Cluster, processes: int) -> None:
    """Four, as the site's file has it that is committed: it is true on any machine, and slow on two cores."""
    if processes == 2:
        settings(cluster)
    code, answer, said = check(cluster)
    assert (code, answer["problems"]) == (0, []), said + cluster.logs()
    facts = {fact["name"]: fact for fact in answer["facts"]}
    # What the launcher starts on two nodes, the engine finds by MPI.
    assert facts["launcher"]["found"] == f"{2 * processes} processes on 2 nodes"
    assert facts["engine"]["found"] == f"{2 * processes} processes on 2 nodes worked together"
    cores = len(os.sched_getaffinity(0))
    assert facts["cores_per_node"]["stated"] == str(cores)
    assert facts["cores_per_node"]["found"] == f"{cores} cores"
    assert facts["scheduler.partition"]["found"] == "jobs ran: 1 node and 2 nodes"
    assert facts["storages.ssd.shared"]["found"] == "every node has its own"
    assert facts["storages.lustre1.shared"]["found"] == "every node sees the same files"
    for storage in ("lustre1", "ssd"):
        assert facts[f"storages.{storage}.eviction"]["found"].startswith("0 % of the data")
        assert facts[f"storages.{storage}.scratch"]["found"] == "written, and nothing left"
    if cluster.enforces_memory:
        assert facts["memory_per_node"]["found"] == "3.91 GiB (the job's limit)"  # 4000 MiB
    # What nobody can measure in a job of two nodes.
    unverified = {name for name, fact in facts.items() if fact["standing"] == "unverified"}
    assert unverified >= {"nodes", "scheduler.walltime"}
    written = yaml.safe_load((cluster.root / "site-configs" / SITE / "facts.yaml").read_text())
    assert {each["fact"]: each["found"] for each in written["facts"]}["launcher"] == facts["launcher"][
        "found"
    ]
    assert left(cluster) == []
    assert jobs(cluster) == []


def test_what_does_not_fit_is_said(cluster: Cluster) -> None:
    """A launcher that binds, a node-local system that is said to be shared, more memory than there is."""
    settings(
        cluster,
        ("memory_per_node: 4000MiB", "memory_per_node: 8000MiB"),
        ("    medium: disk", "    medium: disk\n    shared: true"),
        ("cores_per_node: $TIERCEL_CLUSTER_CORES", "cores_per_node: 1000"),
    )
    code, answer, said = check(cluster)
    assert code == 1
    told = "\n".join(answer["problems"])
    assert "storages.ssd.shared: no node sees another's files: it is each node's own" in told, said
    assert "cores_per_node: the job may use" in told
    if cluster.enforces_memory:
        assert "memory_per_node: 3.91 GiB (the job's limit), where the site file says 7.81 GiB" in told
    facts = {fact["name"]: fact for fact in answer["facts"]}
    assert facts["storages.lustre1.shared"]["problem"] == ""


def test_failures_are_one_line_each(cluster: Cluster) -> None:
    settings(cluster, ("partition: pbatch", "partition: closed"))
    code, answer, _ = check(cluster)
    assert code == 1
    assert len(answer["problems"]) == 2  # one for each job
    assert all("slurm: " in line and "\n" not in line for line in answer["problems"])
    assert all("partition" in line.lower() for line in answer["problems"]), (
        cluster.results / "check/snakemake.log"
    ).read_text()

    # Nodes that somebody else has: the jobs never begin.
    settings_path = cluster.root / "site-configs" / SITE / "site.yaml"
    settings_path.write_text(settings_path.read_text().replace("partition: closed", "partition: pbatch"))
    other = cluster.inside("sbatch", "--parsable", "-N4", "--exclusive", "--wrap", "sleep 600").strip()
    wait(lambda: any("RUNNING" in line for line in jobs(cluster)), "the other's job runs")
    code, answer, said = check(cluster, "--wait", "0.3")
    assert code == 1, said
    said_of = [line.partition(": slurm: ")[2].partition("; ") for line in answer["problems"]]
    assert [what for what, _, _ in said_of] == ["did not begin within 0.3 minutes (--wait): cancelled"] * 2
    assert all("waits: " in why for _, _, why in said_of)  # Slurm's reason, of each job
    assert [line.split()[0] for line in jobs(cluster)] == [other]

    for how in (signal.SIGINT, signal.SIGKILL):
        running = begin(cluster)
        wait(lambda: len(jobs(cluster)) >= 2, "a job waits in the queue")
        end(cluster, how)
        running.communicate(timeout=60)
        wait(lambda: [line.split()[0] for line in jobs(cluster)] == [other], f"{how}: {jobs(cluster)}")
    cluster.inside("scancel", other)


def end(cluster: Cluster, how: signal.Signals) -> None:
    """Send a signal to tiercel itself, in the cluster's own process namespace."""
    (who,) = cluster.inside("pgrep", "--full", f"^{sys.executable} -m tiercel site check {SITE}").split()
    cluster.inside("kill", f"-{how.value}", who)


@pytest.mark.parametrize(
    "how",
    ["CANCELLED", pytest.param("TIMEOUT", marks=pytest.mark.nightly)],  # Slurm's shortest limit: a minute
)
def test_a_job_that_is_killed_or_out_of_time_is_one_line(cluster: Cluster, how: str) -> None:
    settings(cluster, *([("walltime: 10min", "walltime: 1min")] if how == "TIMEOUT" else []))
    cluster.hold.touch()  # engines wait
    running = begin(cluster, "--json")
    # Both jobs want the one licence, so one of them runs: which, is Slurm's to say.
    wait(lambda: list(cluster.results.glob("check/*/raw/*/run.json")), "a run begins")
    (begun,) = {path.parts[-4] for path in cluster.results.glob("check/*/raw/*/run.json")}
    if how == "CANCELLED":
        (job,) = (line.split()[0] for line in jobs(cluster) if "RUNNING" in line)
        cluster.inside("scancel", job)
    else:
        wait(lambda: not jobs(cluster), "Slurm ends the jobs", 400)
    cluster.hold.unlink()
    out, said = running.communicate(timeout=300)
    assert running.returncode == 1, said
    where = {"nodes-1": "job of 1 node", "nodes-2": "job of 2 nodes"}[begun]
    line = f"{where}: slurm: began, and ended before it had finished: {how}"
    assert line in json.loads(out)["problems"], (cluster.results / "check" / "snakemake.log").read_text()
    assert jobs(cluster) == []
    wait(lambda: left(cluster) == [], f"folders are removed: {left(cluster)}")
