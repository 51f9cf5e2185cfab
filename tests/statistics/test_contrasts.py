"""What a workload's property costs and what more processes gain."""

import math

import numpy as np
import pandas as pd
import pytest
from tests.statistics.rows import rows

from tiercel.statistics.contrasts import contrasts, scaling


def test_random_against_sequential_reads_over_two_scales():
    frame = rows([])
    for processes in (1, 2):
        same = {"operation": "read", "processes_per_node": processes, "access": "RO", "transfer_size": 4096}
        for twin in "ab":
            frame += rows([100, 101, 102, 103], workload="analytics", pattern="sequential", twin=twin, **same)
            frame += rows([50, 50.5, 51, 51.5], workload="ml", pattern="random", twin=twin, **same)
    (row,) = contrasts(frame).to_dict("records")
    assert (row["factor"], row["level_a"], row["level_b"]) == ("pattern", "random", "sequential")
    assert row["ratio"] == pytest.approx(0.5)  # every value is half of its partner
    assert (row["scales"], row["verdict"]) == (2, "lower")
    assert (row["workload_a"], row["workload_b"], row["metric"]) == ("ml", "analytics", "bandwidth")
    assert (row["experiment_a"], row["experiment_b"]) == ("scaling", "scaling")
    # Four repetitions of each at two scales; replicates are no runs of the comparison.
    assert len(set(row["runs"])) == 16 and not any(run.endswith("b") for run in row["runs"])


def test_a_contrast_is_told_the_same_way_round_whatever_the_names():
    for plain, other in (("a", "z"), ("z", "a")):
        frame = rows([4], workload=plain, pattern="sequential") + rows([1], workload=other, pattern="random")
        (row,) = contrasts(frame).to_dict("records")
        assert (row["workload_a"], row["level_a"], row["ratio"]) == (other, "random", 0.25)


def test_what_is_not_known_is_no_level():
    for unknown in (None, math.nan, pd.NA):
        frame = rows([4], workload="a", pattern="sequential") + rows([1], workload="b", pattern="random")
        frame["pattern"] = frame["pattern"].astype(object)
        frame.loc[1, "pattern"] = unknown
        assert contrasts(frame).empty


def test_workloads_without_a_common_scale_are_no_contrast():
    frame = rows([4], workload="a", pattern="sequential", processes_per_node=1)
    frame += rows([1], workload="b", pattern="random", processes_per_node=2)
    assert contrasts(frame).empty


def test_rounds_that_one_side_alone_went_on_for_are_no_difference():
    """A steady workload stops after five rounds; one that is not goes on, while the machine gets slower."""
    slower = [100, 101, 99, 100, 102, 50, 51, 49, 50, 52]
    for table in (
        contrasts(
            rows(slower, pattern="random", workload="a")
            + rows(slower[:5], workload="b", pattern="sequential")
        ),
        scaling(rows(slower, processes_per_node=2) + rows(slower[:5])),
    ):
        assert (table["ratio"][0], table["n_a"][0], table["n_b"][0]) == (1.0, 5, 5)


def test_load_that_hit_one_kind_of_io_is_no_property_of_it():
    """Eight random reads, each at two scales beside its sequential twin, and all as fast; each of them was
    slower in rounds of its own."""
    random = np.random.default_rng(4)
    busy = 0.3 * random.normal(size=(8, 2, 5)).cumsum(axis=2)  # what is there goes on into the next round
    frame = rows([])
    for number in range(8):
        for side, pattern in enumerate(("random", "sequential")):
            for processes in (1, 2):
                values = np.exp(busy[number, side] + random.normal(0.0, 0.02, 5))
                for twin in "ab":
                    frame += rows(values, workload=f"{pattern}{number}", pattern=pattern, twin=twin,
                                  processes_per_node=processes, transfer_size=4096 << number)  # fmt: skip
    table = contrasts(frame)
    assert len(table) == 8 and set(table["verdict"]) == {"undecided"}
    assert (table["rule"] == "round drift").sum() >= 6


def test_numbers_that_do_not_count_take_no_part():
    frame = rows([10, 10, 900], processes_per_node=1) + rows([40, 40, 40], processes_per_node=4)
    frame["flags"] = [[], [], ["bad"], [], [], []]
    (row,) = scaling(frame, ["bad"]).to_dict("records")
    assert (row["n_a"], row["n_b"], len(row["runs"])) == (3, 2, 5)  # a round that one side lacks still counts
    assert row["ratio"] == pytest.approx(4.0)
    frame = rows([10, 10, 900], workload="a", pattern="sequential")
    frame += rows([5, 5, 5], workload="b", pattern="random")
    frame["flags"] = [[], [], ["bad"], [], [], []]
    (row,) = contrasts(frame, ["bad"]).to_dict("records")
    assert (row["ratio"], row["n_a"], row["n_b"]) == (pytest.approx(0.5), 3, 2)


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
    means = [np.log([base + step / 10 for step in range(5)]).mean() for base in (22, 10)]
    assert row["ratio"] == pytest.approx(math.exp(means[0] - means[1]))  # of geometric means
    assert row["efficiency"] == pytest.approx(row["ratio"] / 4)
    assert row["verdict"] == "higher"


def test_scaling_over_nodes_counts_nodes_and_grows_with_processes():
    frame = rows([10.0], nodes=1, processes_per_node=2) + rows([60.0], nodes=4, processes_per_node=4)
    (row,) = scaling(frame).to_dict("records")
    assert (row["over"], row["smallest"], row["largest"]) == ("nodes", 1, 4)
    # 16 processes where there were 2, and six times the bandwidth.
    assert (row["growth"], row["efficiency"]) == (8.0, pytest.approx(0.75))
    assert (row["metric"], len(row["runs"])) == ("bandwidth", 2)


def test_each_workload_scales_by_itself():
    frame = rows([7.0], workload="a-alone")
    for processes in (1, 2):
        frame += rows([10.0 * processes], workload="b-two", processes_per_node=processes)
    # As many processes, on more nodes: not more of them.
    frame += rows([7.0], workload="c-spread", nodes=1, processes_per_node=2)
    frame += rows([7.0], workload="c-spread", nodes=2, processes_per_node=1)
    (row,) = scaling(frame).to_dict("records")
    assert (row["workload"], row["growth"], row["efficiency"]) == ("b-two", 2.0, pytest.approx(1.0))
    # A site that is not named is one all the same.
    nameless = rows([1.0], site=None) + rows([2.0], site=None, processes_per_node=2)
    assert len(scaling(nameless)) == 1


def test_one_scale_has_no_scaling():
    assert scaling(rows([1, 2, 3])).empty
    assert scaling(rows([])).empty
    assert contrasts(rows([])).empty


def test_every_level_is_held_against_every_other_and_none_against_itself():
    frame = rows([])
    for workload, pattern in (("a", "random"), ("b", "random"), ("c", "sequential"), ("d", "sequential")):
        frame += rows([100, 101, 102, 103], workload=workload, pattern=pattern)
    pairs = [(row["workload_a"], row["workload_b"]) for row in contrasts(frame).to_dict("records")]
    # Two of either level: four pairs, the plain level second.
    assert pairs == [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")]
