"""The assignment is the best one that fits: checked against trying all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiercel.errors import UserError
from tiercel.placement.optimise import assign


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 3))
def test_no_other_assignment_that_fits_is_cheaper(seed: int, bundles: int, systems: int) -> None:
    chance = np.random.default_rng(seed)
    cost, size = chance.random((bundles, systems)) * 100, chance.integers(1, 2**40, bundles).astype(float)
    capacity = np.where(chance.random(systems) < 0.5, np.inf, chance.integers(1, 2**41, systems)).astype(
        float
    )
    allowed = chance.random((bundles, systems)) < 0.8
    fits = {}
    for choice in product(range(systems), repeat=bundles):
        if all(allowed[b, s] for b, s in enumerate(choice)) and all(
            sum(size[b] for b, s in enumerate(choice) if s == system) <= capacity[system]
            for system in range(systems)
        ):
            fits[choice] = sum(cost[b, s] for b, s in enumerate(choice))
    if not fits:
        with pytest.raises(UserError, match="no assignment fits"):
            assign(cost, size, capacity, allowed)
        return
    answer = tuple(int(s) for s in assign(cost, size, capacity, allowed).system)
    assert fits[answer] == pytest.approx(min(fits.values()), rel=1e-6)


def test_greedy_by_gain_would_be_wrong() -> None:
    # Room for 10: the file with the largest gain (6 for 10 bytes) crowds out two that gain 5 each for 5
    # bytes.
    cost = np.array([[6.0, 0.0], [5.0, 0.0], [5.0, 0.0]])
    answer = assign(cost, np.array([10.0, 5.0, 5.0]), np.array([np.inf, 10.0]), np.ones((3, 2), dtype=bool))
    assert list(answer.system) == [0, 1, 1]
