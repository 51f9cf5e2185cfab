"""Two samples: Welch's t test on logarithms, outside the A/A noise floor."""

import math

import numpy as np
import pytest
from scipy import stats

from tiercel.statistics.comparison import compare, judge
from tiercel.statistics.noise import UNKNOWN, Floor
from tiercel.statistics.verdict import Outcome, Rule

QUIET = Floor(1.0, 1.0, 5)
A, B = [10.0, 11.0, 12.0, 13.0], [5.0, 5.5, 6.0, 6.5]


def test_it_is_welchs_test_of_logarithms():
    made = compare(A, B, QUIET)
    assert made.p_value == pytest.approx(stats.ttest_ind(np.log(A), np.log(B), equal_var=False).pvalue)
    assert made.ratio == pytest.approx(2.0)  # every value is twice its partner
    assert made.low < 2.0 < made.high and made.value.outcome is Outcome.BETTER


@pytest.mark.parametrize(
    ("a", "b", "floor", "rule"),
    [
        (A, B, UNKNOWN, Rule.NO_REPLICATE),
        (A[:2], B[:2], QUIET, Rule.FEW_REPETITIONS),
        (A, [v * 1.01 for v in A], QUIET, Rule.REPETITIONS),
        (A, B, Floor(0.4, 2.5, 5), Rule.LAYOUT),
        ([0.0, *A], B, QUIET, Rule.NO_RATE),
    ],
)
def test_the_rule_that_prevents_a_claim_is_its_reason(a, b, floor, rule):
    made = compare(a, b, floor)
    assert not made.value.outcome.decided and made.value.rule is rule and made.reason


def test_a_family_is_corrected_by_holm():
    one, two = compare(A, B, QUIET), compare(A, [v * 1.01 for v in A], QUIET)
    judged = judge([one, two])
    assert judged[0].p_corrected == pytest.approx(2 * one.p_value)
    assert judged[1].p_corrected == pytest.approx(two.p_value)


def test_turned_round_it_says_the_opposite():
    one, other = compare(A, B, QUIET), compare(B, A, QUIET)
    assert math.isclose(one.low, 1 / other.high) and (one.verdict, other.verdict) == ("higher", "lower")
