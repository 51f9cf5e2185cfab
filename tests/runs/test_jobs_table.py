"""`tiercel plan --jobs`: the jobs as they would be submitted, and nothing is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ..conftest import needs_iokernel

pytestmark = needs_iokernel


def jobs(checkout: Path, site: str) -> list[tuple[str, str, str]]:
    """Return for each job its heading, how it is submitted and what it runs."""
    answer = subprocess.run(
        [sys.executable, "-m", "tiercel", "plan", "--site", site, "--study", "vast-2024", "--jobs"],
        cwd=checkout, capture_output=True, text=True, timeout=120, check=False, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    return list(zip(lines[0::3], lines[1::3], lines[2::3], strict=True))


def test_slurm(checkout: Path) -> None:
    found = jobs(checkout, "slurm-virtual")
    # Ten rounds (the study's repetitions) of jobs with 1, 2 and 4 nodes, one after another.
    assert len(found) >= 30
    for nodes in (1, 2, 4):
        heading, submitted, runs = next(job for job in found if f".nodes-{nodes}." in job[0])
        name, minutes = heading.split()[1].rstrip(":"), heading.split()[-2]
        words = submitted.split()
        assert words[:2] == ["SBATCH_MEM_PER_NODE=0", "sbatch"]  # all memory of the nodes
        assert not [word for word in words[1:] if word.startswith("--mem")]
        assert {f"--nodes={nodes}", "--ntasks-per-node=4", "--exclusive", "--requeue"} <= set(words)
        assert words[words.index("-t") + 1] == minutes
        assert words[words.index("-p") + 1] == "pbatch"
        assert words[words.index("--job-name") + 1] == "tiercel-slurm-virtual_UUID"
        assert words[-1] == "JOBSCRIPT"
        assert runs.split()[2:] == (
            f"tiercel batch --site slurm-virtual --study vast-2024 --name {name} --minutes {minutes}".split()
        )


def test_a_sites_own_script(checkout: Path) -> None:
    heading, submitted, _ = next(job for job in jobs(checkout, "lassen") if ".nodes-16." in job[0])
    assert submitted == f"site-configs/lassen/submit 16 {heading.split()[-2]} pbatch JOBSCRIPT"


def test_a_site_without_a_scheduler(checkout: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "tiercel", "plan", "--jobs"], cwd=checkout, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert answer.stderr.startswith("tiercel: site local: has no scheduler")
