"""What a tracer added to each call follows from what the program computed."""

from __future__ import annotations

import pytest

from tiercel.placement.delay import Delay, fitted


def test_gaps_are_what_the_program_computed() -> None:
    # 0.8 s in gaps and before, 300 calls in them: 0.2 s of user time leave 0.6 s to the tracer, 2 ms a call.
    found = fitted(Delay(1e-3, 0.2, 9.0), [0.3, 0.3], [100, 100], (0.2, 100))
    assert found == pytest.approx(2e-3, rel=1e-6)


def test_a_gap_without_calls_has_nothing_of_the_tracer() -> None:
    # 0.5 s without a call, 0.3 s with 100: 0.7 s of user time leave 0.1 s for these.
    assert fitted(Delay(1e-3, 0.7, 9.0), [0.5, 0.3], [0, 100], (0.0, 0)) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("delay", "gaps"),
    [
        (Delay(1e-3, None, 9.0), [0.3]),  # nobody knows what it computed
        (Delay(1e-3, 0.0, 9.0), [0.3]),
        (Delay(1e-3, 0.1, 9.0), [5.0]),  # it slept
    ],
)
def test_without_a_measure_what_was_measured_beforehand_holds(delay: Delay, gaps: list[float]) -> None:
    assert fitted(delay, gaps, [10], (0.0, 0)) == 1e-3


def test_it_stays_within_reason() -> None:
    assert fitted(Delay(1e-3, 100.0, 9.0), [0.3], [100], (0.0, 0)) == pytest.approx(0.2e-3, rel=1e-6)
    assert fitted(Delay(1e-3, 0.5, 9.0), [1.5], [100], (0.0, 0)) == pytest.approx(5e-3, rel=1e-6)
