"""Numbers of hand-made traces, each recounted beside it: overlap, phases, other folders, cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.traces.conftest import Event, call, compute, frame_of, hashed
from tiercel.engines import Measurement
from tiercel.results.raw import RawRun
from tiercel.traced.cost import cost_of
from tiercel.traced.row import numbers_of
from tiercel.traces import IOFrame

__all__ = ["frame_of"]

FrameOf = Callable[[list[Event]], IOFrame]
DATA = "/scratch/tiercel-run-r1/data"
MS = 1000
#: The clock at which `call(..., at=0)` begins: see tests/traces/conftest.py.
ZERO = 1.0


def raw_run(*argv: str) -> RawRun:
    run = {
        "run": "r1", "configuration": "c", "site": "s", "study": "t", "experiment": "e", "name": "w",
        "workload": {"title": "W"}, "storage": {"name": "main", "label": "", "type": "xfs", "medium": "disk"},
        "layers": [], "engine": "dlkernel", "engine_version": "1", "launcher": "fork", "nodes": 1,
        "processes_per_node": 1, "repetition": 0, "twin": "a", "traced": True,
    }  # fmt: skip
    steps = [{"argv": list(argv)}] if argv else []
    return RawRun(Path("/raw/r1"), run, {"status": "ok", "reason": "", "steps": steps}, {})


def numbers(frame: IOFrame, *measurements: Measurement, argv: tuple[str, ...] = ()) -> tuple[Any, Any]:
    return numbers_of({"reason": ""}, frame, raw_run(*argv), list(measurements))


def test_io_behind_computation(frame_of: FrameOf) -> None:
    """Reads at 0-40 and 60-80 ms, computation at 30-70 ms: 20 of 60 ms of I/O are hidden."""
    frame = frame_of(
        [
            hashed("f", f"{DATA}/train/a.npz"),
            call("pread", 0, 40 * MS, fhash="f", ret=3_000_000, offset=0),
            compute(30 * MS, 40 * MS),
            call("pread", 60 * MS, 20 * MS, fhash="f", ret=1_000_000, offset=3_000_000),
        ]
    )
    row, groups = numbers(frame)
    assert row["part"] == "whole trace" and row["files"] == 1
    assert row["io_s"] == pytest.approx(0.060) and row["compute_s"] == pytest.approx(0.040)
    assert row["overlapped_io_s"] == pytest.approx(0.020)
    assert row["nonoverlapped_io_s"] == pytest.approx(0.040)
    assert row["app_throughput"] == pytest.approx(4e6 / 0.040)
    assert row["system_throughput"] == pytest.approx(4e6 / 0.060)
    # 80 ms in 200 bins of 0.4 ms: reading fills bins 0 to 99 and 150 to 199.
    (reading,) = (lane for lane in json.loads(row["timeline"])["lanes"] if lane["kind"] == "read")
    assert reading["busy"] == [100] * 100 + [0] * 50 + [100] * 50
    assert [group["group"] for group in groups] == ["train/a.npz"]


@pytest.mark.parametrize("upwards", [True, False])
def test_sums_do_not_hang_on_the_order_of_the_files(
    frame_of: FrameOf, monkeypatch: pytest.MonkeyPatch, upwards: bool
) -> None:
    """The database answers in any order. 0.1 + 0.2 + 0.3 s is 0.6000000000000001 from the left and 0.6
    from the right: figures that are made again must not differ by it."""
    events: list[Event] = []
    for number, name in enumerate("abc", 1):
        events += [
            hashed(name, f"{DATA}/data.{number}"),
            call("pwrite", number * 1000 * MS, number * 100 * MS, fhash=name, ret=10, offset=0),
        ]
    query = IOFrame.query

    def answer(*words: Any, **more: Any) -> pd.DataFrame:
        table = query(*words, **more)
        return table.sort_values("file", ascending=upwards) if "file" in table else table

    monkeypatch.setattr(IOFrame, "query", answer)
    _, (group,) = numbers(frame_of(events))
    assert group["files"] == 3 and group["write_s"] == 0.1 + 0.2 + 0.3


def test_a_phase_in_pieces_has_the_calls_of_all_of_them(frame_of: FrameOf) -> None:
    """Two repeats of 10 ms, from 0 and from 30 ms on; what is done between them (files made, and synced) is
    none of theirs. By their sum alone the phase ended at 20 ms, with half of what it read."""
    frame = frame_of(
        [
            hashed("f", f"{DATA}/a"),
            call("pread", 1 * MS, 2 * MS, fhash="f", ret=10, offset=0),
            call("fsync", 15 * MS, 10 * MS, fhash="f", ret=0),
            call("pread", 31 * MS, 2 * MS, fhash="f", ret=10, offset=0),
        ]
    )
    pieces = ((ZERO, 0.01), (ZERO + 0.03, 0.01))
    read = Measurement("read", began=ZERO, total_time=0.02, operations=2, bytes_moved=20, pieces=pieces)
    row, _ = numbers(frame, read)
    assert (row["calls"], row["reads"], row["bytes_read"]) == (2, 2, 20)
    assert row["measured_s"] == pytest.approx(0.02) and row["warnings"] == []


@pytest.mark.parametrize("repeated", [False, True])
def test_what_the_next_repeat_reads_is_not_read_again(frame_of: FrameOf, repeated: bool) -> None:
    """The same 2 MiB of one name twice: read again in one phase; in two repeats they are new files."""
    size = 2 << 20
    frame = frame_of(
        [
            hashed("f", f"{DATA}/a"),
            call("pread", 1 * MS, 20 * MS, fhash="f", ret=size, offset=0),
            call("pread", 41 * MS, 20 * MS, fhash="f", ret=size, offset=0),
        ]
    )
    pieces = ((ZERO, 0.03), (ZERO + 0.04, 0.03)) if repeated else ()
    read = Measurement("read", began=ZERO, total_time=0.07, operations=2, bytes_moved=2 * size, pieces=pieces)
    row, _ = numbers(frame, read)
    assert ("read-again" in {f["rule"] for f in json.loads(row["findings"])}) is not repeated


def test_phases_part_the_calls(frame_of: FrameOf) -> None:
    """Setup at 0-10 ms, measured from 10 ms for 10 ms, the next setup from 20.5 ms on: between them the
    engine makes ready, which is nobody's."""
    frame = frame_of(
        [
            hashed("f", f"{DATA}/a"),
            call("pwrite", 0, 5 * MS, fhash="f", ret=10, offset=0),
            call("pread", 10 * MS, 2 * MS, fhash="f", ret=10, offset=0),
            call("pread", 19 * MS, 1 * MS, fhash="f", ret=10, offset=0),
            call("fsync", 20 * MS + 100, 300, fhash="f", ret=0),
            call("unlink", 20 * MS + 600, 1 * MS, fhash="f", ret=0),
        ]
    )
    row, _ = numbers(
        frame,
        Measurement("write", role="setup", began=ZERO, total_time=0.01),
        Measurement("read", began=ZERO + 0.01, total_time=0.01, operations=2, bytes_moved=20),
        Measurement("remove", role="setup", began=ZERO + 0.0205, total_time=0.01),
    )
    assert row["part"] == "measured phases" and row["measured_s"] == pytest.approx(0.01)
    assert (row["calls"], row["reads"], row["writes"], row["bytes_read"]) == (2, 2, 0, 20)
    assert row["warnings"] == []


def test_short_phases_are_not_longer_than_their_clock(frame_of: FrameOf) -> None:
    """Reads of 20 microseconds, after each of which the engine syncs the next file for 300: I/O is at
    most all of a phase."""
    events: list[Event] = [hashed("f", f"{DATA}/a")]
    for repeat in range(3):
        events.append(call("pread", repeat * MS, 18, fhash="f", ret=10, offset=0))
        events.append(call("fsync", repeat * MS + 30, 300, fhash="f", ret=0))
    pieces = tuple((ZERO + repeat / 1000, 20e-6) for repeat in range(3))
    read = Measurement("read", began=ZERO, total_time=60e-6, operations=3, bytes_moved=30, pieces=pieces)
    row, _ = numbers(frame_of(events), read)
    assert (row["calls"], row["syncs"], row["warnings"]) == (3, 0, [])
    assert 0 < row["io_s"] <= row["measured_s"] == pytest.approx(60e-6)


def test_pauses_between_repeats_are_no_time_of_the_processes(frame_of: FrameOf) -> None:
    """Small reads in two repeats of 200 ms, with a pause of 4 s between: all of the time, not 9 % of it."""
    events: list[Event] = [hashed("f", f"{DATA}/a")]
    for begin in (0, 4000 * MS):
        events += [
            call("pread", begin + n * MS, 1 * MS, fhash="f", ret=4096, offset=n * 4096) for n in range(200)
        ]
    pieces = ((ZERO, 0.2), (ZERO + 4.0, 0.2))
    read = Measurement("read", began=ZERO, total_time=0.4, operations=400, bytes_moved=1 << 14, pieces=pieces)
    row, _ = numbers(frame_of(events), read)
    (small,) = [f["sentence"] for f in json.loads(row["findings"]) if "move less than 1 MiB" in f["sentence"]]
    assert "400 ms in calls, 100 % of the processes' time" in small


def test_reads_of_memory_are_as_fast_as_memory(frame_of: FrameOf) -> None:
    """That they did not come from the storage was said of a storage that is memory."""
    reads = [call("pread", n * 100, 5, fhash="f", ret=1 << 20, offset=n << 20) for n in range(64)]
    frame = frame_of([hashed("f", f"{DATA}/a"), *reads])
    read = Measurement("read", began=ZERO, total_time=0.01, operations=64, bytes_moved=64 << 20)
    for medium, said in (("disk", True), ("memory", False)):
        raw = raw_run()
        raw.run["storage"]["medium"] = medium
        row, _ = numbers_of({"reason": ""}, frame, raw, [read])
        assert ("cached-reads" in {f["rule"] for f in json.loads(row["findings"])}) is said


@pytest.mark.parametrize(("nodes", "calls"), [(1, 1), (2, 2)])
def test_clocks_of_several_nodes_differ(frame_of: FrameOf, nodes: int, calls: int) -> None:
    """A call 3 ms after the end, where the nodes' clocks differ by 5 ms: in time, for all that is known."""
    frame = frame_of(
        [
            hashed("f", f"{DATA}/a"),
            call("pread", 1 * MS, 2 * MS, fhash="f", ret=10, offset=0),
            call("pread", 13 * MS, 2 * MS, fhash="f", ret=10, offset=0),
        ]
    )
    raw = raw_run()
    raw.run["nodes"] = nodes
    read = Measurement("read", began=ZERO, total_time=0.01, operations=1, bytes_moved=10, clock_skew=0.005)
    row, _ = numbers_of({"reason": ""}, frame, raw, [read])
    assert row["calls"] == calls


def test_lost_bytes_are_said(frame_of: FrameOf) -> None:
    frame = frame_of([hashed("f", f"{DATA}/a"), call("pread", 0, 5, fhash="f", ret=10, offset=0)])
    row, _ = numbers(frame, Measurement("read", began=ZERO, total_time=0.01, operations=1, bytes_moved=1000))
    assert row["warnings"] == [
        "the trace holds 10 of the 1,000 bytes of operation read: the rest was lost, or moved by calls that "
        "the tracer does not see (io_uring, mmap)"
    ]


def test_a_process_without_a_file_is_said(frame_of: FrameOf) -> None:
    """Two processes made 10 files each. The trace of one is lost: 10 opens and 10 closes of 20 creates."""
    phase = Measurement("file-create", began=ZERO, total_time=0.01, operations=20)

    def made_by(pid: int) -> list[Event]:
        events = [hashed(f"f{i}", f"{DATA}/{pid}.{i}", pid=pid) for i in range(10)]
        for i in range(10):
            events.append(call("open", i * 100, 20, pid=pid, fhash=f"f{i}", ret=3))
            events.append(call("close", i * 100 + 50, 20, pid=pid, fhash=f"f{i}", ret=0))
        return events

    both = raw_run()
    both.run["processes_per_node"] = 2
    row, _ = numbers_of({"reason": ""}, frame_of(made_by(10) + made_by(11)), both, [phase])
    assert (row["reason"], row["warnings"], row["calls"]) == ("", [], 40)
    row, _ = numbers_of({"reason": ""}, frame_of(made_by(10)), both, [phase])
    assert row["reason"] == "the trace holds calls of 1 of the run's 2 processes"
    assert row["warnings"] == [
        "the trace holds calls for at most 10 of the 20 operations of file-create: the rest was lost"
    ]
    # Collective calls: some processes move the data of all.
    both.run["workload"]["collective"] = True
    row, _ = numbers_of({"reason": ""}, frame_of(made_by(10)), both, [])
    assert row["reason"] == ""


def test_files_elsewhere_are_counted_and_left_out(frame_of: FrameOf) -> None:
    frame = frame_of(
        [
            hashed("a", f"{DATA}/x/out.10.bin"),
            hashed("b", f"{DATA}/x/out.20.bin"),
            hashed("c", "/usr/lib/python3/os.py"),
            hashed("d", f"{DATA}-other/file"),
            call("write", 0, 5, fhash="a", ret=100),
            call("write", 5, 5, fhash="b", ret=100),
            call("read", 10, 5, fhash="c", ret=1_000_000),
            call("read", 20, 5, fhash="d", ret=1_000_000),
        ]
    )
    row, groups = numbers(frame, argv=("env", f"DFTRACER_DATA_DIR={DATA}/", "program"))
    assert (row["files"], row["files_elsewhere"]) == (2, 2)
    assert (row["calls"], row["bytes_written"], row["bytes_read"]) == (2, 200, 0)
    assert [(g["group"], g["files"]) for g in groups] == [("x/out.*.bin", 2)]


def test_cost_over_several_phases() -> None:
    """Traced: 100 creates in 1 s, 400 stats in 1 s. Untraced run 1 does 200/s and 800/s: the same work in
    1 s instead of 2, twice the rate. Run 2 does 100/s and 200/s: 1 s + 2 s instead of 2, two thirds."""

    def row(run: str, phase: int, rate: float, seconds: float, traced: bool, **more: Any) -> dict[str, Any]:
        return {
            "run": run, "configuration": "c", "role": "measured", "origin": "measured", "phase": phase,
            "operation": ("file-create", "file-stat")[phase], "operation_rate": rate, "bandwidth": None,
            "samples_per_second": None, "total_time": seconds, "traced": traced, "flags": [], **more,
        }  # fmt: skip

    table = pd.DataFrame(
        [
            row("t", 0, 100.0, 1.0, True), row("t", 1, 400.0, 1.0, True),
            row("1", 0, 200.0, 9.0, False), row("1", 1, 800.0, 9.0, False),
            row("2", 0, 100.0, 9.0, False), row("2", 1, 200.0, 9.0, False),
            # Not counted: a number that is not valid, a phase that is missing, another configuration.
            row("3", 0, 1.0, 9.0, False, flags=["cache-not-cold"]), row("3", 1, 1.0, 9.0, False),
            row("4", 0, 1.0, 9.0, False),
            row("5", 0, 1.0, 9.0, False, configuration="d"),
        ]
    )  # fmt: skip
    cost = cost_of("t", "c", table)
    assert cost["rate_metric"] == "operation_rate" and cost["untraced_runs"] == 2
    assert cost["traced_rate"] == pytest.approx(250)  # 500 operations in 2 s
    assert (cost["cost_low"], cost["cost_high"]) == pytest.approx((2 / 3, 2.0))
    assert cost["cost"] == pytest.approx((2 / 3 + 2) / 2)
    assert cost["cost_coverage"] == pytest.approx(1 / 3)
    assert cost_of("unknown", "c", table)["cost"] is None


def test_missing_sizes_and_durations_are_missing_in_every_table(frame_of: FrameOf) -> None:
    """One of two reads has no size, and one no duration: what is summed over them is unknown, and so is the
    group's. The write's 10 bytes are known."""
    unknown = call("pread", 5 * MS, 1 * MS, fhash="f", offset=0)
    untimed = call("pread", 9 * MS, 1 * MS, fhash="f", ret=5, offset=0)
    del untimed["dur"]
    frame = frame_of([hashed("f", f"{DATA}/a"), unknown, untimed,
                      hashed("g", f"{DATA}/b"),
                      call("pwrite", 20 * MS, MS, fhash="g", ret=10, offset=0)])  # fmt: skip
    read = Measurement("read", began=ZERO, total_time=0.03, operations=2, bytes_moved=20)
    row, groups = numbers(frame, read)
    assert (row["bytes_read"], row["read_s"], row["metadata_share"]) == (None, None, None)
    assert row["bytes_written"] == 10 and not any("rest was lost" in w for w in row["warnings"])
    by_name = {group["group"]: group for group in groups}
    assert (by_name["a"]["bytes_read"], by_name["a"]["read_s"], by_name["a"]["input_bytes"]) == (
        None,
        None,
        None,
    )
    assert (by_name["b"]["bytes_read"], by_name["b"]["bytes_written"], by_name["b"]["size"]) == (0, 10, 10)
