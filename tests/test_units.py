"""Sizes, durations and their printed forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiercel
from tiercel.units import (
    format_bandwidth,
    format_duration,
    format_latency,
    format_rate,
    format_samples,
    format_share,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (4096, 4096), ("4096", 4096), ("4k", 4096), ("4K", 4096), ("4KiB", 4096), ("1m", 1048576),
        ("1.5g", 1610612736), ("2 TiB", 2 * 1024**4), ("512B", 512), ("0", 0), (4096.0, 4096),
    ],
)  # fmt: skip
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["1MB", "1 kb", "", "m", "-1", -1, "1.3", 1.5, True, None, [], "1e6", "4XiB"]
)
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match=r"size|number|ambiguous"):
        parse_size(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (30, 30.0),
        ("90s", 90.0),
        ("5min", 300.0),
        ("2h", 7200.0),
        ("250ms", 0.25),
        ("80us", 8e-5),
        ("80µs", 8e-5),
        ("80\u03bcs", 8e-5),  # the Greek letter, not the sign
        ("1.5", 1.5),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["5 minutes", "-3", -3, float("nan"), True, None, "s", "\u0661s", "1\u017f"])
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", [float("inf"), 10**400, "9" * 400 + "s", 1e30, "10000000d"])
def test_durations_that_nothing_can_add_up(text: object) -> None:
    with pytest.raises(ValueError, match="longer than anybody waits"):
        parse_duration(text)


def test_shares_are_written_in_one_way() -> None:
    """45 % as the SI has it, with a blank; Python's own format writes none."""
    assert (format_share(0.451), format_share(0.00123, 2), format_share(-0.05, 1, "+")) == (
        "45 %", "0.12 %", "-5.0 %",
    )  # fmt: skip
    package = Path(tiercel.__file__).parent
    assert [path.name for path in package.rglob("*.py") if re.search(r":[^{}\n]*%\}", path.read_text())] == []


def test_printed_forms() -> None:
    assert format_size(1536) == "1.5 KiB"
    assert format_size(0) == "0 B"
    assert format_bandwidth(812.4 * 1024**2) == "812 MiB/s"
    assert format_rate(12_345) == "12.3 kop/s"
    assert format_rate(999.9) == "1 kop/s"  # never "1000 op/s"
    assert format_samples(17_384.2) == "17 400 samples/s"  # nobody says ksamples
    assert (format_samples(596.7), format_samples(2.751)) == ("597 samples/s", "2.75 samples/s")
    assert format_samples(0) == "0 samples/s"
    assert format_latency(4.25e-6) == "4.25 µs"
    assert format_latency(0.0009999) == "1 ms"  # never "1000 µs"
    assert format_latency(float("nan")) == "–"
    assert format_duration(200.4) == "3 min 20 s"
    assert format_duration(7500) == "2 h 5 min"


@given(st.integers(min_value=0, max_value=2**60))
def test_a_size_survives_its_exact_spelling(size: int) -> None:
    assert parse_size(str(size)) == parse_size(f"{size}B") == size


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_a_printed_size_is_close(size: float) -> None:
    number, unit = format_size(size, digits=4).split()
    power = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit)
    assert float(number) * 1024**power == pytest.approx(size, rel=1e-3)
