"""Numbers that cannot be true fail the run, with the figures."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tiercel.engines import Measurement
from tiercel.engines.plausibility import check_plausible, check_rate
from tiercel.errors import RunFailed

#: 100 bytes in 2 s are 50 B/s, 10 operations in 2 s are 5/s; tiercel saw commands of 1 s and 3 s.
GOOD = {
    "operation": "write", "bytes_moved": 100, "total_time": 2.0, "bandwidth": 50.0, "operations": 10,
    "operation_rate": 5.0, "latency_max": 1.0, "transfer_time": 1.9, "open_time": 0.1, "close_time": 0.0,
}  # fmt: skip
WALLS = [1.0, 3.0]


def check(walls: list[float] = WALLS, nodes: int = 1, **other: Any) -> None:
    check_plausible([Measurement(**{**GOOD, **other})], walls, nodes)


def test_what_can_be_true_passes() -> None:
    check()
    check(total_time=None, bandwidth=None, bytes_moved=None)  # unknown contradicts nothing
    check(bandwidth=50.9)  # 1.8 %: rounding
    check([], total_time=1.75e9, bandwidth=100 / 1.75e9, operation_rate=10 / 1.75e9)  # a simulation


@pytest.mark.parametrize(
    ("other", "figures"),
    [
        # What was "0.038 B/s, run ok": a duration of 1.75e9 s in commands of 4 s.
        ({"total_time": 1.75e9, "bandwidth": None, "operation_rate": None}, ["1.75e+09 s", "4 s"]),
        ({"total_time": 5.2, "bandwidth": 100 / 5.2, "operation_rate": 10 / 5.2}, ["5.2 s", "4 s"]),
        ({"latency_max": 9.0}, ["latency_max = 9 s"]),
        ({"bandwidth": 52.0}, ["52 B/s", "100 B in 2 s are 50 B/s"]),
        ({"operation_rate": 1000.0}, ["1000/s", "10 in 2 s are 5/s"]),
        ({"bandwidth": math.inf}, ["bandwidth = inf"]),
        ({"close_time": math.nan}, ["close_time = nan"]),
        ({"open_time": -0.5}, ["open_time = -0.5"]),
        ({"bytes_moved": -1, "bandwidth": -0.5}, ["bandwidth = -0.5"]),
        # A phase holds its operations: 1.9 s of transfers fit into 2 s, a slowest one of 2.3 s does not.
        ({"latency_max": 2.3}, ["latency_max = 2.3 s", "phase of 2 s"]),
        ({"transfer_time": 2.9}, ["transfer_time = 2.9 s", "phase of 2 s"]),
        ({"latency_p50": 0.5, "latency_p99": 0.2}, ["latency_p50 = 0.5 s", "latency_p99 = 0.2 s"]),
        ({"latency_mean": 1.5}, ["latency_mean = 1.5 s", "latency_max = 1 s"]),
        ({"resident_fraction": 7.5}, ["resident_fraction = 7.5"]),
        ({"operations": 2 * 10**12, "operation_rate": 1e12}, ["operation_rate = 1e+12 /s"]),
        # One node has one clock: 4 s and 2 % and a hundredth of a second are 4.09 s.
        ({"total_time": 4.1, "bandwidth": 100 / 4.1, "operation_rate": 10 / 4.1}, ["4.1 s", "4 s"]),
        ({"bytes_moved": 10**9, "total_time": 1e-6, "bandwidth": 1e15, "operation_rate": 1e7}, ["1e+15 B/s"]),
    ],
)  # fmt: skip
def test_a_contradiction_fails_with_the_figures(other: dict[str, Any], figures: list[str]) -> None:
    with pytest.raises(RunFailed) as raised:
        check(**other)
    for figure in figures:
        assert figure in str(raised.value)


def test_clocks_of_several_nodes_may_differ_by_a_second() -> None:
    check(
        [0.05],
        nodes=2,
        total_time=1.0,
        bandwidth=100,
        operation_rate=10,
        transfer_time=None,
        latency_max=None,
    )
    with pytest.raises(RunFailed, match=r"total_time = 1 s, and its commands took 0\.05 s"):
        check([0.05], total_time=1.0, bandwidth=100, operation_rate=10)


def test_phases_follow_one_another() -> None:
    """Three phases of 0.9 s do not fit into a second; reads and writes of one phase run at the same time."""

    def phases(*numbers: int) -> list[Measurement]:
        return [Measurement("read", phase=number, total_time=0.9) for number in numbers]

    check_plausible(phases(0, 0, 0), [1.0], nodes=1)
    check_plausible(phases(0, 1, 2), [1.0, 1.7], nodes=1)
    with pytest.raises(RunFailed, match=r"3 phases of 2\.7 s together, and its commands took 1 s"):
        check_plausible(phases(0, 1, 2), [1.0], nodes=1)


def test_a_printed_rate_is_the_amount_over_the_time() -> None:
    check_rate("fio: read", None, 100, 2.0)
    check_rate("fio: read", 49.5, 100, 2.0)
    for rate in (40.0, math.nan):
        with pytest.raises(RunFailed, match="100 B in 2 s are 50 B/s"):
            check_rate("fio: read", rate, 100, 2.0)
