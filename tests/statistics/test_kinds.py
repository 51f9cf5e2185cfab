"""What the scales of one workload have in common in a round, on one storage and not on the other."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.decisions import Case, simulated
from tests.statistics.test_placements import table_of

from tiercel.statistics.kinds import Kind, changed, kind
from tiercel.statistics.tables import comparisons
from tiercel.statistics.wander import STEADY, carried

ROUNDS = np.array([1.0, -1.0, 1.0, -1.0])
WHOLE = carried(5).variance


def test_scales_that_err_together_and_alone() -> None:
    """Scales alike: the mean varies as each does, 4 / 3, and nothing is left. Scales opposite: no mean
    varies; squares of 8 on one side of two, 3 degrees of freedom each, and half of it in the mean of two."""
    steady = np.zeros((2, 4))
    assert kind(np.array([ROUNDS, ROUNDS]), steady) == Kind(pytest.approx(4 / 3), 3, 0.0, 6)
    assert kind(np.array([ROUNDS, -ROUNDS]), steady) == Kind(0.0, 3, pytest.approx(8 / 3 / 2), 6)
    # What both storages have in common is no change between them.
    assert kind(np.array([ROUNDS, ROUNDS]), np.array([ROUNDS, ROUNDS])) == Kind(0.0, 3, 0.0, 6)
    gap = np.array([ROUNDS, [1.0, -1.0, np.nan, -1.0]])
    assert kind(gap, steady) == kind(gap[:, [0, 1, 3]], steady[:, :3])
    assert kind(steady[:1], steady[:1]) is None and kind(steady[:, :1], steady[:, :1]) is None


def test_the_variance_is_what_scales_have_in_common() -> None:
    """Four times as much as alone, in 16 workloads: three of the four parts are shared."""
    each = Kind(4.0, 4, 1.0, 8)
    found = changed({(work, "write", ""): each for work in range(16)})
    assert found[0, "write", ""].variance == pytest.approx(WHOLE * 3.0)
    assert found[0, "write", ""].freedom == 12
    # Noise of a hundredth, in the same proportion: a hundredth.
    mixed = {(work, "write", ""): Kind(0.04, 4, 0.01, 8) if work else each for work in range(16)}
    assert changed(mixed)[1, "write", ""].variance == pytest.approx(WHOLE * 0.03)


def test_one_workload_alone_or_none_tells_nothing() -> None:
    """F of 4 with 4 and 8 degrees of freedom has p = 0.045."""
    assert changed({(0, "write", ""): Kind(4.0, 4, 1.0, 8)}) == {(0, "write", ""): STEADY}
    assert changed({}) == {}
    same = {(work, "write", ""): Kind(0.0, 4, 0.0, 8) for work in range(16)}
    assert set(changed(same).values()) == {STEADY}


def test_operations_of_one_workload_count_as_one() -> None:
    """Eight operations of a run that was slow are one thing that happened."""
    found = changed({(0, f"{number}", ""): Kind(4.0, 4, 1.0, 8) for number in range(8)})
    assert set(found.values()) == {STEADY}


def test_an_operation_is_looked_at_by_itself() -> None:
    quiet = {(work, "write", ""): Kind(1.0, 4, 1.0, 8) for work in range(40)}
    hit = {(work, "stat", ""): Kind(6.0, 4, 1.0, 8) for work in range(4)}
    found = changed(quiet | hit)
    # Over all 44 the ratio is 1.15, which chance gives in one of six; of the four alone it is 6.
    assert found[0, "stat", ""].variance == pytest.approx(WHOLE * 5.0)
    assert found[0, "write", ""] == STEADY


@pytest.mark.parametrize("world", ["kinds", "one-kind"])
def test_a_claim_is_held_back(world: str) -> None:
    """Neighbours who come and go, of one kind of I/O each, on two equal storages."""
    rates = simulated(Case("log-normal", 0.1, world=world), 5, np.random.default_rng(2))
    table = comparisons(table_of(rates))
    whole = table[table["scope"] == "all"]
    assert set(whole["verdict"]) == {"undecided"}
    assert whole["reason"].str.startswith("one of the two changed against the other").any()
