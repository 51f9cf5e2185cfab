"""The MPI program: the same results through MPI, and MPI-IO."""

import json
import os
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.mpi

SHAPE = "-t 4k -b 64k -s 2 -w -r -R -o f"


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["-F"],
        ["-z"],
        ["-F", "-z", "--task-offset", "1"],
        ["-e"],
        ["-Y"],
        ["-g"],
        ["-c"],
        ["-c", "-F"],
        ["--mpiio.useFileView"],
        ["-V", "-c"],
        ["-V", "-F"],
        ["--mpiio.preallocate"],
        ["-c", "-e", "-g"],
        ["-c", "-D", "100", "--stonewall-wear-out"],
        ["-C", "-O", "numTasksOnNode0=1"],
    ],
)
def test_mpiio_moves_the_same_data(mpi, options):
    run = mpi(3).good("-a MPIIO", SHAPE, *options)
    for result in run.results:
        # 3 tasks x 2 segments x 16 transfers
        assert result["operations"] == 96 and result["tasks"] == 3
        assert result["bytesMoved"] == 3 * 2 * 65536
    assert run.results[1]["verifyErrors"] == 0
    assert run.parameters["api"] == "MPIIO" and run.parameters["launcher"] == "mpi"


def test_both_programs_write_the_same_file(mpi, iokernel):
    # -G makes the data depend on offsets alone, so the shared files must be equal byte by byte
    shape = "-t 4k -b 32k -s 2 -w -k -G 4"
    iokernel.good("-n 3", shape, "-o forked")
    for name, options in {
        "posix": [],
        "mpiio": ["-a", "MPIIO"],
        "collective": ["-a", "MPIIO", "-c"],
        "view": ["-a", "MPIIO", "-V", "-c"],
        "random": ["-z"],
    }.items():
        mpi(3).good(shape, "-o", name, *options)
        assert iokernel.path(name).read_bytes() == iokernel.path("forked").read_bytes(), name


def test_fewer_tasks_than_ranks(mpi):
    run = mpi(3).good(SHAPE, "-N 2")
    assert {result["tasks"] for result in run.results} == {2}
    run = mpi(2)(SHAPE, "-N 3")
    assert run.status == 2 and "iokernel: -N: " in run.stderr


@pytest.mark.parametrize(
    "arguments, option",
    [
        (["-a", "MPIIO", "-c", "-z", "-t", "4k"], "-z"),
        (["-a", "MPIIO", "-V", "-z", "-t", "4k"], "-z"),
        (["-a", "MPIIO", "-B"], "--posix.odirect"),
        (["-a", "MPIIO", "--queue-depth", "4"], "--queue-depth"),
        (["-a", "MPIIO", "-Y", "-D", "1"], "-Y"),
        (["-n", "2"], "--processes"),
        (["--session", "own"], "--session"),
        (["-t", "4x"], "-t"),
        (["-O", "summaryFile=missing/s.json"], "summaryFile"),
    ],
)
def test_mistakes_are_told_once(mpi, arguments, option):
    engine = mpi(2)
    run = engine(*arguments)
    assert run.status == 2 and run.stdout == ""
    assert [line for line in run.stderr.splitlines() if line.startswith("iokernel: ")] == [
        line for line in run.stderr.splitlines() if line.startswith(f"iokernel: {option}: ")
    ]
    assert run.stderr.count(f"iokernel: {option}: ") == 1
    assert list(engine.directory.iterdir()) == []


@pytest.mark.parametrize("options", [[], ["-a", "MPIIO"], ["-a", "MPIIO", "-c"], ["-F"]])
def test_failures_leave_nobody_waiting(mpi, options):
    engine = mpi(3)
    shape = ("-t 4k -b 64k -o f", *options)
    run = engine(*shape, "-r -O summaryFile=s.json")
    assert run.status == 1
    document = json.loads(engine.path("s.json").read_text())
    assert document["status"] == "failed" and document["error"]["errno"] == 2
    # the last of 3 ranks would meet the end of a file that is a transfer too short
    engine.good(*shape, "-w -k")
    last = max(engine.directory.glob("f*"))
    os.truncate(last, last.stat().st_size - 4096)
    run = engine(*shape, "-r -k -O summaryFile=s.json")
    error = json.loads(engine.path("s.json").read_text())["error"]
    assert run.status == 1 and error["operation"] == "check"
    assert error["rank"] == (2 if "-F" in options else 0)  # rank 0 looks after a shared file
    if "-c" not in options:  # Open MPI calls a collective read past the end complete
        run = engine(*shape, "-r -k -D 100 -O summaryFile=s.json")
        error = json.loads(engine.path("s.json").read_text())["error"]
        assert run.status == 1 and error["rank"] == 2 and "unexpected end of file" in error["message"]


def test_a_full_device_is_named_as_such(mpi):
    for options in ([], ["-a", "MPIIO"]):
        engine = mpi(2)
        run = engine("-w -t 4k -b 64k -o /dev/full -O summaryFile=s.json", *options)
        error = json.loads(engine.path("s.json").read_text())["error"]
        assert run.status == 1 and error["operation"] == "write"
        # Open MPI says only that the transfer failed
        assert error["errno"] == 28 or (options and error["errno"] == 5)


def test_capabilities_name_the_library(mpi):
    document = mpi(1)("--capabilities").document
    assert (
        document["mpi"] is True and document["apis"] == ["POSIX", "MPIIO", "HDF5"] and document["mpiLibrary"]
    )


def test_md(mpi):
    engine = mpi(3)
    run = engine.good("md -n 10 -d d -w 10 -e 10 -X -N 1 -u")
    assert {r["key"]: r["items"] for r in run.results}["file-read"] == 30
    assert list(engine.directory.iterdir()) == []


def test_a_terminated_run_cleans_up(mpi):
    engine = mpi(2)
    process = subprocess.Popen(
        [*engine.command, "-w", "-F", "-Y", "-t", "4k", "-b", "256m", "-o", "f", "-O", "summaryFile=s.json"],
        cwd=engine.directory,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(2000):
        if list(engine.directory.glob("f.*")):
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) != 0
    for _ in range(1000):  # the launcher may go before its ranks have cleaned up
        if engine.path("s.json").exists() or not list(engine.directory.glob("f.*")):
            break
        time.sleep(0.01)
    assert list(engine.directory.glob("f.*")) == []
    if engine.path("s.json").exists():  # launchers that pass the signal on
        assert json.loads(engine.path("s.json").read_text())["status"] == "failed"


def test_one_node_writes_and_another_reads(mpi):
    """Four ranks on two (pretended) nodes: each start is of two of them, on their own node."""
    options = "-F -t 8k -b 64k -G 5 -o f"
    pretended = {**os.environ, "IOR_FAKE_TASK_PER_NODES": "2"}
    found = {}
    for node, phase in ((0, "-w -k"), (1, "-r -R -E")):
        run = mpi(4).good(options, phase, "--on-node", node, env=pretended)
        (result,) = run.results
        assert (result["tasks"], result["nodes"], result["bytesMoved"]) == (2, 1, 2 * 65536)
        found[node] = result["hosts"]
    assert result["verifyErrors"] == 0 and found[0] != found[1]
    run = mpi(4)(options, "-w --on-node 2", env=pretended)
    assert run.status == 2 and run.stderr == "iokernel: --on-node: 2, but the launcher started on 2 nodes\n"
    assert not list(mpi(1).directory.iterdir())
