"""Whole studies through Snakemake's cluster-generic executor: LSF and Flux by stand-ins that run the jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tiercel.programs import program
from tiercel.site.folder import site_files, write_folder
from tiercel.site.mounts import mount_of, read_mounts

from ..conftest import CHECKOUT

pytestmark = pytest.mark.skipif(
    program("iokernel-mpi") is None,
    reason="iokernel is built without MPI (make setup builds it where there is an mpicc)",
)

#: Two rounds of one run, so two jobs.
STUDY = """
study: tiny
title: One workload, two rounds
repetitions: {minimum: 2, maximum: 2}
twins: false
timeout: 120s
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB}
"""


class Cluster:
    """A project on a site whose scheduler is a stand-in."""

    def __init__(self, root: Path, site: str, launcher: str, scheduler: str, bin: Path) -> None:
        self.root, self.site, self.folder = root, site, bin.parent
        (root / "workflows" / "studies").mkdir(parents=True)
        (root / "Snakefile").symlink_to(CHECKOUT / "Snakefile")
        for rules in (CHECKOUT / "workflows").glob("*.smk"):
            (root / "workflows" / rules.name).symlink_to(rules)
        (root / "workflows" / "studies" / "tiny.yaml").write_text(STUDY)
        (root / site).symlink_to(f"site-configs/{site}")
        scratch = root.parent / "scratch"
        scratch.mkdir()
        mount = mount_of(scratch, read_mounts())
        assert mount is not None
        (root / "site-configs" / site / "site.yaml").write_text(f"""
site: {site}
launcher: {launcher}
scheduler: {{name: {scheduler}, partition: pbatch, account: $TIERCEL_ACCOUNT, walltime: 2h}}
processes_per_node: 2
storages:
  main: {{type: {mount.type}, mount: {mount.point}, scratch: {scratch}, medium: {mount.medium}, shared: true}}
""")
        self.results = root / "results" / site
        self.environment = {
            **os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "STAND_IN": str(self.folder),
            "TIERCEL_ACCOUNT": "guests",
        }  # fmt: skip

    def snakemake(self) -> subprocess.Popen[str]:
        words = ["--profile", self.site, f"results/{self.site}/runs.parquet", "--latency-wait", "5"]
        # How often a job is looked at, and how long Snakemake then takes to end: 10 s by default.
        words += ["--seconds-between-status-checks", "1"]
        words += ["--max-status-checks-per-second", "5", "--config", "study=tiny", "announce=false"]
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *words], cwd=self.root, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def calls(self, *words: str) -> list[list[str]]:
        """Return the calls that begin with `words`, in order."""
        path = self.folder / "calls.txt"
        made = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in made if call[: len(words)] == list(words)]

    def wait(self, condition: Callable[[], object], workflow: subprocess.Popen[str]) -> None:
        deadline = time.monotonic() + 180
        while not condition():
            assert workflow.poll() is None, workflow.communicate()[0]
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)

    def begun(self) -> list[Path]:
        return list(self.results.glob("raw/*/run.json"))

    @property
    def hold(self) -> Path:
        """While this file is there, engines do not begin."""
        return self.folder / "hold"

    def logs(self) -> str:
        return "\n".join(p.read_text()[-3000:] for p in self.folder.glob("jobs/*/log"))

    def end(self) -> None:
        for job in self.folder.glob("jobs/*"):
            if not (job / "code").exists():
                with suppress(OSError, ValueError):
                    os.killpg(int((job / "pid").read_text()), signal.SIGKILL)


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A folder of programs to put before the others on PATH."""
    folder = tmp_path / "cluster" / "bin"
    folder.mkdir(parents=True)
    text = f"#!{sys.executable}\n" + (Path(__file__).parent / "stand_in.py").read_text()
    for name in ("bsub", "bjobs", "bkill", "jsrun", "flux"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


NewCluster = Callable[[str], Cluster]


@pytest.fixture
def new_cluster(tmp_path: Path, stand_in: Path) -> Iterator[NewCluster]:
    made: list[Cluster] = []

    def make(site: str) -> Cluster:
        root = tmp_path / "project"
        place = root / "site-configs" / site
        if site == "lassen":  # the files that come with tiercel
            names = ("config.yaml", "submit", "status", "cancel")
            write_folder(place, {n: (CHECKOUT / "site-configs" / site / n).read_text() for n in names})
            made.append(Cluster(root, site, "jsrun", "lsf", stand_in))
        else:  # those that `tiercel site new` writes
            write_folder(place, site_files(site, "flux"))
            made.append(Cluster(root, site, "flux", "flux", stand_in))
        return made[-1]

    yield make
    for cluster in made:
        cluster.end()


def test_lsf_a_killed_snakemake_takes_up_its_job(new_cluster: NewCluster) -> None:
    cluster = new_cluster("lassen")
    cluster.hold.touch()
    first = cluster.snakemake()
    cluster.wait(cluster.begun, first)
    first.kill()
    first.communicate(timeout=60)
    asked = len(cluster.calls("bjobs"))
    second = cluster.snakemake()
    cluster.wait(lambda: len(cluster.calls("bjobs")) > asked or len(cluster.calls("bsub")) > 1, second)
    cluster.hold.unlink()
    output, _ = second.communicate(timeout=600)
    assert second.returncode == 0, output + cluster.logs()

    # Two rounds, two submissions: what ran while nobody looked was not submitted again.
    assert "waiting for 1 jobs of a Snakemake that was killed" in output
    assert "site-configs/lassen/cancel 1" in output
    one, two = cluster.calls("bsub")
    # Two runs' assumed times and three minutes around them make minutes; the rest stands as it is.
    assert one[1:4:2] == ["-nnodes", "-W"] and one[2] == "1" and int(one[4]) >= 3
    expected = (
        "-J tiercel-lassen -o .snakemake/lsf-%J.log -q pbatch -G guests -stage storage=1400 -core_isolation 0"
    )
    assert one[5:] == two[5:] == expected.split()
    assert cluster.calls("bjobs")[0] == ["bjobs", "-noheader", "-o", "stat", "1"]
    launched = [call for call in cluster.calls("jsrun") if "--phases" in call]
    head = "jsrun --nrs=1 --rs_per_host=1 --tasks_per_rs=2 --cpu_per_rs=ALL_CPUS"
    assert [call[:7] for call in launched] == [
        [*head.split(), "--launch_distribution=packed", "--bind=none"]
    ] * 2
    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    assert [(r["status"], r["attempts"]) for r in records] == [("ok", 1)] * 2
    # Who pays is in no result.
    assert "guests" not in "".join(p.read_text() for p in cluster.results.glob("raw/*/*.json"))


def test_flux_an_interrupted_study_cancels_its_job_and_goes_on(new_cluster: NewCluster) -> None:
    cluster = new_cluster("here")
    cluster.hold.touch()
    first = cluster.snakemake()
    cluster.wait(cluster.begun, first)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=120)
    cluster.hold.unlink()
    assert cluster.calls("flux", "cancel") == [["flux", "cancel", "f1"]]
    second = cluster.snakemake()
    output, _ = second.communicate(timeout=600)
    assert second.returncode == 0, output + cluster.logs()

    batches = cluster.calls("flux", "batch")
    assert len(batches) == 3  # the one that was cancelled, and two rounds
    for call in batches:
        assert call[2:4] == ["--nodes=1", "--exclusive"]
        assert call[5:9] == [
            "--job-name=tiercel-here", "--output=.snakemake/flux-{{id}}.log", "--queue=pbatch",
            "--bank=guests",
        ]  # fmt: skip
    asked = cluster.calls("flux", "jobs")
    assert asked[0] == ["flux", "jobs", "--no-header", "--format={state} {result}", "f1"]
    launched = [call for call in cluster.calls("flux", "run") if "--phases" in call]
    assert {tuple(call[2:5]) for call in launched} == {("--nodes=1", "--ntasks=2", "--exclusive")}
    records = [json.loads(p.read_text()) for p in cluster.results.glob("raw/*/record.json")]
    assert [r["status"] for r in records] == ["ok"] * 2
    # The run that was cut off is kept aside and went again.
    assert sorted(r["attempts"] for r in records) == [1, 2]
    assert len(list(cluster.results.glob("raw/interrupted/*"))) == 1


def test_the_checklist_goes_through_the_sites_scripts_and_leaves_no_job_when_killed(
    new_cluster: NewCluster,
) -> None:
    cluster = new_cluster("here")
    command = [sys.executable, "-m", "tiercel", "site", "check", "here", "--submit", "--json"]
    done = subprocess.run(
        command, cwd=cluster.root, env=cluster.environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr + cluster.logs()
    facts = {fact["name"]: fact for fact in json.loads(done.stdout)["facts"]}
    assert facts["launcher"]["found"] == "2 processes on 1 node"
    assert facts["storages.main.scratch"]["found"] == "written, and nothing left"
    # Who pays is in no fact.
    assert "guests" not in (cluster.root / "site-configs" / "here" / "facts.yaml").read_text()

    cluster.hold.touch()
    running = subprocess.Popen(
        command, cwd=cluster.root, env=cluster.environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    begun = cluster.results / "check" / "nodes-1" / "raw"
    deadline = time.monotonic() + 180
    while len(cluster.calls("flux", "batch")) < 2 or not list(begun.glob("*/run.json")):
        assert running.poll() is None and time.monotonic() < deadline, cluster.logs()
        time.sleep(0.1)
    assert cluster.calls("flux", "cancel") == []
    running.kill()
    running.wait(60)
    while not cluster.calls("flux", "cancel"):
        assert time.monotonic() < deadline + 60
        time.sleep(0.1)
    assert cluster.calls("flux", "cancel") == [["flux", "cancel", "f2"]]
    cluster.hold.unlink()
