"""Readers of trace formats, one a file."""

from tiercel.traces.readers.base import BATCH, EventWriter, ReadReport, TraceReader, readers

__all__ = ["BATCH", "EventWriter", "ReadReport", "TraceReader", "readers"]
