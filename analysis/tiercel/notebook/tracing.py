"""``tc.trace``: a trace of any tracer that tiercel reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiercel.traces import IOFrame, open_trace


def trace(path: str | Path, **options: Any) -> IOFrame:
    """Return the trace that lies at `path`; options: ``tiercel.traces.open_trace``. UserError for none."""
    return open_trace(path, **options)
