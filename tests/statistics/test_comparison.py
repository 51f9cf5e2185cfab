"""Comparisons: exact p values counted by hand, verdicts, and error rates by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from tiercel.statistics.bootstrap import ratio_interval
from tiercel.statistics.comparison import compare, compare_scales, holm, judge
from tiercel.statistics.noise import UNKNOWN, Floor

FLOOR = Floor(1 / 1.1, 1.1, 5)
sample = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8)


def test_five_against_five_separated_is_claimed():
    c = compare([10, 11, 12, 13, 14], [5, 5.1, 5.2, 5.3, 5.4], FLOOR)
    # Two of the 252 ways to deal ten values five and five are as extreme.
    assert c.p_value == pytest.approx(2 / 252)
    assert c.ratio == pytest.approx(12 / 5.2)
    assert (c.effect, c.verdict, c.reason) == (1.0, "higher", "")


def test_three_against_three_is_undecided_however_large_the_difference():
    c = compare([1000, 1001, 1002], [1, 2, 3], FLOOR)
    assert c.p_value == pytest.approx(0.1)  # 2 of 20 ways
    assert c.verdict == "undecided"
    assert c.reason == "too few repetitions for a rank test at 5 % (3 against 3)"
    assert c.separated


def test_two_scales_of_three_against_three_decide_together():
    c = compare_scales([([20, 21, 22], [10, 11, 12]), ([40, 41, 42], [10, 11, 12])], FLOOR)
    assert c.p_value == pytest.approx(2 / 400)  # 20 ways at each scale
    assert c.ratio == pytest.approx(math.sqrt(21 / 11 * 41 / 11))
    assert c.verdict == "higher"


def test_scales_that_disagree_are_undecided():
    c = compare_scales([([20, 21, 22], [10, 11, 12]), ([10, 11, 12], [20, 21, 22])], FLOOR)
    assert c.p_value == 1.0
    assert c.verdict == "undecided"


def test_a_clear_difference_within_the_noise_floor_is_not_claimed():
    a, b = [1.05, 1.051, 1.052, 1.053, 1.054], [1.0, 1.001, 1.002, 1.003, 1.004]
    assert compare(a, b, FLOOR).reason == "the interval of the ratio overlaps the A/A noise floor"
    assert compare(a, b, Floor(0.99, 1.01, 5)).verdict == "higher"
    assert compare(b, a, Floor(0.99, 1.01, 5)).verdict == "lower"


def test_without_an_a_a_pair_nothing_is_claimed():
    assert compare([9, 9.1, 9.2, 9.3, 9.4], [1, 1.1, 1.2, 1.3, 1.4], UNKNOWN).verdict == "undecided"


def test_nothing_and_zero_are_undecided():
    assert compare([], [1.0], FLOOR).reason == "nothing to compare"
    assert compare([0.0, 1.0], [1.0], FLOOR).reason == "a value of zero"


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.04 times 3, 2, 1: 0.03, 0.04, 0.04.
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([]) == []


def test_a_family_corrects_the_verdicts():
    four = compare([10, 11, 12, 13], [1, 2, 3, 4], FLOOR)  # p = 2/70 = 0.029
    assert four.verdict == "higher"
    judged = judge([four, four])  # 0.057
    assert [c.verdict for c in judged] == ["undecided", "undecided"]
    assert "among 2 comparisons" in judged[0].reason


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=14, unique=True), st.data())
def test_the_test_is_scipys_exact_one_without_ties(values, data):
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = [v + 1 for v in values[:cut]], [v + 1 for v in values[cut:]]
    assert compare(a, b, FLOOR).p_value == pytest.approx(mannwhitneyu(a, b, method="exact").pvalue)


def test_large_samples_use_the_normal_approximation():
    random = np.random.default_rng(1)
    a, b = random.lognormal(0, 1, 60), random.lognormal(0.3, 1, 60)
    expected = mannwhitneyu(a, b, method="asymptotic").pvalue
    assert compare(a, b, FLOOR).p_value == pytest.approx(expected, rel=1e-6)


@settings(max_examples=40)
@given(sample, sample)
def test_a_comparison_mirrors(a, b):
    there, back = compare(a, b, FLOOR), compare(b, a, FLOOR)
    assert there.p_value == pytest.approx(back.p_value)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert there.effect == -back.effect
    assert there.low <= there.ratio <= there.high
    if there.verdict != "undecided":
        assert there.low > FLOOR.high or there.high < FLOOR.low


@settings(max_examples=40)
@given(sample)
def test_a_sample_never_differs_from_itself(values):
    c = compare(values, values, FLOOR)
    assert (c.ratio, c.p_value, c.verdict) == (1.0, 1.0, "undecided")


@pytest.mark.parametrize(("n", "promised"), [(3, 0.90), (5, 0.95), (10, 0.95)])
def test_the_interval_of_the_ratio_covers(n, promised):
    random = np.random.default_rng(n)
    covered = 0
    for _ in range(400):
        low, high = ratio_interval([(random.lognormal(0, 0.3, n), random.lognormal(0, 0.3, n))])
        covered += low <= 1 <= high
    assert covered / 400 == pytest.approx(promised, abs=0.04)


def test_equal_systems_are_rarely_told_apart():
    random = np.random.default_rng(7)
    claims = sum(
        compare(random.lognormal(0, 0.3, 6), random.lognormal(0, 0.3, 6), Floor(1.0, 1.0, 6)).verdict
        != "undecided"
        for _ in range(400)
    )
    # Even with no noise floor at all, the rank test alone keeps false claims below 5 %.
    assert claims / 400 <= 0.06
