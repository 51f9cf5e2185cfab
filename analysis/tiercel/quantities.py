"""Fields of documents: lines, sizes, durations, rates (text with a unit in, numbers inside: see `units`)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from tiercel.units import parse_duration, parse_rate, parse_size

#: In the context of a validation: somebody wrote the document, it is no dumped one.
WRITTEN = "written"


def _size(value: Any) -> Any:
    return None if value is None else parse_size(value)


def _duration(value: Any) -> Any:
    return None if value is None else parse_duration(value)


def _rate(value: Any, info: ValidationInfo) -> Any:
    # Plain numbers are what a dumped document holds: bytes per second. What somebody wrote without a unit
    # may be gigabytes.
    written = bool(info.context and info.context.get(WRITTEN))
    dumped = isinstance(value, float) and not written
    return value if value is None or dumped else parse_rate(value)


def _share(value: Any) -> Any:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", value.strip())
        if not match:
            raise ValueError(f"{value!r} is not a share: write 10%")
        return float(match[1]) / 100
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a share: write 10%")
    return value


Size = Annotated[int, BeforeValidator(_size)]
"""Bytes."""
Duration = Annotated[float, BeforeValidator(_duration)]
"""Seconds."""
Rate = Annotated[float, BeforeValidator(_rate)]
"""Bytes per second."""
Share = Annotated[float, BeforeValidator(_share)]
"""A part of one: ``10%``, or 0.1."""


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{text!r} must be one line without control characters")
    return text


Line = Annotated[str, AfterValidator(_line)]
"""Text that becomes a part of commands or of what a terminal shows."""
