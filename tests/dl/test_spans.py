"""Spans of time: unions and differences, against counting on a fine grid."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiercel.dl.kernel.spans import Spans, length, minus, union

PAIRS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 8)).map(lambda p: (float(p[0]), float(p[0] + p[1])))
)


def cells(pairs: list[tuple[float, float]]) -> set[int]:
    return {n for a, b in pairs for n in range(int(a), int(b))}


@given(PAIRS, PAIRS)
def test_against_counting(these: list[tuple[float, float]], those: list[tuple[float, float]]) -> None:
    a, b = union(these), union(those)
    assert length(a) == len(cells(these))
    assert cells(minus(a, b)) == cells(these) - cells(those)
    assert length(minus(a, b)) == len(cells(these) - cells(those))


@given(PAIRS)
def test_adding_one_by_one_is_the_union(pairs: list[tuple[float, float]]) -> None:
    spans = Spans()
    for start, end in pairs:
        spans.add(start, end)
    assert cells(spans.merged()) == cells(pairs)


def test_memory_is_bounded() -> None:
    spans = Spans()
    for number in range(300_000):
        spans.add(number * 1e-3, number * 1e-3 + 5e-4)
    assert len(spans.merged()) < 1 << 18
    assert length(spans.merged()) >= 150  # never less than the 300,000 half milliseconds
