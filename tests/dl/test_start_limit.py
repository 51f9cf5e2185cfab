"""`tiercel dl generate` on nodes where MPI does not start: it ends, with its processes, and says so."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tiercel.dl.engine import has_mpi4py

pytestmark = pytest.mark.skipif(not has_mpi4py(), reason="mpi4py is not installed")


def generate(tmp: Path, srun: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Make a small dataset in a job of two nodes whose srun is a shell script ("$@": the command)."""
    program = tmp / "bin" / "srun"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexport TIERCEL_OF_TEST={shlex.quote(str(tmp))}\n{srun}\n")
    program.chmod(0o755)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PMI_", "OMPI_"))}
    environment |= {"PATH": f"{program.parent}:{os.environ['PATH']}", "SLURM_JOB_NUM_NODES": "2",
                    "TMPDIR": str(tmp)}  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", "tiercel", "dl", "generate", "resnet50-vast", "--scale", "0.01", "--folder",
         str(tmp / "d"), "--nodes", "2", *more],
        capture_output=True, text=True, timeout=60, check=False, env=environment,
    )  # fmt: skip


def left(tmp: Path) -> list[psutil.Process]:
    """Return what the srun of `generate` started and has not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TIERCEL_OF_TEST") == str(tmp):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_processes_that_never_meet_are_ended_and_told(tmp_path: Path) -> None:
    answer = generate(tmp_path, "exec sleep 600", "--start-limit", "1s")
    assert answer.returncode == 2
    assert "2 processes on 2 nodes have not met after 1 s: MPI does not start there" in answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1
    assert left(tmp_path) == []
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("tiercel-")] == []


def test_a_launcher_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    answer = generate(tmp_path, "trap '' TERM\nwhile :; do sleep 0.1; done", "--start-limit", "1s")
    assert answer.returncode == 2
    assert "have not met" in answer.stderr


def test_once_they_have_met_there_is_no_limit(tmp_path: Path) -> None:
    """The processes take longer than the limit, but say at once that they have met."""
    script = (
        'while [ "$1" != "--output" ]; do shift; done\n'
        "echo started; sleep 3\n"
        'echo \'{"generated": {"files": 5, "bytes": 10, "kept": 0, "seconds": 3}}\' > "$2/dlkernel.json"'
    )
    answer = generate(tmp_path, script, "--start-limit", "1s")
    assert answer.returncode == 0, answer.stderr
    assert "5 files made" in answer.stdout


def test_a_launcher_that_fails_is_told_in_its_words(tmp_path: Path) -> None:
    answer = generate(tmp_path, "echo 'srun: error: Unable to create step' >&2; exit 1")
    assert answer.returncode == 2
    assert "srun: error: Unable to create step" in answer.stderr


def test_a_limit_that_is_none_is_named(tmp_path: Path) -> None:
    answer = generate(tmp_path, "exit 0", "--start-limit", "soon")
    assert answer.returncode == 2
    assert "--start-limit soon: 'soon' is not a duration" in answer.stderr


def test_the_processes_say_that_they_have_met(tmp_path: Path) -> None:
    """What the limit waits for, by a real MPI."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no MPI launcher in this environment")
    program = f'while [ "$1" != "{sys.executable}" ]; do shift; done\nexec {mpiexec} -n 2 "$@"'
    answer = generate(tmp_path, program, "--start-limit", "50s", "-n", "1")
    assert answer.returncode == 0, answer.stderr
    assert "files made" in answer.stdout
