"""Accuracy, regret and noise, on numbers that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tiercel.placement.score import best_of, differ, score


def table(a: list[float], b: list[float], error: float = 0.05) -> pd.DataFrame:
    found = pd.DataFrame({"bandwidth:a": a, "bandwidth:b": b, "error:a": error, "error:b": error})
    found.attrs["systems"] = ["a", "b"]
    return found


def test_accuracy_and_regret() -> None:
    # Best: a, b, a. Chosen: a, a, a. So 2 of 3 right; lost: 0, 1 - 100/400, 0 -> 0.25.
    t = table([200, 100, 100], [100, 400, 99])
    assert list(best_of(t)) == ["a", "b", "a"]
    s = score(t, np.array(["a", "a", "a"], dtype=object))
    assert (s.count, s.accuracy, s.regret) == (3, pytest.approx(2 / 3), pytest.approx(0.25))
    # 100 against 99 is 0.0145 in log2, below 2 * hypot(0.05, 0.05) = 0.141: these two do not differ.
    assert list(differ(t)) == [True, True, False]
    assert (s.differing, s.accuracy_where_differ, s.regret_where_differ) == (2, 0.5, pytest.approx(0.375))


def test_nothing_differs() -> None:
    s = score(table([100], [100.1]), np.array(["b"], dtype=object))
    assert s.differing == 0
    assert np.isnan(s.accuracy_where_differ)


def test_three_systems_compare_the_best_with_the_second() -> None:
    t = table([100, 100], [400, 101])
    t["bandwidth:c"], t["error:c"] = [399.0, 1.0], 0.05
    t.attrs["systems"] = ["a", "b", "c"]
    assert list(best_of(t)) == ["b", "b"]
    assert list(differ(t)) == [False, False]
