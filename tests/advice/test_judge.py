"""How many times faster, and how sure: hand-made run times."""

from __future__ import annotations

import math

import pytest

from tiercel.advice.judge import Sample, differ


def sample(*seconds: float, copying: float = 0.0, queued: float = 0.0) -> Sample:
    return Sample(seconds, [queued] * len(seconds), copying)


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


def test_on_a_crowded_machine_waiting_for_a_processor_decides_nothing() -> None:
    """Runs of 1.0 and 0.5 s, of which others made 3, 9 and 5 more: the ratio is measured, the outcome is not
    drowned."""
    queued = [3.0, 9.0, 5.0]
    home = Sample([1.0 + q for q in queued], queued)
    other = Sample([0.5 + q for q in queued], queued)
    found = differ(home, other)
    assert found.outcome == "faster"
    assert found.ratio.median == pytest.approx((4 * 10 * 6 / (3.5 * 9.5 * 5.5)) ** (1 / 3))
