"""How numbers and names read on any page. Units come from tiercel.units."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiercel.units import format_latency

#: Letters of a name from outside: hostile ones have thousands.
NAME = 160
#: Stands where there is nothing to show.
MISSING = "–"


#: What a page of tiercel's has in its head: only such a file is written over.
MARK = b'<meta name="generator" content="tiercel">'


def times(ratio: float) -> str:
    """Return ``3.4×``; three digits where two would hide the difference from 1."""
    return f"{factor(ratio)}×" if math.isfinite(ratio) else MISSING


def factor(ratio: float) -> str:
    """Return a ratio as a bare number: ``0.97``, ``3.4``, ``120``."""
    if not math.isfinite(ratio):
        return "∞" if ratio > 0 else MISSING
    if ratio >= 99.5:
        return f"{ratio:.0f}"
    if ratio >= 1.95:
        return f"{ratio:.1f}"
    return f"{ratio:.2f}" if ratio >= 0.0995 else f"{ratio:.2g}"


def percent(share: float) -> str:
    """Return ``45 %``, ``0.4 %``."""
    if not math.isfinite(share):
        return MISSING
    return f"{100 * share:.0f} %" if share == 0 or abs(share) >= 0.0995 else f"{100 * share:.2g} %"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 run``, ``3 runs``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}".replace(",", " ")


def capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def listed(words: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def clipped(text: str, length: int) -> str:
    """Return a text that is no longer than that, its end cut off where it was."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def portion(share: float) -> str:
    """Return `percent`, and ``<0.01 %`` for what is nearly nothing."""
    return "<0.01 %" if 0 < share < 1e-4 else percent(share)


def seconds(time: float) -> str:
    """Return ``0 s``, ``4.2 ms``, ``56.7 s``, ``128 108 s``."""
    if abs(time) >= 999.5 and math.isfinite(time):
        return f"{time:,.0f} s".replace(",", " ")
    return format_latency(time) if time else "0 s"


def number(value: float) -> str:
    """Return a whole number with its thousands apart: ``18 039``."""
    return f"{value:,.0f}".replace(",", " ")


def plain(text: object) -> str:
    """Return words from outside as one line: no control characters, nothing that turns the line around."""
    return "".join(c if c.isprintable() else "\ufffd" for c in str(text))


def name(text: object) -> str:
    """Return a name from outside (a file, a host) as one short line."""
    return clipped(plain(text), NAME)
