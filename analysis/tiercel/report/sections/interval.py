"""A number of several repetitions in a table: its median with the interval of the median."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tiercel.statistics.summary import summarize

NOTE = "In parentheses: the 95 % interval of the median; with fewer than six repetitions, their range."


def interval_cell(values: Iterable[Any], written: Callable[[float], str]) -> tuple[str, float]:
    """Return text and sort key of a cell; empty where no value is known, no interval for a single one."""
    found = summarize(values)
    if not found.n:
        return "", -1.0
    text = written(found.median)
    if found.n > 1:
        text += f" ({written(found.low)} to {written(found.high)})"
    return text, found.median
