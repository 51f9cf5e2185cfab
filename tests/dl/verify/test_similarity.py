"""The mathematics of paper 000, section V.B, on numbers that a reader can check."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.dl.verify.similarity import closeness, ratio, raw_cosine, similarity

# No amount of anything is below the smallest normal number, where halving one may give zero.
AMOUNTS = st.floats(0, 1e15, allow_nan=False, allow_subnormal=False)
VECTORS = st.dictionaries(st.sampled_from("abcdef"), AMOUNTS, min_size=1)


def test_the_papers_formula_by_hand() -> None:
    # x: 3 and 4 become 3/4 and 1; y: 100 and 50 become 1 and 1/2.
    # Product 0.75 + 0.5 = 1.25; lengths sqrt(0.5625 + 1) = 1.25 and sqrt(1 + 0.25) = 1.1180.
    assert similarity({"x": 3, "y": 100}, {"x": 4, "y": 50}) == pytest.approx(1.25 / (1.25 * math.sqrt(1.25)))
    # The raw cosine is that of y alone, nearly: (12 + 5000) / (sqrt(10009) * sqrt(2516)) = 0.99876.
    assert raw_cosine({"x": 3, "y": 100}, {"x": 4, "y": 50}) == pytest.approx(0.99876, abs=1e-5)
    assert closeness({"x": 3, "y": 100}, {"x": 4, "y": 50}) == pytest.approx((0.75 + 0.5) / 2)


def test_one_metric_that_only_one_program_has() -> None:
    # Two equal metrics and one that is missing: (1,1,1) and (1,1,0): 2 / (sqrt 3 * sqrt 2).
    assert similarity({"a": 5, "b": 7, "c": 9}, {"a": 5, "b": 7, "c": None}) == pytest.approx(
        2 / math.sqrt(6)
    )


def test_metrics_that_neither_has_say_nothing() -> None:
    assert similarity({"a": 5, "w": 0.0}, {"a": 5, "w": None}) == 1.0
    assert math.isnan(similarity({"w": 0.0}, {"w": 0.0}))


def test_a_shared_factor_is_seen_by_closeness_alone() -> None:
    half = {"a": 1.0, "b": 10.0, "c": 100.0}
    whole = {name: 2 * value for name, value in half.items()}
    assert similarity(half, whole) == pytest.approx(1.0)
    assert closeness(half, whole) == pytest.approx(0.5)


@given(VECTORS)
def test_a_program_is_like_itself(values: dict[str, float]) -> None:
    found = similarity(values, values)
    assert math.isnan(found) if not any(values.values()) else found == pytest.approx(1.0)


@given(VECTORS, VECTORS)
def test_order_does_not_matter_and_all_lies_between_0_and_1(a: dict[str, float], b: dict[str, float]) -> None:
    for measure in (similarity, closeness):
        one, other = measure(a, b), measure(b, a)
        assert (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other)
        assert math.isnan(one) or 0.0 <= one <= 1.0


@given(VECTORS, VECTORS, st.floats(1e-3, 1e3))
def test_units_do_not_matter(a: dict[str, float], b: dict[str, float], unit: float) -> None:
    # Whether a metric is in bytes or in KiB: the scaled vectors are the same.
    def scaled(values: dict[str, float]) -> dict[str, float]:
        return {name: value * unit if name == "a" else value for name, value in values.items()}

    one, other = similarity(a, b), similarity(scaled(a), scaled(b))
    assert (math.isnan(one) and math.isnan(other)) or one == pytest.approx(other)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_what_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"a: .* not amounts"):
        similarity({"a": value}, {"a": 1.0})


def test_ratio() -> None:
    assert ratio(3.0, 4.0) == 0.75
    assert ratio(3.0, 0.0) is None
    assert ratio(None, 4.0) is None
