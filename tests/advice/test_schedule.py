"""A run is reckoned from its calls, its gaps and its waits."""

from __future__ import annotations

import numpy as np
import pytest

from tiercel.advice.schedule import run_seconds
from tiercel.placement.recipe import FileRecord, Operation, Recipe

MS = 1_000_000


def recipe(streams: list[list[Operation]], begins: list[list[tuple[int, int]]]) -> Recipe:
    return Recipe([FileRecord("a"), FileRecord("b")], streams, begins)


def each(read: float, write: float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of one read of file 0 and of one write of file 1; other calls take nothing."""
    return np.array([[read, 0, 0, 0], [0, write, 0, 0]]), np.array([[1.0, 1, 1, 1], [1, 1, 1, 1]])


def test_one_stream_is_its_gaps_and_calls() -> None:
    one = recipe([[Operation("R", 0, 0, 1, 5 * MS, []), Operation("W", 1, 0, 1, 7 * MS, [])]], [[]])
    assert run_seconds(one, *each(0.020, 0.030)) == pytest.approx(0.005 + 0.020 + 0.007 + 0.030)
    assert run_seconds(one, *each(0.0, 0.0)) == pytest.approx(0.012)


def test_a_wait_counts_from_the_later_of_both_ends() -> None:
    # Stream 1 writes 10 ms after stream 0 has read, in 40 ms; by itself it is ready after 2 + 10 ms.
    streams = [
        [Operation("R", 0, 0, 1, 0, [])],
        [Operation("T", 1, 0, 0, 2 * MS, []), Operation("W", 1, 0, 1, 10 * MS, [(0, 1)])],
    ]
    assert run_seconds(recipe(streams, [[], []]), *each(0.040, 0.001)) == pytest.approx(0.040 + 0.010 + 0.001)
    # A faster read does not help beyond what stream 1 does by itself.
    assert run_seconds(recipe(streams, [[], []]), *each(0.0, 0.001)) == pytest.approx(0.002 + 0.010 + 0.001)


def test_a_stream_that_begins_after_another_does() -> None:
    streams = [[Operation("R", 0, 0, 1, 0, [])], [Operation("W", 1, 0, 1, 3 * MS, [])]]
    assert run_seconds(recipe(streams, [[], [(0, 1)]]), *each(0.050, 0.010)) == pytest.approx(0.063)
    assert run_seconds(recipe(streams, [[], []]), *each(0.050, 0.010)) == pytest.approx(0.050)


def test_a_call_of_a_file_takes_its_mean() -> None:
    two = recipe([[Operation("R", 0, 0, 1, 0, []), Operation("R", 0, 0, 1, 0, [])]], [[]])
    seconds, calls = each(0.030, 0.0)
    calls[0, 0] = 2  # 30 ms in two reads: 15 ms each, 30 ms together
    assert run_seconds(two, seconds, calls) == pytest.approx(0.030)
