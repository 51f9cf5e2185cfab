"""Summaries: hand-computed numbers, and the promised coverage of the interval."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.statistics.summary import summarize

positive = st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=40)


def test_three_values_give_the_range_with_its_attained_coverage():
    s = summarize([4.0, 1.0, 3.0])
    # All three lie on one side of the median in 2 of 8 cases: the range covers it in 6 of 8.
    assert (s.n, s.median, s.low, s.high, s.coverage) == (3, 3.0, 1.0, 4.0, 0.75)
    # mean 8/3; deviations 4/3, -5/3, 1/3: squares sum to 42/9, over n - 1 = 2.
    assert s.sd == pytest.approx(math.sqrt(42 / 9 / 2))
    assert s.cv == pytest.approx(s.sd / (8 / 3))


def test_ten_values_interpolate_between_order_statistics():
    s = summarize(range(1, 11))
    # The 2nd to the 9th cover with 1 - 2 * (1 + 10)/1024 = 0.97852; the 3rd to the 8th with
    # 1 - 2 * (1 + 10 + 45)/1024 = 0.89063. 95 % lies 0.32444 of the way; by Hettmansperger and Sheather
    # the weight is 8 * 0.32444 / (2 + 6 * 0.32444) = 0.65766.
    assert s.low == pytest.approx(2.65766, abs=1e-4)
    assert s.high == pytest.approx(11 - 2.65766, abs=1e-4)
    assert s.coverage == 0.95


def test_one_value_is_its_own_interval_and_covers_nothing():
    s = summarize([7.0])
    assert (s.low, s.high, s.coverage) == (7.0, 7.0, 0.0)
    assert math.isnan(s.sd)
    assert math.isnan(s.half_width)


def test_missing_values_are_left_out():
    assert summarize(pd.Series([1, None, 3], dtype="Int64")).n == 2
    assert summarize([None, math.nan, pd.NA]).n == 0
    assert math.isnan(summarize([]).median)


@given(positive)
def test_the_interval_contains_the_median_and_lies_in_the_range(values):
    s = summarize(values)
    assert s.minimum <= s.low <= s.median <= s.high <= s.maximum
    assert s.minimum <= s.mean <= s.maximum
    assert 0 <= s.coverage <= 0.95


@given(positive, st.floats(0.01, 100))
def test_units_do_not_matter(values, factor):
    a, b = summarize(values), summarize([v * factor for v in values])
    assert b.low == pytest.approx(a.low * factor)
    assert b.high == pytest.approx(a.high * factor)


@pytest.mark.parametrize("n", [3, 5, 6, 7, 10, 20])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "exponential"])
def test_the_interval_covers_the_true_median_as_often_as_it_says(n, shape):
    random = np.random.default_rng(n)
    draw, true = {
        "normal": (lambda: random.normal(10, 1, n), 10),
        "lognormal": (lambda: random.lognormal(0, 0.5, n), 1),
        "exponential": (lambda: random.exponential(1, n), math.log(2)),
    }[shape]
    samples = [summarize(draw()) for _ in range(1000)]
    covered = sum(s.low <= true <= s.high for s in samples) / 1000
    # 1000 tries of a 95 % event have a standard error of 0.7 %, and interpolation costs a skewed sample 1 %.
    assert covered == pytest.approx(samples[0].coverage, abs=0.03)
