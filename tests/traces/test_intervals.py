"""Unions of intervals against an oracle that counts nanosecond by nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tiercel.traces.analysis.intervals import Intervals, difference, joined, shifted, union

#: (start, length) on a line of 60: short enough to meet often.
SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10)), max_size=12)


def made(spans: list[tuple[int, int]]) -> Intervals:
    starts = np.array([s for s, _ in spans], dtype=np.int64)
    return union(starts, starts + np.array([n for _, n in spans], dtype=np.int64))


def covered(spans: list[tuple[int, int]]) -> set[int]:
    return {t for s, n in spans for t in range(s, s + n)}


def points(intervals: Intervals) -> set[int]:
    return {t for s, e in zip(intervals.starts, intervals.ends, strict=True) for t in range(s, e)}


@given(SPANS)
def test_union(spans: list[tuple[int, int]]) -> None:
    found = made(spans)
    assert points(found) == covered(spans)
    assert found.length == len(covered(spans))
    # Disjoint, in order, with gaps between: each is as long as it can be.
    assert (found.starts < found.ends).all()
    assert (found.starts[1:] > found.ends[:-1]).all()


@given(SPANS, SPANS)
def test_intersection_by_lengths(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    one, other = made(a), made(b)
    both = joined([one, other])
    assert one.length + other.length - both.length == len(covered(a) & covered(b))


@given(SPANS, SPANS)
def test_difference(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert points(difference(made(a), made(b))) == covered(a) - covered(b)


@given(st.lists(SPANS, min_size=1, max_size=4))
def test_groups_in_one_sort(ranks: list[list[tuple[int, int]]]) -> None:
    """Ranks shifted by a multiple of 100 never touch; each keeps its length, their union is the job's."""
    whole = made([(s + 100 * rank, n) for rank, spans in enumerate(ranks) for s, n in spans])
    assert whole.lengths(100, len(ranks)).tolist() == [len(covered(spans)) for spans in ranks]
    assert points(shifted(whole, 100)) == set().union(*(covered(spans) for spans in ranks))


def test_nothing() -> None:
    nothing = made([])
    assert nothing.length == 0
    assert difference(nothing, made([(0, 5)])).length == 0
    assert made([(3, 0)]).length == 0
