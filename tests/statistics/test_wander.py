"""By how much two storages changed against each other over a study."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.decisions import Case, simulated
from tests.statistics.test_placements import table_of

from tiercel.statistics.tables import comparisons
from tiercel.statistics.wander import ENOUGH, STEADY, WHOLE, level, wander

HALF = math.log(0.5)
NAMES = range(16)


def noise(seed: int, rows: int = 16, rounds: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 0.1, (rows, rounds))


def test_a_storage_that_was_slower_in_some_rounds() -> None:
    """Two of five at half: 0.4 * 0.6 * 5 / 4 is the variance of that, in units of ln 2 squared. Of 16 alike
    configurations a sixteenth of it is taken for their own."""
    busy = np.tile([0.0, HALF, HALF, 0.0, 0.0], (16, 1))
    found = wander(level(busy, NAMES), level(np.zeros((16, 5)), NAMES))
    assert found.variance == pytest.approx(WHOLE * 0.3 * HALF**2 * 15 / 16)
    assert found.freedom == 4
    # What both have in common is no change against each other.
    assert wander(level(busy, NAMES), level(busy, NAMES)) == STEADY


def test_what_errs_alone_is_no_change() -> None:
    found = [wander(level(noise(seed), NAMES), level(noise(seed + 500), NAMES)) for seed in range(300)]
    assert (
        sum(each != STEADY for each in found) <= 9
    )  # one in a hundred; more than 9 of 300: 0.1 % of all times


def test_operations_of_one_run_err_together() -> None:
    """Eight phases of one run that was slow are one thing that happened, not eight."""
    runs = noise(1, 4)
    series, names = np.repeat(runs, 8, axis=0), np.repeat(np.arange(4), 8)
    one, alone = level(series, names), level(runs, range(4))
    assert one is not None and alone is not None
    assert one.configurations == 4 and one.error == pytest.approx(alone.error)


def test_too_little_tells_nothing() -> None:
    assert level(noise(1, ENOUGH - 1), range(ENOUGH - 1)) is None
    assert level(noise(1, 16, 1), NAMES) is None
    assert wander(None, level(noise(1), NAMES)) == STEADY
    few = level(noise(1)[:, :2], NAMES, (0, 1))
    assert wander(few, level(noise(2)[:, :2], NAMES, (1, 2))) == STEADY  # one round in common


def test_rounds_that_are_missing_are_left_out() -> None:
    busy = np.tile([0.0, HALF, HALF, 0.0, 0.0], (16, 1)) + noise(3)
    whole = wander(level(busy, NAMES), level(noise(4), NAMES))
    some = busy.copy()
    some[::2, 4] = np.nan
    found = wander(level(some, NAMES), level(noise(4), NAMES))
    assert found.variance == pytest.approx(whole.variance, rel=0.2)


def test_a_claim_is_held_back_and_says_why() -> None:
    """A neighbour of one of two equal storages, who is there in the last rounds."""
    rates = simulated(Case("log-normal", 0.05), 5, np.random.default_rng(5))
    quiet = comparisons(table_of(rates))
    assert set(quiet[quiet["scope"] == "all"]["verdict"]) == {"undecided"}
    rates[:, 0, :, :, 3:] *= 0.7
    table = comparisons(table_of(rates))
    answers = table[table["scope"] == "all"]
    assert set(answers["verdict"]) == {"undecided"}
    assert all("one of the two changed against the other" in reason for reason in answers["reason"])
    assert all(row["low"] < 1 < row["high"] for _, row in answers.iterrows())
    # One that is five times as fast is so in every round.
    rates[:, 0] *= 5.0
    table = comparisons(table_of(rates))
    assert set(table[table["scope"] == "all"]["verdict"]) == {"higher"}
