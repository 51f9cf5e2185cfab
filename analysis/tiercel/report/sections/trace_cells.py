"""How cells of traced runs read: missing ones as such, never as zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tiercel.report import words

Row = dict[str, Any]


def known(value: Any) -> bool:
    """Return whether a cell of a table holds a number; pandas' NA and NaN do not."""
    return isinstance(value, int | float) and math.isfinite(value)


def cell(value: Any, show: Callable[[float], str]) -> tuple[str, float]:
    """Return (text, what to sort by)."""
    return (show(float(value)), float(value)) if known(value) else (words.MISSING, -1.0)


def ratio(part: Any, whole: Any) -> float | None:
    """Return the share, None where it cannot be told."""
    return float(part) / float(whole) if known(part) and known(whole) and whole > 0 else None


def share(value: float) -> str:
    """Return ``45 %``; what is there and hardly any as ``< 0.1 %``."""
    return "< 0.1 %" if 0 < value < 0.001 else words.percent(value)


def count(value: float) -> str:
    """Return ``20 000``."""
    return f"{int(value):,}".replace(",", " ")


def cost_interval(row: Row) -> str:
    """Return the range of what tracing cost: ``0.97–1.2``."""
    return words.factors(row["cost_low"], row["cost_high"])
