"""How many times faster, and how sure: hand-made run times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tiercel.advice.judge import Sample, differ


def sample(*seconds: float, copying: float = 0.0) -> Sample:
    return Sample(seconds, copying)


def test_twice_as_fast_is_faster_and_the_ratio_is_of_geometric_means() -> None:
    found = differ(sample(2.0, 2.1, 1.9), sample(1.0, 1.05, 0.95))
    # Every run at home is twice the other's.
    assert found.outcome == "faster" and found.ratio.median == pytest.approx(2.0)
    assert found.ratio.low < 2.0 < found.ratio.high and found.saved.median == pytest.approx(1.0, abs=0.01)


def test_the_interval_holds_another_comparison_on_another_day() -> None:
    """Equal runs leave what differs between sessions, a standard deviation of 0.06: 1.96 * 0.06 = 0.1176.

    Runs that vary by a factor of 1.1 (0.0953): 0.0953^2 * (1/3 + 1/3 + 2/3) + 0.06^2 = 0.01211 + 0.0036 =
    0.01571, with 4 * (0.01571 / 0.01211)^2 = 6.73 degrees of freedom, of which t at 2.5 % is 2.384:
    2.384 * sqrt(0.01571) = 0.2988.
    """
    found = differ(sample(2.0, 2.0, 2.0), sample(1.0, 1.0, 1.0))
    assert found.ratio.high == pytest.approx(2 * math.exp(0.1176), rel=1e-3)
    found = differ(around(2.0, 1.1), around(1.0, 1.1))
    assert found.ratio.high == pytest.approx(2 * math.exp(0.2988), rel=1e-3)
    assert found.ratio.low == pytest.approx(2 * math.exp(-0.2988), rel=1e-3)


@pytest.mark.parametrize("runs", [3, 12])
def test_the_interval_covers_a_later_session_under_drift(runs: int) -> None:
    """Simulated: runs vary by 5 %, the load of the machine drifts by 5 % per round for all, and the ratio of
    each session is off by 0.06 / sqrt(2), so that two sessions differ by 0.06."""
    random = np.random.default_rng(1)

    def session(count: int) -> tuple[Sample, Sample]:
        drift = np.cumsum(random.normal(0, 0.05, count))
        offset = random.normal(0, 0.06 / math.sqrt(2))
        home, other = random.normal(0, 0.05, (2, count))
        return Sample(np.exp(drift + home + offset).tolist()), Sample(np.exp(drift + other).tolist())

    covered = 0
    for _ in range(1000):
        ratio = differ(*session(runs)).ratio
        home, other = (np.median(sample.seconds) for sample in session(3))
        covered += bool(ratio.low <= home / other <= ratio.high)
    assert covered >= 930


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

    0.2231^2 * 4/3 + 0.06^2 = 0.06999, 4.45 degrees of freedom, t is 2.670: 0.7064. The ends are
    exp(0.4055 -+ 0.7064), 0.74 and 3.04, a factor of 4.1. With a factor of 1.1 (0.2988, as above) they are
    1.11 and 2.02.
    """
    found = differ(around(3.0, 1.25), around(2.0, 1.25))
    assert found.outcome == "not decided"
    assert (found.ratio.low, found.ratio.high) == pytest.approx((0.740, 3.040), rel=1e-3)
    found = differ(around(3.0, 1.1), around(2.0, 1.1))
    assert found.outcome == "faster"
    assert (found.ratio.low, found.ratio.high) == pytest.approx((1.1125, 2.0224), rel=1e-3)


def test_a_claim_of_the_means_is_not_enough() -> None:
    """Standard deviation 0.1398 (a factor of 1.15), 1.45 times faster (0.3716): the means' interval is
    2.776 * 0.1398 * sqrt(2/3) = 0.3169, above 1; that of another comparison is not: 0.1398^2 * 4/3 + 0.06^2 =
    0.02964, 5.18 degrees of freedom, 2.544 * sqrt(0.02964) = 0.4380."""
    found = differ(around(1.45, 1.15), around(1.0, 1.15))
    assert found.outcome == "not decided"
    assert found.ratio.low == pytest.approx(math.exp(0.3716 - 0.4380), rel=1e-3)


def test_an_interval_wider_than_a_factor_of_five_makes_nothing_slower() -> None:
    """A factor of 50, runs vary by a factor of 1.3 (0.2624): 0.2624^2 * 4/3 + 0.06^2 = 0.09538, 4.32
    degrees of freedom, 2.697 * sqrt(0.09538) = 0.8330: a factor of exp(2 * 0.8330) = 5.29. Runs that vary by
    1.28 (0.2469): 2.688 * sqrt(0.08485) = 0.7830, a factor of 4.79."""
    found = differ(around(50.0, 1.3), around(1.0, 1.3))
    assert found.outcome == "faster" and found.ratio.low > 20  # whatever its width
    assert found.ratio.high / found.ratio.low == pytest.approx(5.29, rel=2e-3)
    assert differ(around(1.0, 1.3), around(50.0, 1.3)).outcome == "not decided"
    assert differ(around(1.0, 1.28), around(50.0, 1.28)).outcome == "slower"


def test_how_many_runs_would_decide_it() -> None:
    """Of four runs each: 0.2624^2 * (1/2 + 2/3) + 0.06^2 = 0.08391, 6.55 degrees of freedom, 2.398 *
    sqrt(0.08391) = 0.6946: a factor of 4.0. Where runs vary by a factor of 2 (0.693), even infinitely many
    leave exp(2 * 1.96 * 0.693 * sqrt(2/3)) = 9.2."""
    assert differ(around(1.0, 1.3), around(50.0, 1.3)).runs_needed == 4
    assert differ(around(1.0, 2.0), around(50.0, 2.0)).runs_needed is None


def test_the_low_end_has_a_quarter_more_of_copying() -> None:
    """2 s against 1 + 0.4 s: with 0.5 s of copying, 2 / 1.5, times exp(-0.1176) for equal runs."""
    found = differ(sample(2.0, 2.0, 2.0), sample(1.0, 1.0, 1.0, copying=0.4))
    assert found.ratio.median == pytest.approx(2 / 1.4)
    assert found.ratio.low == pytest.approx(2 / 1.5 * math.exp(-0.1176), rel=1e-3)
    assert found.outcome == "faster"  # 1.19


def test_two_comparisons_need_more_than_one() -> None:
    """Two runs each: t of 2 degrees of freedom is 4.303 at 2.5 %, 6.205 at 1.25 %. Runs a factor of 1.1
    from their mean have a standard deviation of sqrt(2) * 0.0953 = 0.1348. The stated half width is 0.657
    (0.1348^2 * 5/3 + 0.06^2 = 0.03389, 2.50 degrees of freedom), that of a claim among two 6.205 * 0.1348 =
    0.836. 2.2 times faster (0.788) lies between."""
    home, other = sample(2.2 / 1.1, 2.2 * 1.1), sample(1 / 1.1, 1.1)
    assert differ(home, other).outcome == "faster"
    assert differ(home, other, among=2).outcome == "not decided"
