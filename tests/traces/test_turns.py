"""Whether ranks take turns in a file: by offset, not by who came first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.traces.analysis.patterns import Accesses
from tiercel.traces.analysis.turns import turns

Access = tuple[int, int, bool, int, int]  # file, owner, write, offset, size


def accesses(rows: list[Access]) -> Accesses:
    file, owner, write, offset, size = (np.array(c, dtype=np.int64) for c in zip(*rows, strict=True))
    return Accesses(["a", "b"], file, (file * 4 + owner) * 2 + write, write.astype(bool), offset, size)


def written(*pieces: tuple[int, int]) -> list[Access]:
    """Pieces of 4 bytes: (owner, place)."""
    return [(0, owner, True, place * 4, 4) for owner, place in pieces]


@pytest.mark.parametrize(
    ("rows", "in_turn"),
    [
        (written((0, 0), (0, 1), (1, 2), (1, 3)), 0),  # AABB
        (written((0, 0), (1, 1), (0, 2), (1, 3)), 2),  # ABAB: each but the first of either
        (written((1, 3), (0, 2), (1, 1), (0, 0)), 2),  # the same, backwards in time
        (written((0, 0), (0, 2), (1, 4), (1, 6)), 0),  # A.A.B.B.: gaps that all leave
        (written((0, 0), (1, 0), (0, 1), (1, 1)), 0),  # both the same
        (written((0, 0), (1, 0), (0, 2), (1, 2)), 0),  # both the same, over a gap
        (written((0, 0), (0, 2), (1, 1)), 1),  # ABA
        ([(0, 0, True, 0, 4), (0, 1, False, 4, 4), (0, 0, True, 8, 4)], 0),  # a reader between writers
        ([(0, 0, True, 0, 4), (1, 1, True, 4, 4), (0, 0, True, 8, 4)], 0),  # of another file
    ],
)
def test_turns_by_hand(rows: list[Access], in_turn: int) -> None:
    found = turns(accesses(sorted(rows, key=lambda row: row[0])))
    assert found.sum() == found[0, 1] == in_turn


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 3), st.booleans(), st.integers(0, 12), st.integers(1, 5)),
        min_size=1,
        max_size=16,
    )
)
def test_turns_against_the_definition(rows: list[Access]) -> None:
    """For each access, the one before it of the same owner by offset; does another begin in the gap?"""
    expected = np.zeros((2, 2), dtype=int)
    ordered = sorted(enumerate(rows), key=lambda r: (r[1][3], r[0]))
    for place, (_, (file, owner, write, offset, _)) in enumerate(ordered):
        mine = [r for _, r in ordered[:place] if (r[0], r[1], r[2]) == (file, owner, write)]
        if not mine:
            continue
        end = mine[-1][3] + mine[-1][4]
        others = [r[3] for r in rows if r[0] == file and r[2] == write and r[1] != owner]
        expected[file, int(write)] += any(end <= begin < offset for begin in others)
    found = turns(accesses(sorted(rows, key=lambda row: row[0])))
    assert found.tolist() == expected.tolist()
