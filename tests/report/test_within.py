"""Findings on what an aggregate hides: told where nearly every run shows it, and nowhere else."""

import pytest
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.engines.within import Within
from tiercel.report.data import Results
from tiercel.report.evidence import SHARES, curve, evidence, spread
from tiercel.report.findings.for_engineers_within import busy_clients, pauses, stragglers
from tiercel.results.raw import read_json
from tiercel.results.validity import FLAGS
from tiercel.study.load import load_study


def results(tmp_path, runs, storage="nvme", processes=4):
    """Return results of one number with these columns in each of its runs; a phase lasts 10 s."""
    data = Synthetic(storages=(storage,), processes=(processes,))
    for i, columns in enumerate(runs):
        data.add(
            "scaling", "scientific", "Write", storage, processes, i, "a", [], operation="write",
            bandwidth=100.0 * MIB, operation_rate=100.0, total_time=10.0, latency_p50=0.01, **columns,
        )  # fmt: skip
    return Results.from_folder(data.write(tmp_path / "results"), study(), FLAGS)


def slow(share, rank=2):
    return {"slowest_process": share, "slowest_rank": rank}


def test_a_process_that_is_always_slow_is_named(tmp_path):
    (found,) = stragglers(results(tmp_path, [slow(0.5), slow(0.4), slow(0.5), slow(0.6)]))
    # The median of 0.4, 0.5, 0.5, 0.6.
    assert "Write on Node-local NVMe at 4 processes: 50 % (always process 2)" in found.sentence
    assert found.audience == "engineer" and found.evidence[0].runs


def test_another_one_each_time_is_told_apart(tmp_path):
    (found,) = stragglers(results(tmp_path, [slow(0.5, rank) for rank in (0, 1, 2, 3)]))
    assert "another process from run to run" in found.sentence


@pytest.mark.parametrize(
    "runs",
    [
        [slow(0.9)] * 5,
        [slow(0.3), slow(0.9), slow(0.95), slow(0.9), slow(0.9)],  # one of five is chance
        [slow(0.3), slow(0.3)],  # too few runs to say anything
        [{}] * 5,  # an engine that records nothing of it
    ],
)
def test_chance_and_silence_name_nobody(tmp_path, runs):
    assert not list(stragglers(results(tmp_path, runs)))


def test_a_pause_in_nearly_every_run_is_told(tmp_path):
    (found,) = pauses(results(tmp_path, [{"longest_pause": 2.0}] * 4 + [{"longest_pause": 0.0}]))
    assert "2 s, 20 % of the phase" in found.sentence


@pytest.mark.parametrize(
    "runs",
    [
        [{"longest_pause": 0.5}] * 5,  # 5 % of the phase
        [{"longest_pause": 2.0}] + [{"longest_pause": 0.1}] * 4,
        [{}] * 5,
    ],
)
def test_short_or_rare_pauses_are_not(tmp_path, runs):
    assert not list(pauses(results(tmp_path, runs)))


def test_operations_as_long_as_the_pause_are_no_pause(tmp_path):
    """20 operations of 0.2 s each take 4 s: 2 s without an end is what such operations look like."""
    found = results(tmp_path, [{"longest_pause": 2.0}] * 5)
    found.observations["latency_p50"] = 0.2
    assert not list(pauses(found))


def test_processes_that_compute_all_the_time_are_told(tmp_path):
    # 4 processes for 10 s have 40 s: 38 s of them are 95 %.
    busy = [{"cpu_user": 8.0, "cpu_system": 30.0}] * 3
    (found,) = busy_clients(results(tmp_path, busy))
    assert "at 4 processes: 95 %" in found.sentence
    assert not list(busy_clients(results(tmp_path / "memory", busy, storage="shm")))
    idle = [{"cpu_user": 1.0, "cpu_system": 10.0}] * 3
    assert not list(busy_clients(results(tmp_path / "idle", idle)))


def test_each_run_of_a_number_says_what_its_aggregate_hides(tmp_path):
    # 12 s of processors in 10 s of 4 processes are 30 %.
    busy = {"cpu_user": 8.0, "cpu_system": 4.0, "longest_pause": 1.5}
    found = evidence(results(tmp_path, [slow(0.5) | busy, {}]), tmp_path / "results")
    (number,) = found["numbers"].values()
    assert number["within"] == [
        "the slowest process (number 2) reached 50 % of the others' speed; nothing ended for 1.5 s; "
        "its processes computed 30 % of the time",
        "",
    ]


def test_each_run_has_the_speeds_of_its_processes(measured):
    """Of a real run: two processes, and the slowest of them is as slow as the table says."""
    told = Results.from_folder(measured.results, load_study("small", measured.root), FLAGS)
    found = evidence(told, measured.results)
    (one, *_) = [n for n in found["numbers"].values() if n["of"] == "read" and n["title"] == "cold-read"]
    table = told.observations.set_index(["run", "operation"])
    for run in one["runs"]:
        slowest, fastest = found["runs"][run]["speeds"]["read"]
        # Of two, the median of the others is the other one; three digits are kept.
        assert slowest / fastest == pytest.approx(table.loc[(run, "read"), "slowest_process"], rel=0.02)
        # Each read half of the bytes, and no longer than the whole took; as much longer as one began later.
        assert slowest * 2 >= 0.98 * table.loc[(run, "read"), "bandwidth"]
        raw = read_json(measured.results / "raw" / run / "read.json")["tests"][0]["Results"][0]
        own = [each["bytes"] / (each["closeStop"] - each["openStart"]) for each in raw["perRank"]]
        assert sorted(own) == pytest.approx([slowest, fastest], rel=0.02)


@pytest.mark.parametrize(
    ("count", "points", "shown"),
    [
        (0, 10, []),
        (1, 10, []),  # nothing to compare
        (3, 10, [1, 2, 3]),
        (101, 3, [1, 51, 101]),  # both ends, and evenly between them
    ],
)
def test_of_many_processes_some_are_drawn_the_slowest_always(count, points, shown):
    speeds = {rank: float(count - rank) for rank in range(count)}
    assert spread(Within("read", 0.1, (), speeds), points) == shown


def test_the_curve_of_a_histogram_is_read_off_its_buckets():
    # 99 operations of 1 to 2 ms, evenly; one of exactly 50 ms.
    phase = Within("read", 0.1, (), {}, durations=((1e-3, 2e-3, 99), (50e-3, 50e-3, 1)))
    found = curve(phase)
    # Beyond 99 % there is no operation but the longest.
    assert found[-1] == pytest.approx(50e-3) and len(found) == len([s for s in SHARES if s < 99]) + 1
    assert found[SHARES.index(0)] == pytest.approx(1e-3)
    assert found[SHARES.index(50)] == pytest.approx(1e-3 + 1e-3 * 50 / 99, rel=0.01)
    assert curve(Within("read", 0.1, (), {})) == []
