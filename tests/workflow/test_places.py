"""Places that a user has and may not write: somebody else's checkout, an account without a home folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ONE, Project, needs_iokernel


def read_only(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `root`, which can only be read: mounted so (root), or closed (everybody else)."""
    if os.geteuid() != 0:
        root.chmod(0o555)
        try:
            return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        finally:
            root.chmod(0o755)
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    ):
        pytest.skip("this machine allows no mount namespaces")
    script = 'mount --bind . . && mount -o remount,ro,bind . && cd "$PWD" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *command],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip


@needs_iokernel
@pytest.mark.parametrize(
    "words", [["tiercel", "evaluate", "--study", "tiny"], ["snakemake", "--profile", "local", "-n"]]
)
def test_somebody_elses_checkout_is_told_in_a_line(project: Project, words: list[str]) -> None:
    project.study("tiny", ONE)
    if words[0] == "snakemake":
        words = [*words, "--config", "study=tiny"]
    answer = read_only(project.root, sys.executable, "-m", *words)
    assert answer.returncode != 0
    said = [line for line in answer.stderr.splitlines() if line.startswith("tiercel: ")]
    assert len(said) == 1 and "project" in said[0] and "your own" in said[0], answer.stderr
    assert "`tiercel init" in said[0]
    assert "Traceback" not in answer.stderr and "common.smk" not in answer.stderr


@needs_iokernel
def test_an_account_without_a_home_folder_measures(project: Project) -> None:
    """/proc takes no folders, not from root either; Snakemake keeps a cache there unless told otherwise."""
    project.study("tiny", ONE)
    environment = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"} | {"HOME": "/proc/home"}
    answer = subprocess.run(
        [sys.executable, "-m", "tiercel", "evaluate", "--study", "tiny"],
        cwd=project.root, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert (project.results / "runs.parquet").is_file()
