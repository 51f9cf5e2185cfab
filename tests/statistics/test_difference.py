"""Bootstrap intervals: of a difference, and of a ratio over several scales."""

import math

import numpy as np
import pytest

from tiercel.statistics.bootstrap import ratio_interval
from tiercel.statistics.difference import difference_interval


def test_a_difference_of_what_does_not_vary_is_exact():
    assert difference_interval(np.full(4, 12.0), np.full(3, 5.0)) == (7.0, 7.0)


def test_one_value_against_two_is_drawn_to_both_ends():
    # The median of two drawn from {2, 4} is 2, 3 or 4, of chance 1/4, 1/2, 1/4: both ends lie within 95 %,
    # and at 40 % (tails of 30 %) only the middle does.
    a, b = np.array([10.0]), np.array([2.0, 4.0])
    assert difference_interval(a, b) == (6.0, 8.0)
    assert difference_interval(a, b, confidence=0.4) == (7.0, 7.0)
    assert difference_interval(b, a) == (-8.0, -6.0)


def test_the_two_samples_are_drawn_apart_from_each_other():
    # Were both drawn alike, a sample would not differ from itself at all.
    low, high = difference_interval(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    assert low < 0 < high


def test_the_same_seed_gives_the_same_interval():
    random = np.random.default_rng(3)
    a, b = random.normal(10, 1, 9), random.normal(9, 1, 9)
    assert difference_interval(a, b, seed=4) == difference_interval(a, b, seed=4)
    assert difference_interval(a, b, seed=4) != difference_interval(a, b, seed=5)


def test_over_scales_a_ratio_is_the_geometric_mean():
    # 8 and 2 at the two scales, which do not vary: the root of 16.
    strata = [(np.full(3, 8.0), np.full(3, 1.0)), (np.full(3, 4.0), np.full(3, 2.0))]
    assert ratio_interval(strata) == (pytest.approx(4.0), pytest.approx(4.0))
    # The second scale varies by 4 either way, with one value a side drawn of two: 4 * sqrt(1/2), 4 * sqrt(2).
    strata[1] = (np.array([2.0, 8.0]), np.full(3, 2.0))
    low, high = ratio_interval(strata)
    assert (low, high) == (pytest.approx(math.sqrt(8 * 1)), pytest.approx(math.sqrt(8 * 4)))
    # At 40 % only the median of one of each is left, which is 5.
    assert ratio_interval(strata, confidence=0.4) == (pytest.approx(math.sqrt(8 * 2.5)),) * 2
