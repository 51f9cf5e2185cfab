"""Usual runs differ, or only some."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tiercel.statistics.comparison import compare_placed
from tiercel.statistics.noise import Floor
from tiercel.statistics.usual import usual_p

NONE = Floor(1.0, 1.0, 30, "own")
BODY = np.exp(np.linspace(-0.01, 0.01, 20))


def spiked(values: np.ndarray, share: int = 7) -> np.ndarray:
    """Ten times slower in one run of so many."""
    slow = values.copy()
    slow[::share] /= 10
    return slow


def test_a_storage_that_is_slow_now_and_then_is_not_slower() -> None:
    """Means differ by 1.41, medians by 1.004: a claim, were it not asked what usual runs do."""
    pair = (BODY * 1.004, spiked(BODY))
    made = compare_placed([pair, pair], NONE)
    assert made.model_p is not None and made.model_p < 0.05 and made.p_value < 0.05
    assert made.usual_p == 1.0 and made.verdict == "undecided"
    assert made.reason.startswith("some runs differ, usual ones do not (a ratio of medians of 1.0")
    # What is half as fast again, and slow now and then, is faster all the same, as where both are slow.
    assert compare_placed([(spiked(BODY * 1.5), BODY)] * 2, NONE).usual_p < 0.05
    assert compare_placed([(spiked(BODY * 1.5), spiked(BODY))] * 2, NONE).verdict == "higher"


def test_it_is_yuens_test() -> None:
    random = np.random.default_rng(4)
    a, b = (random.normal(mean, 0.2, 12) for mean in (0.3, 0.0))
    known = stats.ttest_ind(a, b, equal_var=False, trim=0.2)
    found = usual_p([(np.exp(a), np.exp(b))], a.mean() - b.mean(), float(np.median(a) - np.median(b)))
    assert found == pytest.approx(known.pvalue)


def test_single_runs_tell_of_no_usual_one() -> None:
    one = np.array([2.0])
    assert usual_p([(one, one / 2)], np.log(2.0), np.log(2.0)) == 1.0
    assert usual_p([(np.full(5, 2.0), np.ones(5))], np.log(2.0), np.log(2.0)) == 0.0


def test_equal_storages_one_of_which_has_slow_runs_are_seldom_told_apart() -> None:
    """Twenty repetitions at two scales, 300 times; the means alone tell 1 in 5 apart at p < 0.05 / 16."""
    random, told = np.random.default_rng(3), []
    for _ in range(300):
        fast = np.exp(random.normal(0.0, 0.1, (2, 20)))
        slow = np.exp(random.normal(0.0, 0.1, (2, 20))) / np.where(random.random((2, 20)) < 1 / 7, 10.0, 1.0)
        made = compare_placed(zip(fast, slow, strict=True), NONE)
        told.append(made.model_p is not None and made.model_p < 0.05 / 16)
        assert not (told[-1] and made.verdict != "undecided" and abs(np.log(made.ratio)) < 0.1)
    assert sum(told) > 20
