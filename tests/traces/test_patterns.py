from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.traces import IOFrame
from tiercel.traces.analysis import patterns
from tiercel.traces.analysis.patterns import HISTORIES, Accesses

from .conftest import Event, call

Make = Callable[[list[Event]], IOFrame]


def access(at: int, write: bool, offset: int, size: int, file: str = "/d/f", pid: int = 10) -> Event:
    name = "pwrite" if write else "pread"
    return call(name, at, 1, pid=pid, ret=size, count=size, offset=offset, fname=file)


def test_access_pattern(frame_of: Make) -> None:
    # From 0: [0, 4) starts where nothing was read yet (byte 0): consecutive; [4, 8) consecutive;
    # [10, 12) leaves a gap: sequential; [0, 4) goes back: random.
    frame = frame_of([access(i, False, o, n) for i, (o, n) in enumerate([(0, 4), (4, 4), (10, 2), (0, 4)])])
    assert frame.access_pattern().loc["/d/f"].tolist() == [2, 1, 1, 4]


def test_each_process_and_each_direction_has_its_own_position(frame_of: Make) -> None:
    # Two processes read their halves in turns; each goes straight on. The one starting at 100 is sequential
    # at first. A write at 0 between is the first write: consecutive.
    frame = frame_of([
        access(0, False, 0, 10, pid=10), access(1, False, 100, 10, pid=11), access(2, False, 10, 10, pid=10),
        access(3, False, 110, 10, pid=11), access(4, True, 0, 5, pid=10),
    ])  # fmt: skip
    assert frame.access_pattern().loc["/d/f"].tolist() == [4, 1, 0, 5]


def test_order_is_time_not_the_order_of_lines(frame_of: Make) -> None:
    # Long calls are written to the trace after short ones that began later.
    frame = frame_of([access(5, False, 4, 4), access(0, False, 0, 4)])
    assert frame.access_pattern().loc["/d/f", "consecutive"] == 2


def test_readwrite_pattern(frame_of: Make) -> None:
    # write [0, 10): 10 WO. read [5, 15): [5, 10) RAW 5, [10, 15) RO 5. write [0, 12): [0, 5) WAW 5,
    # [5, 12) WAR 7. read [0, 15): [0, 12) RAW 12, [12, 15) RAR 3.
    frame = frame_of(
        [access(0, True, 0, 10), access(1, False, 5, 10), access(2, True, 0, 12), access(3, False, 0, 15)]
    )
    row = frame.readwrite_pattern().loc["/d/f"]
    assert row[list(HISTORIES)].to_dict() == {"RAR": 3, "RAW": 17, "WAR": 7, "WAW": 5, "RO": 5, "WO": 10}
    assert (row["read"], row["write"], row["unplaced"]) == (25, 22, 0)


def test_files_do_not_touch(frame_of: Make) -> None:
    frame = frame_of(
        [access(0, True, 0, 10, "/d/a"), access(1, False, 0, 10, "/d/b"), access(2, False, 0, 10, "/d/a")]
    )
    table = frame.readwrite_pattern()
    assert table.loc["/d/a", ["WO", "RAW"]].tolist() == [10, 10]
    assert table.loc["/d/b", "RO"] == 10


def test_unknown_positions_are_told(frame_of: Make) -> None:
    # read without an open before it: the trace does not say where.
    frame = frame_of([call("read", 0, 1, ret=7, count=7, fname="/d/f")])
    assert frame.readwrite_pattern().loc["/d/f", ["read", "unplaced"]].tolist() == [0, 7]
    assert frame.access_pattern().empty


OPERATIONS = st.lists(
    st.tuples(st.integers(0, 1), st.booleans(), st.integers(0, 20), st.integers(1, 12)),
    min_size=1,
    max_size=14,
)


@given(OPERATIONS, st.sampled_from([1, 3, 1 << 22]))
def test_histories_against_bytes(operations: list[tuple[int, bool, int, int]], pairs: int) -> None:
    """The oracle keeps what was done last for each byte; `pairs` cuts the line into slices of any size."""
    expected = np.zeros((2, 6), dtype=int)
    last: dict[tuple[int, int], bool] = {}
    for file, write, offset, size in operations:
        for byte in range(offset, offset + size):
            before = last.get((file, byte))
            name = (
                ("WO" if write else "RO")
                if before is None
                else f"{'W' if write else 'R'}A{'W' if before else 'R'}"
            )
            expected[file, HISTORIES.index(name)] += 1
            last[file, byte] = write
    ordered = sorted(operations, key=lambda o: o[0])  # stable: time order within a file
    columns = [np.array(c, dtype=np.int64) for c in zip(*ordered, strict=True)]
    accesses = Accesses(["a", "b"], columns[0], columns[0], columns[1].astype(bool), columns[2], columns[3])
    before_test = patterns._PAIRS
    patterns._PAIRS = pairs
    try:
        assert patterns.histories(accesses)[list(HISTORIES)].to_numpy().tolist() == expected.tolist()
    finally:
        patterns._PAIRS = before_test


def test_absurdly_sparse_files(frame_of: Make) -> None:
    # Each file ends near 2**62: together they do not fit onto one line of 64-bit bytes.
    far = 2**62 - 100
    frame = frame_of([access(i, True, far, 10, f"/d/{i}") for i in range(4)])
    assert frame.readwrite_pattern()["WO"].tolist() == [10] * 4


def test_little_memory_gives_the_same(frame_of: Make) -> None:
    events = [access(i, i % 3 == 0, (i * 7) % 50, 5, f"/d/{i % 9}", pid=10 + i % 2) for i in range(200)]
    frame = frame_of(events)
    little = replace(frame, memory=2 * 160 * 30)  # room for 30 accesses: one file at a time
    assert little.readwrite_pattern().equals(frame.readwrite_pattern())
    assert little.access_pattern().equals(frame.access_pattern())


def test_a_layer_that_is_none(frame_of: Make) -> None:
    with pytest.raises(Exception, match="did you mean posix"):
        frame_of([access(0, True, 0, 1)]).access_pattern(api="posx")
