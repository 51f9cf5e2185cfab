"""A tour under the address and undefined behaviour sanitizers, which end the program with a message."""

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        [
            "-n",
            3,
            "-t",
            "4k",
            "-b",
            "64k",
            "-s",
            2,
            "--phases",
            "w,rz,wz,w,r",
            "-R",
            "-W",
            "-Y",
            "--per-rank",
        ],
        [
            "-n",
            3,
            "-F",
            "-u",
            "-t",
            "24",
            "-b",
            "240",
            "-z",
            "-w",
            "-r",
            "-R",
            "-C",
            "-O",
            "numTasksOnNode0=1,stoneWallingWearOut=1",
            "-D",
            "5",
            "-i",
            2,
            "-e",
            "-g",
        ],
        [
            "-n",
            2,
            "-F",
            "-t",
            "4k",
            "-b",
            "64k",
            "--queue-depth",
            8,
            "-w",
            "-r",
            "-R",
            "-Y",
            "--evict",
            "-Z",
            "-Z",
        ],
        [
            "md",
            "--processes",
            3,
            "-n",
            30,
            "-z",
            2,
            "-b",
            2,
            "-w",
            13,
            "-e",
            9,
            "-X",
            "-y",
            "-N",
            1,
            "-R",
            "--rename",
            "-d",
            "d",
        ],
        ["md", "--processes", 2, "-n", 12, "-I", 4, "-F", "-d", "d", "-i", 2],
    ],
)
def test_good_runs(sanitized, arguments):
    if "--queue-depth" in arguments and not sanitized("--capabilities").document["io_uring"]:
        pytest.skip("the kernel does not offer io_uring to this process")
    run = sanitized.good(*arguments)
    assert run.stderr == ""


@pytest.mark.parametrize(
    "arguments, status",
    [
        (["-t", "4q"], 2),
        (["-q"], 2),
        (["-O", "summaryFile"], 2),
        (["-n", 2, "-r", "-t", "4k", "-b", "8k", "-o", "missing"], 1),
        (["-n", 2, "-w", "-t", "4k", "-b", "8k", "-o", "/dev/full"], 1),
        (["md", "-n", 3, "-T", "-d", "missing"], 1),
        (["md", "-n", 3, "-t"], 2),
    ],
)
def test_bad_runs(sanitized, arguments, status):
    run = sanitized(*arguments)
    assert run.status == status and run.stderr.count("\n") == 1
