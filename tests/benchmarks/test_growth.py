"""The exponent with which cost grows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benchmarks.growth.fit import Row, exponent_of


def _rows(cost: Callable[[int], float]) -> list[Row]:
    return [Row(size, cost(size), 1.0, 1, 0, 0) for size in (10, 100, 1_000, 10_000)]


@pytest.mark.parametrize("exponent", [1, 2])
def test_the_cost_of_starting_is_no_part_of_the_exponent(exponent: int) -> None:
    found, reason = exponent_of(_rows(lambda size: 1.5 + 0.01 * size**exponent))
    assert reason == "" and found == pytest.approx(exponent, abs=0.05)


def test_a_cost_that_does_not_grow_has_no_exponent() -> None:
    assert exponent_of(_rows(lambda size: 1.5 + 1e-7 * size))[0] is None


def test_a_size_that_took_too_long_is_named() -> None:
    rows = [*_rows(float)[:2], Row(1_000, None, None, None, None, None, "longer than 9 s")]
    assert exponent_of(rows) == (None, "longer than 9 s")
