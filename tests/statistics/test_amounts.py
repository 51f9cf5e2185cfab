"""Storages that did different amounts, because a study aimed at a time: compared, and said."""

from __future__ import annotations

import math

from tiercel.report.page_tables import _amounts
from tiercel.statistics.tables import comparisons

from .rows import Rows, rows


def two(slow: int, fast: int, **words: object) -> Rows:
    """Five repetitions of a storage that is twice as fast as another, each moving so many bytes a process."""
    both = rows([100, 101, 102, 103, 104], storage="slow", bytes_per_process=slow, **words)
    return both + rows([200, 202, 204, 206, 208], storage="fast", bytes_per_process=fast, **words)


def test_other_amounts_are_compared_where_a_study_aims_at_a_time() -> None:
    (row,) = comparisons(two(2**26, 2**27, phase_time=1.0)).to_dict("records")
    assert (row["storage_a"], row["storage_b"]) == ("fast", "slow")
    assert round(row["ratio"], 3) == 2.0
    assert (row["amount_a"], row["amount_b"]) == (2**27, 2**26)
    assert _amounts({str(k): v for k, v in row.items()}) == "128 MiB : 64 MiB"


def test_other_amounts_of_fixed_sizes_are_no_pair_as_before() -> None:
    assert comparisons(two(2**26, 2**27)).empty
    assert comparisons(
        rows([1, 2, 3], storage="slow", bytes_per_process=8, phase_time=1.0)
        + rows([1, 2, 3], storage="fast", bytes_per_process=16, phase_time=2.0)
    ).empty


def test_the_same_amount_is_nothing_to_tell() -> None:
    for frame in (two(2**26, 2**26), two(2**26, 2**26, phase_time=1.0)):
        (row,) = comparisons(frame).to_dict("records")
        assert math.isnan(row["amount_a"]) and math.isnan(row["amount_b"])
        assert _amounts({str(k): v for k, v in row.items()}) == ""


def test_items_are_told_as_items() -> None:
    words = {"operation": "file-create", "phase_time": 1.0, "bandwidth": math.nan}
    frame = rows([1] * 5, storage="slow", items_per_process=64, operation_rate=10.0, **words)
    frame += rows([1] * 5, storage="fast", items_per_process=4096, operation_rate=700.0, **words)
    (row,) = comparisons(frame).to_dict("records")
    assert _amounts({str(k): v for k, v in row.items()}) == "4 096 items : 64 items"


def test_a_table_of_before_there_was_a_phase_time() -> None:
    old = two(2**26, 2**26).drop(columns=["phase_time", "look"])
    assert len(comparisons(old)) == 1
