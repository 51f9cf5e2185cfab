"""What a tracer added to each call follows from what the program computed."""

from __future__ import annotations

import pytest

from tiercel.placement.delay import Delay, fitted


def fitted_to(delay: Delay, gaps: list[float], calls: list[int], outside: tuple[float, int]) -> float:
    return fitted(delay, gaps, calls, outside, delay.computed(0, 0.0))


def test_what_the_tracer_adds_to_processor_time_is_taken_out() -> None:
    # 0.6 s of user and 0.5 s of system time, 10 and 20 us of it for each of 10,000 calls, which took 0.1 s.
    delay = Delay(1e-4, 0.6, 9.0, 0.5, 1e-5, 2e-5)
    assert delay.computed(10_000, 0.1) == pytest.approx(0.5 + 0.2)
    # Of 100,000 calls it would be more than there is: half of the user time stays.
    assert delay.computed(100_000, 0.1) == pytest.approx(0.3)
    assert Delay(1e-4, None, 9.0).computed(10, 0.1) is None


def test_many_calls_in_the_gaps_are_no_sleep() -> None:
    """4 s of gaps with 10,000 calls that a queue of three before the tracer delayed by 0.4 ms each."""
    assert fitted_to(Delay(1e-4, 0.02, 9.0), [4.0], [10_000], (0.0, 0)) == pytest.approx(3.98e-4)


def test_gaps_are_what_the_program_computed() -> None:
    # 0.8 s in gaps and before, 300 calls in them: 0.2 s of user time leave 0.6 s to the tracer, 2 ms a call.
    found = fitted_to(Delay(1e-3, 0.2, 9.0), [0.3, 0.3], [100, 100], (0.2, 100))
    assert found == pytest.approx(2e-3, rel=1e-6)


def test_a_gap_without_calls_has_nothing_of_the_tracer() -> None:
    # 0.5 s without a call, 0.3 s with 100: 0.7 s of user time leave 0.1 s for these.
    assert fitted_to(Delay(1e-3, 0.7, 9.0), [0.5, 0.3], [0, 100], (0.0, 0)) == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("delay", "gaps"),
    [
        (Delay(1e-3, None, 9.0), [0.3]),  # nobody knows what it computed
        (Delay(1e-3, 0.0, 9.0), [0.3]),
        (Delay(1e-3, 0.1, 9.0), [5.0]),  # it slept
    ],
)
def test_without_a_measure_what_was_measured_beforehand_holds(delay: Delay, gaps: list[float]) -> None:
    assert fitted_to(delay, gaps, [10], (0.0, 0)) == 1e-3


def test_it_stays_within_reason() -> None:
    assert fitted_to(Delay(1e-3, 100.0, 9.0), [0.3], [100], (0.0, 0)) == pytest.approx(0.2e-3, rel=1e-6)
    assert fitted_to(Delay(1e-3, 0.5, 9.0), [1.5], [100], (0.0, 0)) == pytest.approx(5e-3, rel=1e-6)
