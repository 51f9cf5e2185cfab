"""Comparisons: exact p values counted by hand, verdicts, and error rates by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from tiercel.statistics.bootstrap import ratio_interval
from tiercel.statistics.comparison import WITHIN_NOISE, compare, compare_scales, judge, rank_test, step_up
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
    assert compare(a, b, FLOOR).reason == WITHIN_NOISE
    assert compare(a, b, Floor(0.99, 1.01, 5)).verdict == "higher"
    assert compare(b, a, Floor(0.99, 1.01, 5)).verdict == "lower"


def test_without_an_a_a_pair_nothing_is_claimed():
    assert compare([9, 9.1, 9.2, 9.3, 9.4], [1, 1.1, 1.2, 1.3, 1.4], UNKNOWN).verdict == "undecided"


def test_nothing_and_zero_are_undecided():
    assert compare([], [1.0], FLOOR).reason == "nothing to compare"
    assert compare([0.0, 1.0], [1.0], FLOOR).reason == "a value of zero"


def test_the_seed_is_that_of_the_interval():
    a, b = np.random.default_rng(5).lognormal(0, 0.5, (2, 20))
    for seed in (1, 2):
        low, high = ratio_interval([(a, b)], seed=seed)
        made = compare(a, b, FLOOR, seed)
        assert (made.low, made.high) == (min(low, made.ratio), max(high, made.ratio))
    # Two seeds draw other samples: were it not so, the lines above would not tell them apart.
    assert ratio_interval([(a, b)], seed=1) != ratio_interval([(a, b)], seed=2)


def test_step_up_by_hand():
    # From the largest 0.04, 0.02, 0.01 times 1, 2, 3: 0.04, 0.04, 0.03.
    assert step_up([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    # One that says nothing leaves the others the correction for three: 0.03 * 2 is more than 0.015 * 3.
    assert step_up([0.9, 0.015, 0.03]) == pytest.approx([0.9, 0.045, 0.06])
    # All below 5 % are all claimed, though the smallest times their number is above it.
    assert step_up([0.03, 0.04, 0.049]) == pytest.approx([0.049, 0.049, 0.049])
    assert step_up([]) == []


def test_a_family_corrects_the_verdicts():
    four = compare([10, 11, 12, 13], [1, 2, 3, 4], FLOOR)  # p = 2/70 = 0.029
    assert four.verdict == "higher"
    assert [c.verdict for c in judge([four, four])] == ["higher", "higher"]  # both are below 5 %
    mixed = compare([10, 11, 12, 13], [1, 2, 3, 12.5], FLOOR)
    judged = judge([four, mixed])  # the larger p is 4/70 = 0.057 and counts once, 0.029 twice
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


def test_over_scales_the_approximation_adds_differences_and_variances():
    # Twice over the same 60 against 60: twice the difference of rank sums, the root of twice the variance,
    # and only one step of continuity.
    random = np.random.default_rng(2)
    a, b = random.lognormal(0, 1, 60), random.lognormal(0.2, 1, 60)
    u = mannwhitneyu(a, b, method="asymptotic", use_continuity=False).statistic - 60 * 60 / 2
    sd = math.sqrt(60 * 60 * 121 / 12)
    for strata, times in ((1, 1), (2, 2), (5, 5)):
        z = (times * abs(u) - 0.5) / (math.sqrt(times) * sd)
        assert rank_test([(a, b)] * strata) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-9)
    # One scale for a, the other for b, by as much: nothing.
    assert rank_test([(a, b), (b, a)]) == 1.0


def test_many_values_that_are_all_equal_show_nothing():
    assert rank_test([(np.ones(50), np.ones(50))]) == 1.0


def test_a_difference_by_one_rank_is_hardly_any():
    # 1, 4, 5, 8, ... against 2, 3, 6, 7, ...: both sums are alike. With the last two changed over they are 1
    # apart from the mean.
    values = np.arange(1, 85, dtype=float)
    first = np.isin(np.arange(84) % 4, (0, 3))
    a, b = values[first], values[~first]
    assert rank_test([(a, b)]) == 1.0
    a[-1], b[-1] = b[-1], a[-1]
    sd = math.sqrt(42 * 42 * 85 / 12)
    assert rank_test([(a, b)]) == pytest.approx(math.erfc(0.5 / sd / math.sqrt(2)))


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
