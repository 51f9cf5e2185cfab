"""The assignment is the best one that fits: checked against trying all of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult

from tiercel.errors import UserError
from tiercel.placement import optimise
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


ANYWHERE = np.array([np.inf, np.inf])


def everywhere(bundles: int, systems: int = 2) -> np.ndarray:
    return np.ones((bundles, systems), dtype=bool)


def test_nothing_is_assigned_at_once() -> None:
    answer = assign(np.empty((0, 2)), np.empty(0), ANYWHERE, everywhere(0))
    assert answer.system.tolist() == [] and answer.gap == 0.0


def test_a_system_may_be_full_to_the_byte_and_not_beyond() -> None:
    cost = np.array([[1.0, 0.0], [1.0, 0.0]])
    size = np.array([2.0**40, 1.0])
    assert assign(cost, size, np.array([np.inf, 2.0**40 + 1]), everywhere(2)).system.tolist() == [1, 1]
    # One byte less than both need, of 10^12: less than the solver can see.
    room = np.array([np.inf, 2.0**40])
    answer = assign(cost, size, room, everywhere(2))
    assert answer.system.tolist() in ([0, 1], [1, 0]) and answer.gap == 0.0
    # The large one must stay, and fills its system alone: the other's place is told, nothing else fits.
    stays = np.array([[False, True], [True, True]])
    assert assign(cost, size, room, stays).system.tolist() == [1, 0]


def test_what_may_not_move_takes_its_room() -> None:
    allowed = np.array([[False, True], [True, True], [True, True]])
    cost = np.array([[0.0, 9.0], [3.0, 0.0], [5.0, 0.0]])
    answer = assign(cost, np.array([6.0, 4.0, 4.0]), np.array([np.inf, 10.0]), allowed)
    assert answer.system.tolist() == [1, 0, 1] and answer.gap == 0.0


def test_an_empty_file_fits_where_there_is_no_room() -> None:
    answer = assign(np.array([[2.0, 1.0]]), np.array([0.0]), np.array([np.inf, 0.0]), everywhere(1))
    assert answer.system.tolist() == [1]


@pytest.mark.parametrize(
    ("size", "capacity"),
    [([11.0], [10.0, 5.0]), ([6.0, 6.0], [10.0, 5.0])],
    ids=["larger than any", "one too many"],
)
def test_what_does_not_fit_is_said(size: list[float], capacity: list[float]) -> None:
    with pytest.raises(UserError, match=r"^no assignment fits: .*raise --capacity, or name fewer files"):
        assign(np.ones((len(size), 2)), np.array(size), np.array(capacity), everywhere(len(size)))


def stopped(bound: float, choice: list[float] | None) -> Callable[..., OptimizeResult]:
    """A search that time ended: the best choice so far, and what is proven."""

    def search(*_: object, **options: object) -> OptimizeResult:
        assert options["options"] == {"time_limit": 60.0, "mip_rel_gap": 0.0}
        return OptimizeResult(x=None if choice is None else np.array(choice), mip_dual_bound=bound)

    return search


#: Room for one of two: costs 8 + 0 or 0 + 10; largest cost 10, so that the solver sees tenths of it.
_COST, _SIZE, _ROOM = np.array([[8.0, 0.0], [10.0, 0.0]]), np.array([5.0, 5.0]), np.array([np.inf, 5.0])


def test_a_search_that_time_ended_says_how_far_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known: 8 of 10, which the relaxation gives too; proven: no less than 6 of 10. (0.8 - 0.6) / 0.8."""
    monkeypatch.setattr(optimise, "milp", stopped(0.6, None))
    answer = assign(_COST, _SIZE, _ROOM, everywhere(2))
    assert answer.system.tolist() == [0, 1]
    assert answer.gap == pytest.approx(0.25)


def test_a_gap_that_the_solver_cannot_see_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimise, "milp", stopped(0.8 * (1 - 1e-7), None))
    assert assign(_COST, _SIZE, _ROOM, everywhere(2)).gap == 0.0


def test_many_bundles_are_as_good_as_the_relaxation_allows() -> None:
    """1,000 bundles of one byte, room for 300: those that gain most (n seconds) are moved.

    All of it stays for 1 + ... + 1,000 = 500,500; moved are 701 to 1,000, which gain 255,150.
    """
    gain = np.random.default_rng(3).permutation(np.arange(1.0, 1001.0))
    cost = np.column_stack([gain, np.zeros(1000)])
    answer = assign(cost, np.ones(1000), np.array([np.inf, 300.0]), everywhere(1000))
    assert cost[np.arange(1000), answer.system].sum() == 500_500 - 255_150
    assert set(gain[answer.system == 1]) == set(np.arange(701.0, 1001.0))
    assert answer.gap == 0.0
