"""What touches of single pages say: numbers of which each is made up here, in microseconds."""

from __future__ import annotations

import random

import pytest

from tiercel.engines.behind import LEAST, fields, judge

#: As measured behind a loop device: of a page cache, of the disk below it.
HIT, MISS = 15e-6, 120e-6


def around(value: float, count: int, seed: int, sigma: float = 0.15) -> list[float]:
    dice = random.Random(seed)
    return [value * dice.lognormvariate(0, sigma) for _ in range(count)]


@pytest.mark.parametrize("hits", [0, 16, 64, 112])
def test_the_share_of_hits_is_told_where_there_are_misses(hits: int) -> None:
    first = around(HIT, hits, 1) + around(MISS, 128 - hits, 2)
    found = judge(first, around(HIT, 128, 3))
    # 15 us and 15 % of it: none is beyond 30 us, none of the misses below it.
    assert found is not None and found.share == pytest.approx(hits / 128)
    assert found.miss_time is not None and 0.9 * MISS < found.miss_time < 1.1 * MISS


def test_alike_touches_say_nothing_of_a_cache() -> None:
    for time in (HIT, MISS, 8e-3):
        found = judge(around(time, 128, 1), around(time, 128, 2))
        assert found is not None and (found.share, found.miss_time) == (1.0, None)


def test_a_drive_that_is_a_little_quicker_the_second_time_is_no_cache() -> None:
    """One broad hump that ends beyond the limit: which of it were hits cannot be told."""
    for seed in range(100):
        found = judge(around(95e-6, 256, seed, 0.3), around(50e-6, 256, seed + 1000))
        assert found is not None and (found.share is None or found.share < 0.1), seed


def test_a_busy_machine_makes_no_misses() -> None:
    """A third of all touches wait for a processor, first and second ones alike."""
    for seed in range(200):
        dice = random.Random(seed)
        first, second = ([HIT + (dice.random() < 1 / 3) * dice.expovariate(1 / 2e-3) for _ in range(128)]
                         for _ in range(2))  # fmt: skip
        found = judge(first, second)
        assert found is not None and found.miss_time is None, seed


def test_a_busy_machine_hides_no_misses() -> None:
    """Of the hits a third seem slow: they are held against second touches, of which a third seem slow too."""
    dice = random.Random(7)
    late = [(dice.random() < 1 / 3) * 1e-3 for _ in range(256)]
    first = [t + w for t, w in zip(around(HIT, 64, 1) + around(MISS, 64, 2), late[:128], strict=True)]
    second = [t + w for t, w in zip(around(HIT, 128, 3), late[128:], strict=True)]
    found = judge(first, second)
    assert found is not None and found.share is not None and 0.35 < found.share < 0.65


def test_few_touches_say_nothing() -> None:
    assert judge([MISS] * (LEAST - 1), [HIT] * (LEAST - 1)) is None
    assert fields([{"behind": None}, {}]) == {}


def test_repeats_are_taken_together() -> None:
    once = {"behind": {"first": [MISS] * 8, "second": [HIT] * 8}}
    assert fields([once]) == {}  # eight
    assert fields([once] * 2) == {
        "behind_alike": 0.0, "behind_hit_time": HIT, "behind_miss_time": MISS
    }  # fmt: skip
