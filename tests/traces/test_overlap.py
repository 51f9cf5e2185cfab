from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.traces.test_real_traces import busiest_thread_time
from tiercel.traces import IOFrame
from tiercel.traces.analysis.overlap import evidence

from .conftest import Event, call, compute

Make = Callable[[list[Event]], IOFrame]


def read(at: int, took: int, size: int, pid: int = 10, tid: int | None = None) -> Event:
    return call("pread", at, took, pid=pid, tid=tid, ret=size, count=size, offset=0, fname="/d/f")


def test_one_rank(frame_of: Make) -> None:
    # I/O in [0, 10) and [20, 30) s, computation in [5, 25) s: 5 s + 5 s of I/O are hidden, 10 s are not;
    # of 20 s of computation 10 are alone. 200 bytes: 20 B/s felt by the application, 10 B/s of the system.
    second = 1_000_000
    frame = frame_of(
        [read(0, 10 * second, 100), compute(5 * second, 20 * second), read(20 * second, 10 * second, 100)]
    )
    job = frame.overlap().loc["all"]
    assert job["io_time"] == 20
    assert job["overlapped_io"] == 10
    assert job["nonoverlapped_io"] == 10
    assert job["compute"] == 20
    assert job["compute_alone"] == 10
    assert job["app_throughput"] == 20
    assert job["system_throughput"] == 10
    assert frame.job_time == 30


def test_threads_of_a_rank_count_once(frame_of: Make) -> None:
    # Two threads read in [0, 4) and [2, 6): the rank does I/O for 6 s, not 8.
    frame = frame_of([read(0, 4_000_000, 1, tid=1), read(2_000_000, 4_000_000, 1, tid=2)])
    assert frame.overlap().loc[0, "io_time"] == 6


def test_another_ranks_computation_hides_nothing(frame_of: Make) -> None:
    # Rank 0 reads in [0, 4) while rank 1 computes in [0, 4) and reads in [2, 6).
    # Rank 0: 4 s of I/O, all felt. Rank 1: 4 s, of which 2 hidden by its own computation.
    # Job: some rank does I/O in [0, 6) = 6 s; some rank feels it in [0, 4) and [4, 6) = 6 s.
    frame = frame_of(
        [read(0, 4_000_000, 8, pid=10), compute(0, 4_000_000, pid=11), read(2_000_000, 4_000_000, 4, pid=11)]
    )
    table = frame.overlap()
    assert table["io_time"].tolist() == [4, 4, 6]
    assert table["nonoverlapped_io"].tolist() == [4, 2, 6]
    assert table["overlapped_io"].tolist() == [0, 2, 0]
    assert table["bytes"].tolist() == [8, 4, 12]
    assert table.loc["all", "system_throughput"] == 2  # 12 B in 6 s


def test_ranks_in_parallel_add_up(frame_of: Make) -> None:
    # Two ranks read 10 B each in the same 2 s: the job moves 10 B/s, each rank 5 B/s.
    frame = frame_of([read(0, 2_000_000, 10, pid=10), read(0, 2_000_000, 10, pid=11)])
    assert frame.overlap()["system_throughput"].tolist() == [5, 5, 10]


def test_io_that_nobody_feels_has_no_application_throughput(frame_of: Make) -> None:
    frame = frame_of([compute(0, 10_000_000), read(1_000_000, 2_000_000, 6)])
    assert frame.overlap()["app_throughput"].isna().all()
    numbers = evidence(frame)
    assert numbers["app_throughput_bytes_s"] is None  # strict JSON: neither NaN nor infinity
    assert numbers["system_throughput_bytes_s"] == 3


def test_metadata_is_io_and_waiting_is_not(frame_of: Make) -> None:
    # open takes 1 s of I/O time without bytes; fork and the spans of the program take none.
    frame = frame_of(
        [
            call("open", 0, 1_000_000, fname="/d/f"),
            read(1_000_000, 1_000_000, 4),
            call("fork", 2_000_000, 5_000_000),
            call("DLIOBenchmark.run", 0, 9_000_000, "dlio_benchmark"),
        ]
    )
    assert frame.overlap().loc["all", ["io_time", "bytes"]].tolist() == [2, 4]


def test_buffered_calls_alone(frame_of: Make) -> None:
    # fread returns items: 3 of 4 bytes each. Without POSIX calls they are the I/O, and a warning says so.
    frame = frame_of([call("fread", 0, 1_000_000, "STDIO", ret=3, size=4, count=3, fname="/d/f")])
    numbers = evidence(frame)
    assert numbers["posix_bytes"] == 12
    assert any("stdio" in sentence for sentence in numbers["warnings"])


def test_no_events_at_all(frame_of: Make) -> None:
    frame = frame_of([call("open", 0, 5)]).select(filter="false")
    numbers = evidence(frame)
    assert (numbers["events"], numbers["posix_bytes"], numbers["io_s"], numbers["ranks"]) == (0, 0, 0, 0)


def test_ranks_and_filter(frame_of: Make) -> None:
    frame = frame_of(
        [read(0, 1_000_000, 8, pid=10), read(0, 1_000_000, 4, pid=11), compute(0, 500_000, pid=11)]
    )
    assert frame.overlap(rank=1)["bytes"].tolist() == [4, 4]
    # A filter chooses I/O; computation stays whole.
    assert frame.overlap(rank=1, filter="size = 4").loc[1, "overlapped_io"] == 0.5


def test_busiest_thread(frame_of: Make) -> None:
    # Second 0: thread 1 spends 0.3 s, thread 2 spends 0.2 + 0.2 s: 0.4. Second 1: 0.1. A call that starts in
    # second 0 and ends in second 1 belongs to second 0.
    frame = frame_of([
        read(0, 300_000, 1, tid=1), read(100_000, 200_000, 1, tid=2), read(900_000, 200_000, 1, tid=2),
        read(1_500_000, 100_000, 1, tid=1),
    ])  # fmt: skip
    assert busiest_thread_time(frame) == pytest.approx(0.5)


def test_little_memory_gives_the_same(frame_of: Make) -> None:
    """Ranks are then taken one after the other; threads, computation and turns as in a real job."""
    events = []
    for pid in range(10, 17):
        for i in range(60):
            events.append(read(100 * i + 13 * pid, 40 + pid, pid + i, pid, tid=i % 3 + 1))
            events.append(compute(130 * i, 70 + pid, pid))
    frame = frame_of(events)
    for memory in (1, 3 * 160 * 120, 1 << 30):
        assert replace(frame, memory=memory).overlap().equals(frame.overlap())
