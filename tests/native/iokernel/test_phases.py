"""Sequences of phases, stonewalls, fsync, queue depth."""

import os
import subprocess

import pytest

SHAPE = "-n 2 -t 4k -b 64k"


@pytest.mark.parametrize(
    "phases, history",
    [
        ("w,r", ["WO", "RAW"]),
        ("w,rz", ["WO", "RAW"]),
        ("w,w", ["WO", "WAW"]),
        ("w,r,r", ["WO", "RAW", "RAR"]),
        ("w,r,w", ["WO", "RAW", "WAR"]),
    ],
)
def test_access_history(iokernel, phases, history):
    run = iokernel.good(SHAPE, "--phases", phases, "-R")
    names = phases.split(",")
    assert [r["accessHistory"] for r in run.results] == history
    assert [r["phase"] for r in run.results] == list(range(len(names)))
    assert [r["random"] for r in run.results] == [name.endswith("z") for name in names]
    assert [r["access"][0] for r in run.results] == [name[0] for name in names]
    assert [line["phase"] for line in run.document["summary"]] == list(range(len(names)))
    assert not list(iokernel.directory.iterdir())


def test_existing_files_have_no_history_in_this_run(iokernel):
    iokernel.good(SHAPE, "-w -k -o f")
    assert [r["accessHistory"] for r in iokernel.good(SHAPE, "-w -E -k -o f").results] == ["WO"]
    assert [r["accessHistory"] for r in iokernel.good(SHAPE, "--phases r,w -E -k -o f").results] == [
        "RO",
        "WAR",
    ]
    run = iokernel.good(SHAPE, "-w -E -k -i 2 -o f")
    assert [r["accessHistory"] for r in run.results] == ["WO", "WAW"]
    run = iokernel.good(SHAPE, "-w -k -i 2 -o f")  # without -E each repetition starts anew
    assert [r["accessHistory"] for r in run.results] == ["WO", "WO"]


def test_a_file_that_is_read_stays_for_all_repetitions_and_goes_at_the_end(iokernel):
    iokernel.good(SHAPE, "-w -k -o f")
    run = iokernel.good(SHAPE, "-r -i 3 -o f")
    assert [r["accessHistory"] for r in run.results] == ["RO", "RAR", "RAR"]
    assert not list(iokernel.directory.iterdir())


def test_a_file_of_another_size_is_not_removed(iokernel):
    # -r without -k removes the data file of this test; this one merely has its name and holds more
    iokernel.path("f").write_bytes(b"x" * 200_000)
    iokernel.good(SHAPE, "-r -o f")
    assert iokernel.path("f").stat().st_size == 200_000


def test_a_stonewall_stops_early_and_reads_stop_where_the_write_did(iokernel):
    # 0 seconds mean no stonewall; a nanosecond is over after the first operation of every task
    run = iokernel.good("-n 2 -F -t 4k -b 1m -D 0.000000001")
    for result in run.results:
        wall = result["stonewall"]
        assert result["operations"] == 2 and wall["operationsMin"] == wall["operationsMax"] == 1
        assert wall["hit"] is True and wall["ranksHit"] == 2
        assert result["bytesMoved"] == 8192 < result["bytesExpected"] == 2 * 2**20


@pytest.mark.parametrize("option", ["--stonewall-wear-out", "-OstoneWallingWearOut=1"])
def test_wear_out_lets_every_task_reach_the_largest_count(iokernel, option):
    run = iokernel.good("-n 3 -t 4k -b 8m -D 0.002", option, "-w")
    wall = run.results[0]["stonewall"]
    assert wall["operationsMin"] == wall["operationsMax"] == wall["operationsMaxAtWall"]
    assert run.results[0]["operations"] == 3 * wall["operationsMax"]


def test_a_stonewall_that_is_not_reached_changes_nothing(iokernel):
    run = iokernel.good(SHAPE, "-D 600")
    for result in run.results:
        assert result["stonewall"]["hit"] is False and result["operations"] == 32


def test_a_deadline_of_zero_minutes_is_none(iokernel):
    run = iokernel.good(SHAPE, "-T 0")
    assert run.document["deadlineReached"] is False and len(run.results) == 2


@pytest.fixture(scope="session")
def counter(tmp_path_factory):
    """A preloaded library that leaves one letter per system call of interest in a file."""
    folder = tmp_path_factory.mktemp("counter")
    source = folder / "counter.c"
    source.write_text(r"""
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <fcntl.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void count(char letter) {
            static int (*opener)(const char *, int, ...);
            if (!opener) opener = dlsym(RTLD_NEXT, "open");
            int fd = opener(getenv("COUNTER"), O_WRONLY | O_APPEND | O_CREAT, 0600);
            if (fd >= 0 && write(fd, &letter, 1) == 1) close(fd);
        }
        int fsync(int fd) { count('f'); return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd); }
        ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
            ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
            count('w'); return real(fd, b, n, o);
        }
        off_t lseek(int fd, off_t o, int w) {
            count('s'); return ((off_t (*)(int, off_t, int))dlsym(RTLD_NEXT, "lseek"))(fd, o, w);
        }
    """)
    library = folder / "counter.so"
    done = subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no shared libraries can be built here")
    return library


@pytest.mark.parametrize(
    "options, writes, syncs",
    [
        ([], 32, 0),
        (["-e"], 32, 2),  # one per task at the end of the phase
        (["-Y"], 32, 32),  # exactly one per write
        (["-Y", "-e"], 32, 34),
    ],
)
def test_number_of_writes_and_fsyncs(iokernel, counter, options, writes, syncs):
    log = iokernel.path("calls")
    # 2 tasks x 64 KiB / 4 KiB = 32 writes
    run = iokernel.good(
        SHAPE, "-w", *options, env={**os.environ, "LD_PRELOAD": str(counter), "COUNTER": str(log)}
    )
    calls = log.read_text()
    assert calls.count("w") == writes and calls.count("f") == syncs
    assert run.results[0]["fsyncLatency"]["count"] == (32 if "-Y" in options else 0)
    assert run.parameters["fsyncsPerWrite"] == ("-Y" in options)


@pytest.fixture
def uring(iokernel):
    if not iokernel("--capabilities").document["io_uring"]:
        pytest.skip("the kernel does not offer io_uring to this process")
    return iokernel


@pytest.mark.parametrize("depth", [2, 7, 64])
@pytest.mark.parametrize("options", [[], ["-z"], ["-F"], ["-Y"], ["-F", "-z", "-Y"]])
def test_queue_depth_moves_the_same_data(uring, depth, options):
    run = uring.good("-n 2 -t 4k -b 64k -s 2 -w -r -R --queue-depth", depth, *options)
    write, read = run.results
    # 2 tasks x 2 segments x 16 transfers
    assert write["operations"] == read["operations"] == 64 and read["verifyErrors"] == 0
    assert write["transferLatency"]["count"] == 64
    assert write["fsyncLatency"]["count"] == (64 if "-Y" in options else 0)
    assert run.parameters["queueDepth"] == depth


def test_queue_depth_with_stonewall_and_wear_out(uring):
    run = uring.good("-n 2 -t 4k -b 4m -w --queue-depth 4 -D 0.001 --stonewall-wear-out")
    wall = run.results[0]["stonewall"]
    assert wall["operationsMin"] == wall["operationsMax"]


def test_sessions(iokernel):
    assert iokernel.good(SHAPE).results[0]["sessionLayout"] == "own"
    assert iokernel.good(SHAPE, "--session shared").results[0]["sessionLayout"] == "shared"
