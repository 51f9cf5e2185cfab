"""Line by line: which warnings of IOR and mdtest invalidate a result."""

from __future__ import annotations

import pytest

from tiercel.engines.ior_text import parse_ior_text
from tiercel.engines.ior_warnings import invalidates


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: fsync(15) failed",
        "WARNING: fsync() failed",  # MPI-IO
        "ior WARNING: fsync() failed, errno 28, No space left on device (aiori-POSIX.c:848)",
        "WARNING: write(15, 0x7f, 1048576) failed Input/output error",
        "WARNING: read(15, 0x7f, 1048576) returned EOF prematurely",
        "WARNING: task 0, partial write(), -1 of 262144 bytes at offset 0",
        "WARNING: task 3, not retrying collective write()",
        "WARNING: too many retries -- aborting",
        "WARNING: Incorrect data on read (4 errors found).",
        "WARNING: overflow in errors counted",
        "WARNING: cannot use O_DIRECT",
        "WARNING: Lustre striping options set but not available",
        "WARNING: parsing the number 9999999999 to integer, this produced an overflow!",
        'WARNING: [RANK 003]: unlink() of file "/d/f" failed',
        "WARNING: unable to stat file /d/f",
        "WARNING: Backend doesn't support rename",
        "WARNING: what a later version warns of",  # unknown: no number is better than a wrong one
        "ERROR: close(15) failed, (aiori-POSIX.c:876)",
        "ior ERROR: open64() failed",
        "** error **",
        "0: WARNING: fsync(7) failed",  # srun --label
        "[1,0]<stderr>:WARNING: fsync(7) failed",  # mpirun --tag-output
        "[1,0]<stderr>: ior ERROR: open64() failed",
        "node03: ERROR: close(15) failed",
        "\x1b[31mWARNING: fsync(7) failed\x1b[0m",
        "node1: Process 3: FAILED in POSIX_Create, cannot open",
    ],
)
def test_what_invalidates(line: str) -> None:
    assert invalidates(line)


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: Expected aggregate file size       = 67108864",
        "WARNING: Using actual aggregate bytes moved = 33554432.",
        "WARNING: Maybe caused by deadlineForStonewalling",
        "WARNING: inconsistent file size by different tasks",
        "WARNING: task 0, partial write(), 4096 of 262144 bytes at offset 0",  # and continued
        'WARNING: The file "/d/f" exists already and will be overwritten',
        "WARNING: Backend returned error during statfs",
        "WARNING: Read bytes is 0, thus, a read test will actually just open/close",
        "WARNING: unable to use realpath() on file system",
        "WARNING: for write, task 3, total time is 1.5 (mean=0.7, stddev=0.1)",
        "0: WARNING: Expected aggregate file size       = 67108864",
        "api                 : POSIX",
    ],
)
def test_what_does_not(line: str) -> None:
    assert not invalidates(line)


def written(*warnings: str) -> str:
    """Return the output of a sound write, with lines before its row."""
    return ROWS.replace("write  3200", "".join(f"{line}\n" for line in warnings) + "write  3200")


#: 2 tasks x 32 MiB in 0.02 s: 3200 MiB/s.
ROWS = """IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Began               : Tue Jan  6 09:00:00 2026
Command line        : ior -w
Machine             : Linux node1
TestID              : 0

Options:
api                 : POSIX
segments            : 1
tasks               : 2
repetitions         : 1
xfersize            : 1 MiB
blocksize           : 32 MiB

Results:

access bw(MiB/s) IOPS    Latency(s) block(KiB) xfer(KiB) open(s)  wr/rd(s) close(s) total(s) iter
------ --------- ------- ---------- ---------- --------- -------- -------- -------- -------- ----
write  3200.00   3200.00 0.000300   32768      1024.00   0.000010 0.020000 0.000010 0.020000 0

Finished            : Tue Jan  6 09:00:00 2026
"""


def problems(*warnings: str) -> list[str]:
    (log,) = parse_ior_text(written(*warnings))
    return log.problems


def test_a_failed_fsync_is_no_bandwidth() -> None:
    assert problems() == []
    lost = "WARNING: fsync(15) failed"
    assert problems(lost, lost) == [lost, lost]


def test_a_file_that_is_shorter_than_what_was_written_has_lost_data() -> None:
    sizes = [
        "WARNING: Expected aggregate file size       = 67108864",
        "WARNING: Stat() of aggregate file size      = 33554432",
        "WARNING: Using actual aggregate bytes moved = 67108864",
    ]
    assert problems(*sizes) == ["IOR moved 67108864 bytes and its files hold 33554432"]
    assert "IOR moved 67108864 bytes and its files hold 33554432" in problems(
        *(f"[1,0]<stdout>: {s}" for s in sizes)
    )
    # Attribute caches: the tasks do not agree on the size, so it tells nothing.
    assert problems("WARNING: inconsistent file size by different tasks", *sizes) == []
