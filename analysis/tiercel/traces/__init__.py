"""Traces: one frame for every tracer's events, and what can be asked of it.

``from tiercel.traces import IOFrame``, then ``IOFrame.from_dftracer(path).overlap()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame, open_trace

__all__ = ["IOFrame", "open_trace"]


def __getattr__(name: str) -> Any:
    """Import the frame, and pandas with it, when it is asked for: an answer that is kept needs neither."""
    if name in __all__:
        from tiercel.traces import frame  # noqa: PLC0415

        return getattr(frame, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
