"""What a workload's property costs and what more processes gain."""

import pytest
from tests.statistics.rows import rows

from tiercel.statistics.contrasts import contrasts, scaling


def test_random_against_sequential_reads_over_two_scales():
    frame = rows([])
    for processes in (1, 2):
        same = {"operation": "read", "processes_per_node": processes, "access": "RO", "transfer_size": 4096}
        for twin in "ab":
            frame += rows([100, 101, 102], workload="analytics", pattern="sequential", twin=twin, **same)
            frame += rows([50, 51, 52], workload="ml", pattern="random", twin=twin, **same)
    (row,) = contrasts(frame).to_dict("records")
    assert (row["factor"], row["level_a"], row["level_b"]) == ("pattern", "random", "sequential")
    assert row["ratio"] == pytest.approx(51 / 101)
    assert (row["scales"], row["verdict"]) == (2, "lower")  # p = 2/400


def test_workloads_that_differ_in_two_features_are_no_contrast():
    frame = rows([10], workload="x", pattern="random", transfer_size=1) + rows(
        [10], workload="y", pattern="sequential", transfer_size=2
    )
    assert contrasts(frame).empty


def test_fsync_of_each_write_is_held_against_the_phase():
    frame = rows([1, 2], workload="z", fsync="write") + rows([10, 12], workload="a", fsync="phase")
    (row,) = contrasts(frame).to_dict("records")
    assert (row["level_a"], row["level_b"]) == ("write", "phase")


def test_scaling_from_the_smallest_to_the_largest():
    frame = rows([])
    for processes, base in ((1, 10), (2, 20), (4, 22)):
        for twin in "ab":
            values = [base, base + 0.1, base + 0.2, base + 0.3, base + 0.4]
            frame += rows(values, processes_per_node=processes, twin=twin)
    (row,) = scaling(frame).to_dict("records")
    assert (row["over"], row["smallest"], row["largest"], row["growth"]) == ("processes_per_node", 1, 4, 4)
    assert row["ratio"] == pytest.approx(22.2 / 10.2)
    assert row["efficiency"] == pytest.approx(22.2 / 10.2 / 4)
    assert row["verdict"] == "higher"


def test_one_scale_has_no_scaling():
    assert scaling(rows([1, 2, 3])).empty
    assert scaling(rows([])).empty
    assert contrasts(rows([])).empty
