"""A wall clock that jumps decides nothing."""

from __future__ import annotations

import os
import subprocess

import pytest

from tiercel.programs import program

#: A library in front of libc: each reading of the wall clock is STEP seconds later than the one before.
JUMPS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
    static int (*real)(clockid_t, struct timespec *);
    static long readings;
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, t);
    if (id == CLOCK_REALTIME)
        t->tv_sec += STEP * readings++;
    return status;
}
"""


@pytest.fixture
def jumping(tmp_path):
    """A function of a step in seconds: the environment of a program whose wall clock jumps by it."""

    def environment(step):
        source, library = tmp_path / "jumps.c", tmp_path / "jumps.so"
        source.write_text(JUMPS.replace("STEP", f"({step})"))
        compiler = program("cc") or "cc"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        return {**os.environ, "LD_PRELOAD": str(library)}

    return environment


def test_a_jump_of_the_wall_clock_does_not_end_a_run(iokernel, jumping):
    run = iokernel.good("-w -r -i 6 -T 60 -t 4k -b 8k -o f", env=jumping(7200))
    assert run.document["deadlineReached"] is False
    assert len(run.results) == 12  # six repetitions of a write and a read
    assert run.document["finished"] - run.document["began"] >= 7200  # the clock did jump


@pytest.mark.parametrize("step", [7200, -7200])
def test_a_jump_changes_no_duration(iokernel, jumping, step):
    for words in ("-w -r -i 2 -T 60 -t 4k -b 8k -o f", "md -n 20 -d d -F -C -T -r"):
        run = iokernel.good(words, env=jumping(step))
        times = [result.get("totalTime", result.get("time")) for result in run.results]
        assert times and all(0 < seconds < 3600 for seconds in times), times
