"""The histogram and the time series, against what a list of all values says."""

import collections
import math
import pathlib
import subprocess

import pytest
from hypothesis import given, settings, strategies

HERE = pathlib.Path(__file__).parent
# 2^56 ns are two years; the sum of 60 of them still fits into 63 bits
VALUES = strategies.lists(
    strategies.one_of(
        strategies.integers(0, 70), strategies.integers(0, 10**7), strategies.integers(0, 2**56)
    ),
    max_size=60,
)


def compiled(name, source, folder):
    program = folder / name
    subprocess.run(
        [
            "cc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
            f"-I{source / 'src'}",
            "-o",
            program,
            HERE / f"{name}_main.c",
            source / "src" / f"{name}.c",
            "-lm",
        ],
        check=True,
    )
    return program


@pytest.fixture(scope="session")
def histogram(source, tmp_path_factory):
    return compiled("histogram", source, tmp_path_factory.mktemp("histogram"))


@pytest.fixture(scope="session")
def timeseries(source, tmp_path_factory):
    return compiled("timeseries", source, tmp_path_factory.mktemp("timeseries"))


@settings(max_examples=80)
@given(values=VALUES)
def test_histogram(histogram, values):
    done = subprocess.run(
        [histogram], input=" ".join(map(str, values)), capture_output=True, text=True, check=True
    )
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    count, total, least, most = map(int, head[:4])
    assert count == len(values)
    buckets = [tuple(map(int, row)) for row in rows]
    assert sum(n for _, _, n in buckets) == count
    for lower, upper, n in buckets:
        assert sum(lower <= value < upper for value in values) == n
        # exact below 32 ns, then a width of at most a 32nd of the lower bound
        assert upper - lower == 1 if lower < 32 else (upper - lower) * 32 <= lower
    if not values:
        assert head[4:] == ["nan"] * 5
        return
    ordered = sorted(values)
    assert total == sum(values) and (least, most) == (ordered[0], ordered[-1])
    for share, got in zip((0, 0.5, 0.9, 0.99, 1), map(float, head[4:]), strict=True):
        exact = ordered[max(math.ceil(share * count), 1) - 1]
        assert abs(got - exact) <= max(1, exact / 32)


@settings(max_examples=60)
@given(
    interval=strategies.integers(1, 1000),
    steps=strategies.lists(
        strategies.one_of(strategies.integers(0, 50), strategies.integers(0, 10**7)), max_size=60
    ),
)
def test_timeseries(timeseries, interval, steps):
    moments, now = [], 0
    for step in steps:
        now += step
        moments.append(now)
    text = f"{interval} " + " ".join(f"{moment} {moment % 97}" for moment in moments)
    done = subprocess.run([timeseries], input=text, capture_output=True, text=True, check=True)
    (width, current), *rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    # the interval doubles only as often as 1000 bins need
    needed = interval
    while moments and moments[-1] // needed >= 1000:
        needed *= 2
    assert width == needed
    operations, volume = collections.Counter(), collections.Counter()
    for moment in moments:
        operations[moment // width] += 1
        volume[moment // width] += moment % 97
    assert {i: n for i, _, n in rows} == dict(operations)
    assert {i: b for i, b, _ in rows} == {i: volume[i] for i in operations}
    assert current == (moments[-1] // width if moments else 0)
