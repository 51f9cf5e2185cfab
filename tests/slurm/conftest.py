"""A real Slurm of four virtual nodes, and a project to run on it (tools/slurm-virtual)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tiercel.programs import program

from ..conftest import CHECKOUT

SCRIPT = CHECKOUT / "tools" / "slurm-virtual" / "cluster"
SITE = "slurm-virtual"


#: Slurm's own srun; engines begin only when there is no file `hold`, so that tests need no luck with times.
_SRUN = """#!/bin/sh
case " $* " in *' --phases '*) while [ -e '{hold}' ]; do sleep 0.1; done ;; esac
exec {srun} "$@"
"""


class Cluster:
    """The virtual cluster and a project folder whose runs go to it."""

    def __init__(self, state: Path, root: Path) -> None:
        self.state, self.root = state, root
        self.results = root / "results" / SITE
        self.hold = root.parent / "hold"
        srun = root.parent / "bin" / "srun"
        srun.parent.mkdir(parents=True)
        srun.write_text(_SRUN.format(hold=self.hold, srun=shutil.which("srun")))
        srun.chmod(0o755)
        self.environment = {
            **os.environ, "TIERCEL_CLUSTER": str(state), "PATH": f"{srun.parent}:{os.environ['PATH']}",
        }  # fmt: skip
        (root / "workflows" / "studies").mkdir(parents=True)
        (root / "site-configs" / SITE).mkdir(parents=True)
        (root / "Snakefile").symlink_to(CHECKOUT / "Snakefile")
        for rules in (CHECKOUT / "workflows").glob("*.smk"):
            (root / "workflows" / rules.name).symlink_to(rules)
        for name in ("site.yaml", "config.yaml"):
            (root / "site-configs" / SITE / name).write_text(
                (CHECKOUT / "site-configs" / SITE / name).read_text()
            )
        (root / SITE).symlink_to(f"site-configs/{SITE}")

    def call(self, *words: str) -> None:
        subprocess.run([SCRIPT, *words], env=self.environment, check=True, timeout=120)

    def inside(self, *words: str) -> str:
        """Run a command on the cluster's login node and return what it prints."""
        return subprocess.run(
            [SCRIPT, "exec", *words], env=self.environment, cwd=self.root, check=True, timeout=120,
            capture_output=True, text=True,
        ).stdout  # fmt: skip

    def state_of(self, job: str) -> str:
        """Return how Slurm says that a job is, also of one that has ended."""
        return self.inside("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()

    def snakemake(self, *words: str, said: Path | None = None) -> subprocess.Popen[str]:
        """Start Snakemake; what it says is to be read from the process, or goes to the file `said`."""
        command = [SCRIPT, "exec", sys.executable, "-m", "snakemake", "--profile", SITE]
        return subprocess.Popen(
            [*command, *words, "--config", "study=tiny", "announce=false"],
            env=self.environment, cwd=self.root, text=True,
            stdout=said.open("w") if said else subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def study(self, text: str) -> None:
        (self.root / "workflows" / "studies" / "tiny.yaml").write_text(text)

    @property
    def enforces_memory(self) -> bool:
        """Whether jobs are held to the memory they ask for, which this machine may not let us do."""
        answer = subprocess.run(
            [SCRIPT, "enforces"], env=self.environment, capture_output=True, text=True, check=True
        )
        return answer.stdout.strip() == "memory"

    def begun(self) -> list[Path]:
        """Return the raw folders of runs that have begun and not ended."""
        return [
            p.parent for p in self.results.glob("raw/*/run.json") if not (p.parent / "record.json").exists()
        ]

    def wait(
        self,
        condition: Callable[[], object],
        what: str,
        workflow: subprocess.Popen[str],
        seconds: float = 240,
    ) -> None:
        """Wait until `condition` holds, while `workflow` goes on."""
        end = time.monotonic() + seconds
        while not condition():
            assert workflow.poll() is None, f"{what}: snakemake ended\n{workflow.communicate()[0] or ''}"
            assert time.monotonic() < end, f"{what}: not within {seconds:g} s\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(p.read_text()[-2000:] for p in self.root.glob(".snakemake/slurm_logs/**/*.log"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    why = subprocess.run([SCRIPT, "missing"], capture_output=True, text=True, check=True).stdout.strip()
    if why:
        pytest.skip(f"no virtual Slurm here: {why}")
    for module in ("slurm", "slurm_jobstep"):
        if importlib.util.find_spec(f"snakemake_executor_plugin_{module}") is None:
            pytest.skip("Snakemake's Slurm executor is not installed (make setup installs it)")
    if program("iokernel-mpi") is None:
        pytest.skip("iokernel is built without MPI (make setup builds it where there is an mpicc)")
    # Sockets' paths are short (108 bytes), pytest's folders are not.
    state = Path(f"/tmp/tiercel-slurm-{os.getpid()}")
    found = Cluster(state, tmp_path / "project")
    try:
        found.call("start")
        yield found
    finally:
        found.call("stop")
        subprocess.run(["rm", "-rf", "--one-file-system", state], check=True)
