"""What an aggregate hides: slow processes and pauses, by hand and with real processes that are stopped."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tiercel.engines.iokernel import _began, _data_measurement
from tiercel.engines.iokernel_within import within_phase
from tiercel.engines.within import longest_pause, slowest_process
from tiercel.programs import program


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ({}, None),
        ({0: 5.0}, None),  # alone it is as fast as itself
        ({0: 100.0, 1: 50.0}, (1, 0.5)),
        # The others are 90, 100, 110: their median is 100; the slowest is no part of what it is held against.
        ({0: 110.0, 1: 90.0, 2: 25.0, 3: 100.0}, (2, 0.25)),
        ({0: 0.0, 1: 0.0}, None),
    ],
)
def test_the_slowest_process_is_held_against_the_others(speeds, expected):
    assert slowest_process(speeds) == expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ([], 0.0),
        ([0, 0], 0.0),
        ([4, 4, 4], 0.0),
        ([0, 0, 4, 0, 4, 0, 0, 0], 0.1),  # before the first and after the last nothing pauses
        ([4, 0, 0, 0, 4, 0, 4], 0.3),
    ],
)
def test_a_pause_lies_between_operations(ended, expected):
    assert longest_pause(ended, 0.1) == pytest.approx(expected)


def test_repeats_of_a_phase_are_told_as_one():
    def repeat(amounts, stops, buckets, least, most, interval=0.1):
        return {
            "access": "read",
            "timeSeries": {"intervalSeconds": interval, "bytes": amounts, "operations": [1] * len(amounts)},
            "perRank": [
                {"rank": rank, "bytes": 100, "openStart": 1.0, "closeStop": 1.0 + stop}
                for rank, stop in enumerate(stops)
            ],
            "transferLatency": {"min": least, "max": most, "buckets": buckets},
        }

    one = repeat([10, 20], [1.0, 2.0], [[1.0, 2.0, 5], [2.0, 4.0, 1]], 1.5, 3.0)
    two = repeat([30], [3.0, 2.0], [[1.0, 2.0, 2], [4.0, 8.0, 1]], 1.2, 5.0)
    both = within_phase([one, two])
    assert both.amounts == (10.0, 20.0, 30.0)
    # 200 bytes each: in 1 + 3 s and in 2 + 2 s
    assert both.speeds == {0: 50.0, 1: 50.0}
    assert both.durations == ((1.2, 2.0, 7), (2.0, 4.0, 1), (4.0, 5.0, 1))
    # Intervals of two lengths cannot be put behind one another.
    assert within_phase([one, repeat([30], [1.0], [], None, None, interval=0.2)]).amounts == ()
    assert within_phase([one]).speeds == {0: 100.0, 1: 50.0}


def test_a_phase_begins_with_its_first_process():
    """Process 0 left the barrier last, 3 ms after process 1, which had opened its file by then."""
    ranks = [
        {"rank": 0, "barrierExit": 0.003, "openStart": 0.0031},
        {"rank": 1, "barrierExit": 0.0, "openStart": 0.0001},
    ]
    assert _began({"began": 1000.003, "perRank": ranks}) == pytest.approx(1000.0001, abs=1e-6)
    assert _began({"began": 1000.003}) == 1000.003  # of thousands of processes there are none
    assert _began({}) is None


def _stopped_run(folder: Path, chosen: slice):
    """Return the result of two processes that write for 4.5 s, of which some are stopped for 3.5 s."""
    engine = program("iokernel")
    if engine is None:
        pytest.skip("no iokernel")
    argv = [str(engine), "-n", "2", "-a", "POSIX", "-t", "4096", "-b", "268435456", "-s", "1", "-F", "-Y",
            "-D", "4.5", "--phases", "w", "--per-rank", "-o", str(folder / "data"),
            "--summary-file", str(folder / "main.json")]  # fmt: skip
    running = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    try:
        children: list[int] = []
        while len(children) < 2 or len(list(folder.glob("data*"))) < 2:
            found = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
            children = sorted(map(int, found))
            time.sleep(0.01)
        time.sleep(0.2)
        for child in children[chosen]:
            os.kill(child, signal.SIGSTOP)
        time.sleep(3.5)
        for child in children[chosen]:
            os.kill(child, signal.SIGCONT)
        assert running.wait(timeout=60) == 0
    finally:
        running.kill()
        running.wait()
    (result,) = json.loads((folder / "main.json").read_text())["tests"][0]["Results"]
    return _data_measurement(result, 0, "measured")


def test_a_stopped_process_is_the_slowest(tmp_path):
    """Stopped for 3.5 of 4.5 s it does a quarter of the other's work, or more where two that sync together
    are faster than one alone; the phase itself goes on."""
    found = _stopped_run(tmp_path, slice(0, 1))
    assert found.slowest_rank == 0 and found.slowest_process < 2 / 3
    assert found.longest_pause < 3.0


def test_all_stopped_is_a_pause(tmp_path):
    found = _stopped_run(tmp_path, slice(None))
    assert found.longest_pause >= 3.0  # of 3.5 s, in whole intervals of 0.1 s
