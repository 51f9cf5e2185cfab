"""Traces: one frame for every tracer's events, and what can be asked of it.

``from tiercel.traces import IOFrame``, then ``IOFrame.from_dftracer(path).overlap()``.
"""

from tiercel.traces.frame import IOFrame, open_trace

__all__ = ["IOFrame", "open_trace"]
