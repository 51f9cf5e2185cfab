"""The exact command line of every launcher, for two nodes of four processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.launchers import launchers, mpich, mpiexec, resolve
from tiercel.schedulers import schedulers

ARGV = ["engine", "-o", "a file"]
EXPECTED = {
    "srun": "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --distribution=block --kill-on-bad-exit=1 "
    "--cpu-bind=none",
    "jsrun": "jsrun --nrs=2 --rs_per_host=1 --tasks_per_rs=4 --cpu_per_rs=ALL_CPUS "
    "--launch_distribution=packed --bind=none",
    "lrun": "lrun -N2 -T4",
    "flux": "flux run --nodes=2 --ntasks=8 --exclusive --setopt=cpu-affinity=off",
    "aprun": "aprun -n 8 -N 4 -cc none",
    "pals": "mpiexec -n 8 --ppn 4 --cpu-bind none",
    "ibrun": "env IBRUN_TASKS_PER_NODE=4 ibrun -n 8",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_command_line(name: str) -> None:
    assert resolve(name).command(ARGV, 2, 4) == [*EXPECTED[name].split(), *ARGV]


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("HYDRA build details:", "-n 8 -ppn 4"),  # MPICH binds nothing unless it is asked to
        ("mpiexec (OpenRTE) 4.1.4", "-n 8 --oversubscribe --bind-to none --map-by ppr:4:node"),
        ("mpiexec (Open MPI) 5.0.6", "-n 8 --oversubscribe --bind-to none --map-by ppr:4:node"),
    ],
)
def test_mpiexec(says: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    monkeypatch.setattr(mpiexec, "program", lambda _name: str(path))
    mpiexec._is_open_mpi.cache_clear()
    try:
        assert resolve("mpiexec").command(ARGV, 2, 4) == [str(path), *words.split(), *ARGV]
    finally:
        mpiexec._is_open_mpi.cache_clear()


OFI, NO_SOCKETS = {"MPIR_CVAR_CH4_NETMOD": "ofi"}, {"FI_PROVIDER": "^sockets"}


@pytest.mark.parametrize(
    ("launcher", "device", "theirs", "wanted"),
    [
        ("srun --mpi=pmi2", "ch4:ucx ofi", {}, {**OFI, **NO_SOCKETS}),
        # Whoever chose one keeps it.
        ("srun --mpi=pmi2", "ch4:ucx ofi", {"MPIR_CVAR_CH4_NETMOD": "ucx"}, NO_SOCKETS),
        ("srun --mpi=pmi2", "ch4:ofi", {"FI_PROVIDER": "psm3"}, {}),
        ("srun --mpi=pmi2", "ch4:ofi", {"MPIR_CVAR_OFI_USE_PROVIDER": "sockets"}, {}),
        ("srun", "ch4:ucx ofi", {"SLURM_MPI_TYPE": "pmi2"}, {**OFI, **NO_SOCKETS}),
        ("srun --mpi=pmix", "ch4:ucx ofi", {}, NO_SOCKETS),  # which does not cut what is long
        ("srun --mpi=pmi2", "ch4:ucx", {}, {}),  # there is no other: it would not start
        ("flux", "ch4:ofi", {}, NO_SOCKETS),
        ("mpiexec", "ch4:ofi", {}, NO_SOCKETS),
        ("fork", "ch4:ofi", {}, {}),
    ],
)
def test_ways_of_mpich_that_wait_for_ever_are_not_taken(
    launcher: str, device: str, theirs: dict[str, str], wanted: dict[str, str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    path = tmp_path / "mpichversion"
    path.write_text(f"#!/bin/sh\necho 'MPICH Version:      5.0.2'\necho 'MPICH Device:       {device}'\n")
    path.chmod(0o755)
    monkeypatch.setattr(mpich, "program", lambda _name: path)
    monkeypatch.setattr(mpiexec, "_is_open_mpi", lambda: False)
    for name in ("MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_OFI_USE_PROVIDER", "FI_PROVIDER", "SLURM_MPI_TYPE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    name, *options = launcher.split()
    mpich.networks.cache_clear()
    try:
        assert resolve(name, options).environment() == wanted
    finally:
        mpich.networks.cache_clear()


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            "srun: error: Unable to create step for job 1: "
            "Unable to contact slurm controller (connect failure)",
            True,
        ),
        ("srun: error: slurm_receive_msgs: Socket timed out on send/recv operation\n", True),
        ("srun: Cancelled pending job step with signal 15\n", True),
        # It dies while it is asked.
        ("srun: error: Unable to confirm allocation for job 7: Connection reset by peer\n", True),
        (
            "srun: error: n1: task 0: Exited with exit code 3\niokernel: data: No space left on device\n",
            False,
        ),
        ("iokernel: srun: Unable to contact slurm controller\n", False),  # an engine's own words
        ("srun: error: Unable to create step for job 1: More processors requested than permitted\n", False),
    ],
)
def test_a_controller_that_is_away_is_no_failure_of_the_command(said: str, lost: bool) -> None:
    assert resolve("srun").lost_contact(said) is lost
    assert not resolve("mpiexec").lost_contact(said)


@pytest.mark.parametrize(
    ("said", "killed"),
    [
        ("srun: error: n1: task 1: Out Of Memory\nsrun: launch/slurm: _step_signal: Terminating\n", True),
        ("slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=4.1. Some of your processes\n", True),
        ("iokernel: srun: Out Of Memory\n", False),  # an engine's own words
        ("srun: error: n2: tasks 2-3: Killed\n", False),  # by somebody, for no reason that it tells
    ],
)
def test_who_was_killed_for_memory_is_told_in_the_launchers_words(said: str, killed: bool) -> None:
    assert resolve("srun").used_up_memory(said) is killed
    assert not resolve("mpiexec").used_up_memory(said)


def test_every_launcher_has_its_line_here() -> None:
    assert set(launchers) == {*EXPECTED, "fork", "mpiexec"}


def test_options_of_the_site_come_before_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTS", "/tmp/my hosts")
    command = resolve("srun", ["--mpi=pmi2", "--nodefile=$HOSTS"]).command(ARGV, 1, 1)
    assert command[-5:] == ["--mpi=pmi2", "--nodefile=/tmp/my hosts", *ARGV]


def test_an_unset_variable_in_the_options_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODES_FILE", raising=False)
    with pytest.raises(UserError, match="environment variable NODES_FILE is not set"):
        resolve("srun", ["--nodefile=$NODES_FILE"]).command(ARGV, 1, 1)


def test_unknown_launcher_names_those_that_there_are() -> None:
    with pytest.raises(UserError, match=r"did you mean srun\?"):
        resolve("srunn")


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("", "no jsrun on PATH"),
        ("MODULEPATH", "this machine has modules: `module load` the one that brings it"),
    ],
)
def test_a_program_that_a_module_would_bring(
    variable: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MODULEPATH", "MODULESHOME", "LMOD_CMD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if variable:
        monkeypatch.setenv(variable, "/opt/modules")
    assert (resolve("jsrun").missing() or "").endswith(words)
    scheduler = schedulers.get("lsf")().missing() or ""
    assert scheduler.startswith("no bsub, ")
    assert scheduler.endswith(words if variable else "is this a login node of the site?")
