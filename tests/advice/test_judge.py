"""How many times faster, and how sure: hand-made run times."""

from __future__ import annotations

import math

import pytest

from tiercel.advice.judge import Sample, differ


def sample(*seconds: float, copying: float = 0.0) -> Sample:
    return Sample(seconds, copying)


def test_twice_as_fast_is_faster_and_the_ratio_is_of_geometric_means() -> None:
    found = differ(sample(2.0, 2.1, 1.9), sample(1.0, 1.05, 0.95))
    # Every run at home is twice the other's.
    assert found.outcome == "faster" and found.ratio.median == pytest.approx(2.0)
    assert found.ratio.low < 2.0 < found.ratio.high and found.saved.median == pytest.approx(1.0, abs=0.01)


def test_the_interval_holds_another_comparison_of_three_runs() -> None:
    found = differ(sample(2.0, 2.0, 2.0), sample(1.0, 1.0, 1.0))
    # Equal runs: the least spread 0.06; t of 4 degrees of freedom at 2.5 % is 2.776; variance 1/3+1/3+2/3.
    assert found.ratio.high == pytest.approx(2 * math.exp(2.776 * 0.06 * math.sqrt(4 / 3)), rel=1e-3)


def test_copying_counts_and_may_take_more_another_time() -> None:
    home, other = sample(2.0, 2.0, 2.0), (1.0, 1.0, 1.0)
    assert differ(home, sample(*other, copying=0.5)).outcome == "faster"
    # 1 + 0.9 s is 5 % less than 2 s; with a quarter more of copying it is more than 2 s.
    assert differ(home, sample(*other, copying=0.9)).outcome != "faster"
    assert differ(home, sample(*other, copying=2.0)).outcome == "slower"


def test_noise_larger_than_the_effect_decides_nothing() -> None:
    found = differ(sample(1.0, 2.0, 1.5), sample(0.9, 1.8, 1.3))
    assert found.outcome == "not decided" and found.ratio.low < 1 < found.ratio.high


def test_equal_runs_are_the_same() -> None:
    assert differ(sample(1.0, 1.01, 0.99, 1.0), sample(1.0, 1.0, 1.01, 0.99)).outcome == "same"


def test_one_run_of_each_says_nothing() -> None:
    found = differ(sample(5.0), sample(1.0))
    assert found.outcome == "not decided" and found.ratio.high == math.inf


def around(seconds: float, factor: float) -> Sample:
    """Return three runs: their logarithms have the mean log(seconds), the standard deviation log(factor)."""
    return Sample([seconds / factor, seconds, seconds * factor])


def test_an_interval_that_reaches_down_to_one_advises_nothing() -> None:
    """1.5 times faster, with runs that vary by a factor of 1.25 (standard deviation 0.2231).

    t of 4 degrees of freedom at 2.5 % is 2.776, and 2.776 * 0.2231 * sqrt(4/3) = 0.7153: the ends are
    exp(0.4055 -+ 0.7153), 0.73 and 3.07, a factor of 4.2. With a factor of 1.1
    (0.0953) the ends are exp(0.4055 -+ 0.3055), 1.11 and 2.04.
    """
    found = differ(around(3.0, 1.25), around(2.0, 1.25))
    assert found.outcome == "not decided"
    assert (found.ratio.low, found.ratio.high) == pytest.approx((0.733, 3.067), rel=1e-3)
    found = differ(around(3.0, 1.1), around(2.0, 1.1))
    assert found.outcome == "faster"
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.105, 2.036), rel=1e-3)


def test_a_claim_of_the_means_is_not_enough() -> None:
    """Standard deviation 0.1398 (a factor of 1.15), 1.45 times faster (0.3716): the means' interval is
    2.776 * 0.1398 * sqrt(2/3) = 0.3169, above 1; that of another comparison, 0.4481, is not."""
    found = differ(around(1.45, 1.15), around(1.0, 1.15))
    assert found.outcome == "not decided"
    assert found.ratio.low == pytest.approx(math.exp(0.3716 - 0.4481), rel=1e-3)


def test_an_interval_wider_than_a_factor_of_five_makes_nothing_slower() -> None:
    """A factor of 50, runs vary by a factor of 1.3 (0.2624): the ends are exp(-+ 0.8410), a factor of 5.38.
    Runs that vary by 1.28 (0.2469): exp(-+ 0.7912), a factor of 4.87."""
    found = differ(around(50.0, 1.3), around(1.0, 1.3))
    assert found.outcome == "faster" and found.ratio.low > 20  # whatever its width
    assert found.ratio.high / found.ratio.low == pytest.approx(5.38, rel=2e-3)
    assert differ(around(1.0, 1.3), around(50.0, 1.3)).outcome == "not decided"
    assert differ(around(1.0, 1.28), around(50.0, 1.28)).outcome == "slower"


def test_how_many_runs_would_decide_it() -> None:
    """Of four runs each, t of 6 degrees of freedom is 2.447, and 2.447 * 0.2624 * sqrt(1/2 + 2/3) = 0.6935: a
    factor of 4.0. Where runs vary by a factor of 2 (0.693), even infinitely many leave exp(2 * 1.96 * 0.693 *
    sqrt(2/3)) = 9.2."""
    assert differ(around(1.0, 1.3), around(50.0, 1.3)).runs_needed == 4
    assert differ(around(1.0, 2.0), around(50.0, 2.0)).runs_needed is None


def test_the_low_end_has_a_quarter_more_of_copying() -> None:
    """2 s against 1 + 0.4 s: with 0.5 s of copying, 2 / 1.5, times exp(-0.1923): the least spread is
    0.06."""
    found = differ(sample(2.0, 2.0, 2.0), sample(1.0, 1.0, 1.0, copying=0.4))
    assert found.ratio.median == pytest.approx(2 / 1.4)
    assert found.ratio.low == pytest.approx(2 / 1.5 * math.exp(-0.1923), rel=1e-3)
    assert found.outcome == "faster"  # 1.10


def test_two_comparisons_need_more_than_one() -> None:
    """Two runs each: t of 2 degrees of freedom is 4.303 at 2.5 %, 6.205 at 1.25 %. Runs a factor of 1.1
    from their mean have a standard deviation of sqrt(2) * 0.0953 = 0.1348. The stated half width is
    4.303 * 0.1348 * sqrt(5/3) = 0.749, that of a claim among two 6.205 * 0.1348 = 0.836. 2.2 times faster
    (0.788) lies between."""
    home, other = sample(2.2 / 1.1, 2.2 * 1.1), sample(1 / 1.1, 1.1)
    assert differ(home, other).outcome == "faster"
    assert differ(home, other, among=2).outcome == "not decided"
