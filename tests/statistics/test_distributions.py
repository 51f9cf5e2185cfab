"""The three distributions, against `scipy.stats`: other code for the same numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tiercel.statistics.distributions import chi2_bound, f_above, f_bound, t_beyond, t_bound

freedoms = st.floats(0.5, 1e6)
chances = st.floats(1e-8, 1 - 1e-8)
values = st.floats(1e-3, 1e3)


@given(values, freedoms, chances)
def test_student(value: float, freedom: float, chance: float) -> None:
    expected = pytest.approx(2 * stats.t.sf(value, freedom), rel=1e-9, abs=1e-300)
    assert t_beyond(value, freedom) == t_beyond(-value, freedom) == expected
    assert t_bound(chance, freedom) == pytest.approx(stats.t.isf(chance, freedom), rel=1e-9, abs=1e-12)


@given(values, st.integers(1, 40), freedoms, chances)
def test_fisher(value: float, over: int, under: float, chance: float) -> None:
    assert f_above(value, over, under) == pytest.approx(stats.f.sf(value, over, under), rel=1e-9, abs=1e-300)
    assert f_bound(chance, over, under) == pytest.approx(stats.f.isf(chance, over, under), rel=1e-9)


@given(st.integers(1, 200), chances)
def test_chi_squared(freedom: int, chance: float) -> None:
    assert chi2_bound(chance, freedom) == pytest.approx(stats.chi2.isf(chance, freedom), rel=1e-7)


def test_printed_tables() -> None:
    """From the tables at the end of any textbook."""
    assert round(t_bound(0.025, 10), 3) == 2.228
    assert round(t_bound(0.025, math.inf), 3) == 1.960
    assert round(f_bound(0.05, 3, 12), 2) == 3.49
    assert round(chi2_bound(0.05, 5), 3) == 11.070
    assert round(t_beyond(2.228, 10), 3) == 0.050


def test_nothing_is_known_of_no_freedom() -> None:
    assert math.isnan(t_beyond(1.0, 0.0)) and math.isnan(t_bound(0.025, math.nan))
    assert math.isnan(t_beyond(math.nan, 3.0)) and math.isnan(f_above(math.nan, 2, 3))
