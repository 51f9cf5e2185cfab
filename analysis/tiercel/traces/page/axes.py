"""Ticks and their words for the charts of a page."""

from __future__ import annotations

import math

from tiercel.units import format_latency

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Steps of a clock, in seconds: minutes and hours are not decimal.
_CLOCK = (60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 21600.0, 43200.0,
          86400.0, 172800.0, 432000.0, 864000.0)  # fmt: skip


def nice_step(top: float, parts: int, base: float = 10.0) -> float:
    """Return the smallest pleasant step of which about `parts` reach `top` (base 1024: of binary units)."""
    wanted = max(top, 1e-300) / parts
    unit = base ** math.floor(math.log(top, base)) if base > 10 and top >= 1 else 1.0
    power = 10.0 ** math.floor(math.log10(wanted / unit))
    return next(s for s in (unit * power * step for step in (*_STEPS, 20.0)) if s >= wanted * (1 - 1e-9))


def ticks(top: float, parts: int = 4, base: float = 10.0) -> list[float]:
    """Return 0 and the steps up to the first one that reaches `top`."""
    if not (math.isfinite(top) and top > 0):
        return [0.0, 1.0]
    step = nice_step(top, parts, base)
    return [step * number for number in range(math.ceil(top / step - 1e-9) + 1)]


def clock(length: float, parts: int = 5) -> list[tuple[float, str]]:
    """Return places (s) within `length` seconds and their words: ``0``, ``20 s``, ``5 min``."""
    if not (math.isfinite(length) and length > 0):
        return [(0.0, "0")]
    step = nice_step(length, parts)
    if length >= 240:
        step = next((s for s in _CLOCK if s >= length / parts), step)
    return [(step * n, _moment(step * n, step)) for n in range(math.floor(length / step + 1e-9) + 1)]


def _moment(seconds: float, step: float) -> str:
    if not seconds:
        return "0"
    if step >= 86400:
        return f"{seconds / 86400:g} d"
    if step >= 3600:
        return f"{seconds / 3600:g} h"
    return f"{seconds / 60:g} min" if step >= 60 else format_latency(seconds, 4)
