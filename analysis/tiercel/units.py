"""Sizes, durations and rates: read from text with a unit, shown to people with one.

Inside tiercel a size is a number of bytes (int) and a duration a number of seconds (float).
Sizes read binary units whatever their spelling (``1m``, ``1M``, ``1MiB`` are 1,048,576 bytes),
as IOR, mdtest and fio do; ``1MB`` is refused because the field uses it for both.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?b)?\s*", re.IGNORECASE | re.ASCII)
_RATE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKMGTP]?)(i?)([bB])/s\s*", re.ASCII)
#: Offsets of files have 63 bits.
_LARGEST = (1 << 63) - 1
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
# Both signs for micro: keyboards have one, other programs write the Greek letter.
_SECONDS = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0}
_SECONDS["d"] = 24 * 3600.0
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|µs|μs|ms|s|min|h|d)?\s*", re.IGNORECASE | re.ASCII)
#: Longer ones (some 300 years) no clock, scheduler or plan adds up.
LONGEST = 1e10


def parse_size(value: object) -> int:
    """Return bytes for ``4096``, ``"4KiB"``, ``"1.5g"``.

    Raises ValueError, with what is allowed, for anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a size such as 4KiB, 1MiB or 2GiB")
    if isinstance(value, int | float):
        if not math.isfinite(value) or value < 0 or value != int(value):
            raise ValueError("must be a whole number of bytes, or a size such as 1MiB")
        return _holdable(int(value), value)
    match = _SIZE.fullmatch(value)
    if not match:
        raise ValueError(f"{value!r} is not a size: write 4096, 4KiB, 1MiB, 2GiB or 1TiB")
    number, prefix, suffix = match.groups()
    if prefix and suffix and suffix.lower() == "b":
        raise ValueError(f"{value!r} is ambiguous (1000 or 1024?): write {number}{prefix.upper()}iB")
    size = Decimal(number) * 1024 ** _POWER[prefix.lower()]  # exact, unlike a float above 2**53
    if size != int(size):
        raise ValueError(f"{value!r} is not a whole number of bytes")
    return _holdable(int(size), value)


def _holdable(size: int, given: object) -> int:
    if size > _LARGEST:
        raise ValueError(f"{given} is more than any file holds (8 EiB)")
    return size


def parse_duration(value: object) -> float:
    """Return seconds for ``30``, ``"90s"``, ``"5min"``, ``"250ms"``, ``"80us"``; ValueError for others."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not value >= 0:  # NaN, too
            raise ValueError("must be a duration of zero or more seconds")
        return _waitable(value, value)
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"{value!r} is not a duration: write 30, 30s, 5min, 2h, 250ms or 80us")
    return _waitable(float(match[1]) * _SECONDS[(match[2] or "").lower()], value)


def _waitable(seconds: float, given: object) -> float:
    if seconds > LONGEST:
        words = str(given)
        words = words if len(words) <= 25 else f"{words[:22]}..."
        raise ValueError(f"{words} is longer than anybody waits (300 years)")
    return float(seconds)


def parse_rate(value: object) -> float:
    """Return bytes per second for ``"100Gb/s"`` (bits), ``"12.5GB/s"`` (bytes), ``"2GiB/s"``.

    Links are sold in decimal bits, devices in decimal bytes; here, other than in sizes, the units say
    which, so they are read as they stand: b is a bit, B a byte, G 10^9, Gi 2^30. ValueError for others.
    """
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError(f"{value!r} is not a rate: write 100Gb/s (bits), 12.5GB/s or 2GiB/s (bytes)")
    number, prefix, binary, unit = match.groups()
    scale: int = (1024 if binary else 1000) ** _POWER[prefix.lower()]
    return float(number) * scale / (8 if unit == "b" else 1)


def format_size(size: float | None, digits: int = 3) -> str:
    """Return ``1 MiB``, ``1.5 GiB``; exact where the number allows it; ``–`` for one that is missing."""
    return _scaled(size, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], digits)


def format_bandwidth(bytes_per_second: float | None, digits: int = 3) -> str:
    """Return ``812 MiB/s``."""
    return _scaled(bytes_per_second, 1024, ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"], digits)


def format_rate(per_second: float, digits: int = 3) -> str:
    """Return ``12.3 kop/s``."""
    return _scaled(per_second, 1000, ["op/s", "kop/s", "Mop/s", "Gop/s"], digits)


def format_samples(per_second: float, digits: int = 3) -> str:
    """Return ``17 400 samples/s``."""
    return f"{format_whole(per_second, digits)} samples/s"


def format_whole(number: float, digits: int = 3) -> str:
    """Return so many digits of a number, written out: ``53 600``, ``936``, ``2.75``."""
    if not math.isfinite(number):
        return "–"
    if abs(number) < 100:
        return _significant(number, digits)
    places = len(str(int(abs(number)))) - digits
    return f"{round(number, -places) if places > 0 else number:,.0f}".replace(",", " ")


def format_latency(seconds: float | None, digits: int = 3) -> str:
    """Return ``4.2 µs``, ``13 ms``."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    for factor, unit in ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms")):
        if seconds < factor * 999.5:
            return f"{_significant(seconds / factor, digits)} {unit}"
    return f"{_significant(seconds, digits)} s"


def format_share(share: float, digits: int = 0, sign: str = "") -> str:
    """Return ``45 %``, with `digits` after the point; `sign` "+": of both signs."""
    return f"{100 * share:{sign}.{digits}f} %"


def format_duration(seconds: float) -> str:
    """Return ``45 s``, ``3 min 20 s``, ``2 h 5 min``: time for people to wait."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _scaled(value: float | None, base: int, units: list[str], digits: int) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    step = 0
    # 999.5 of a unit would print as 1000, so it already belongs to the next one.
    while step + 1 < len(units) and abs(value) >= (base - 0.5 if base == 1000 else base):
        value /= base
        step += 1
    return f"{_significant(value, digits)} {units[step]}"


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
