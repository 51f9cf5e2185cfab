"""A value of a table of numbers as a cell: the column's name says what it is."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tiercel.pages.words import MISSING, number, seconds
from tiercel.units import format_bandwidth, format_size

#: What a column is, by its name; others are numbers or words.
_SECONDS = ("time", "duration", "longest", "finished")
_SIZES = ("bytes", "size", "stripe", "extent")


def cell(name: str, value: Any) -> Any:
    """Return what a table shows of a value of column `name`: words, or (text, value to sort by)."""
    if value is None or isinstance(value, bool):
        return MISSING if value is None else "yes" if value else "no"
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):
        return ", ".join(str(each) for each in value) if isinstance(value, list | tuple) else str(value)
    if pd.isna(value):
        return MISSING
    if "bandwidth" in name or "throughput" in name:
        return format_bandwidth(float(value)), value
    # "times" is how often, or how many times as much.
    if any(word in name for word in _SECONDS) and not name.endswith("times"):
        return seconds(float(value)), value
    if any(word in name for word in _SIZES):
        return format_size(float(value)), value
    return (number(value) if float(value).is_integer() else f"{value:.3g}"), value
