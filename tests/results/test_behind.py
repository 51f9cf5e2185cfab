"""What sampled pages say of a cache behind the client: made times (µs), and what noise must not say."""

from __future__ import annotations

import random

import pytest

from tiercel.results.behind import FLOOR_US, Behind, judge


def times(first: list[float], again: float) -> dict[str, list[float]]:
    return {"first": first, "second": [again] * len(first), "third": [again] * len(first)}


def test_quicker_the_second_time_and_half_of_it_the_first() -> None:
    """32 of 64 pages take 5 ms, the others 0.2 ms as all do later: half of them were there already."""
    found = judge(times([200.0, 5000.0] * 32, 200.0))
    assert found == Behind(pytest.approx(0.5), pytest.approx(200e-6), pytest.approx(5e-3))


def test_all_from_the_medium_is_known_where_a_cache_takes_it_in() -> None:
    assert judge(times([5000.0] * 64, 200.0)).fraction == 0


def test_sooner_than_any_medium() -> None:
    assert judge(times([14.0] * 64, 14.0)) == Behind(1.0, pytest.approx(14e-6), None)
    # A busy machine answers late: what is quick is from memory, of the rest nobody knows.
    assert judge(times([14.0, 90.0] * 32, 60.0)).fraction == pytest.approx(0.5)


@pytest.mark.parametrize("time", [FLOOR_US + 1, 80.0, 500.0, 8000.0])
def test_what_is_the_same_every_time_says_nothing(time: float) -> None:
    """A disk without a cache, or all in the memory of a server far away: alike from here."""
    assert judge(times([time] * 64, time)) == Behind(None, None, pytest.approx(time / 1e6))


@pytest.mark.parametrize(
    "sample",
    [
        None,
        {},
        {"first": [1.0] * 64},
        times([14.0] * 15, 14.0),  # four blocks of four at least
        {"first": [14.0] * 64, "second": [14.0] * 63, "third": [14.0] * 64},
        {"first": [float("nan")] * 64, "second": [14.0] * 64, "third": [14.0] * 64},
        {"first": "abc", "second": None, "third": 3},
    ],
)
def test_what_is_not_whole_says_nothing(sample: object) -> None:
    assert judge(sample) == Behind()  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", ["log-normal", "heavy tails", "bursts", "slower at first"])
def test_noise_alone_is_no_cache(noise: str) -> None:
    """A flash disk at 80 µs, read under disturbances that know nothing of first and second."""
    rng = random.Random(7)

    def block(at: int, read: int) -> list[float]:
        if noise == "log-normal":
            return [80 * rng.lognormvariate(0, 0.5) for _ in range(4)]
        if noise == "heavy tails":
            return [80 + 20 * rng.paretovariate(0.8) for _ in range(4)]
        if noise == "bursts":  # another program takes the processor for a while
            return [80.0 * (30 if rng.random() < 0.15 else 1)] * 4
        return [80.0 * (3 if at == read == 0 else 1) * rng.lognormvariate(0, 0.2) for _ in range(4)]

    told = 0
    for _ in range(500):
        sample: dict[str, list[float]] = {"first": [], "second": [], "third": []}
        for at in range(16):
            for read, name in enumerate(sample):
                sample[name] += block(at, read)
        found = judge(sample).fraction
        told += found is not None and found >= 0.1
    assert told <= 2  # of 500


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.65])
def test_the_share_is_right_under_noise(share: float) -> None:
    """Hits at 150 µs, the medium at 1 ms, both with 30 % of scatter: right in the mean over 200 samples."""
    rng = random.Random(11)
    found = []
    for _ in range(200):
        first = [(150 if rng.random() < share else 1000) * rng.lognormvariate(0, 0.3) for _ in range(64)]
        near = [[150 * rng.lognormvariate(0, 0.3) for _ in range(64)] for _ in range(2)]
        answer = judge({"first": first, "second": near[0], "third": near[1]}).fraction
        if answer is not None:
            found.append(answer)
    assert len(found) > 150
    assert sum(found) / len(found) == pytest.approx(share, abs=0.05)
