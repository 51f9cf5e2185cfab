"""Sizes, durations and rates as fields of documents: text with a unit in, numbers inside (see `units`)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from tiercel.units import parse_duration, parse_rate, parse_size


def _size(value: Any) -> Any:
    return None if value is None else parse_size(value)


def _duration(value: Any) -> Any:
    return None if value is None else parse_duration(value)


def _rate(value: Any) -> Any:
    # Plain numbers are what a dumped document holds: bytes per second.
    return value if value is None or isinstance(value, float) else parse_rate(value)


Size = Annotated[int, BeforeValidator(_size)]
"""Bytes."""
Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds."""
Rate = Annotated[float, BeforeValidator(_rate)]
"""Bytes per second."""
