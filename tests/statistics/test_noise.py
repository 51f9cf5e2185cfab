"""Noise floors from A/A pairs."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.rows import rows

from tiercel.statistics.noise import UNKNOWN, Floor, floors, lookup, noise_floor, widest

sample = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8)


def test_three_against_three_reach_from_least_over_greatest():
    floor = noise_floor([100, 105, 110], [95, 100, 100])
    # The widest draw is 110 over 95; the floor is symmetric, so its lower end is the inverse.
    assert (floor.low, floor.high, floor.n) == (pytest.approx(95 / 110), pytest.approx(110 / 95), 3)


@settings(max_examples=40)
@given(sample, sample)
def test_a_floor_contains_one_the_ratio_and_its_inverse(a, b):
    floor = noise_floor(a, b)
    ratio = sorted(a)[len(a) // 2] / sorted(b)[len(b) // 2] if len(a) % 2 and len(b) % 2 else 1.0
    assert floor.low <= 1 <= floor.high
    assert floor.low * (1 - 1e-12) <= ratio <= floor.high * (1 + 1e-12)
    assert floor.low == pytest.approx(1 / floor.high)


def test_no_pair_no_floor():
    assert noise_floor([1, 2], []) == UNKNOWN
    assert noise_floor([0, 0], [1, 1]) == UNKNOWN
    assert not UNKNOWN.known
    assert (UNKNOWN.low, UNKNOWN.high) == (0.0, math.inf)
    assert widest([]) == UNKNOWN


def test_numbers_below_one_have_a_floor_too():
    # A rate of 0.5 operations a second is a rate: 0.5 and 0.25 are 2 apart.
    assert noise_floor([0.5] * 3, [0.25] * 3) == Floor(0.5, 2.0, 3)


def test_a_pair_without_rates_shows_nothing():
    for a, b in (([], [1]), ([1], []), ([0, 0, 5], [1]), ([1], [0]), ([-1], [1]), ([1], [-1])):
        assert noise_floor(a, b) == UNKNOWN


def test_numbers_that_do_not_count_make_no_floor():
    # A disturbed run, flagged so, would make noise of 9.
    pair = rows([10, 10, 10]) + rows([10, 10, 10, 90], twin="b")
    pair["flags"] = [[]] * 6 + [["bad"]]
    assert floors(pair)["high"].tolist() == [pytest.approx(9.0)]
    assert floors(pair, ["bad"])["high"].tolist() == [1.0]


def test_a_pair_of_no_site_is_one_all_the_same():
    frame = rows([10, 11], site=None) + rows([10, 11], site=None, twin="b")
    assert len(floors(frame)) == 1 and floors(frame)["source"].tolist() == ["own"]


def test_only_pairs_of_its_own_study_stand_in():
    table = floors(
        rows([10, 10], study="other") + rows([10, 13], study="other", twin="b") + rows([5, 5], study="quick")
    )
    found = {row["study"]: row["source"] for row in table.to_dict("records")}
    assert found == {"other": "own", "quick": "none"}


def test_of_several_pairs_the_widest_stands_in_with_the_fewest_repetitions():
    frame = (
        rows([10, 10, 10], workload="a") + rows([10, 10, 10], workload="a", twin="b")
        + rows([10, 10], workload="b") + rows([20, 20], workload="b", twin="b")
        + rows([1, 1], workload="c")
    )  # fmt: skip
    (row,) = floors(frame).query("workload == 'c'").to_dict("records")
    assert (row["low"], row["high"], row["n"], row["source"]) == (0.5, 2.0, 2, "storage")


def test_floors_own_and_pooled():
    table = floors(
        rows(storage="fast", workload="write", values=[10, 11, 12])
        + rows(storage="fast", workload="write", values=[10, 11, 13], twin="b")
        + rows(storage="fast", workload="read", values=[20, 21, 22])
        + rows(storage="slow", workload="write", values=[1, 2, 3])
    )
    found = {(r["storage"], r["workload"]): r for r in table.to_dict("records")}
    assert found["fast", "write"]["source"] == "own"
    assert found["fast", "write"]["high"] == pytest.approx(1.3)  # 13 over 10
    assert found["fast", "read"]["source"] == "storage"
    assert found["fast", "read"]["high"] == pytest.approx(1.3)
    assert found["slow", "write"]["source"] == "study"


def test_later_repetitions_of_a_are_no_part_of_the_pair():
    # The twin stops after the minimum rounds; a tenth, disturbed, A must not widen the floor.
    table = floors(rows(values=[10, 10, 10, 99]) + rows(values=[10, 10, 10], twin="b"))
    assert table["high"].tolist() == [1.0]


def test_without_any_pair_the_floor_is_unknown():
    table = floors(rows(values=[10, 11]))
    assert table["source"].tolist() == ["none"]
    assert lookup(table)(table.iloc[0].to_dict()) == UNKNOWN
    assert lookup(table)(table.iloc[0].to_dict() | {"workload": "another"}) == UNKNOWN
