"""Readers of trace formats, one a file: importing this package registers them all."""

from tiercel.traces.readers import darshan as darshan
from tiercel.traces.readers import dftracer as dftracer
from tiercel.traces.readers import recorder as recorder
from tiercel.traces.readers import strace as strace
from tiercel.traces.readers.base import BATCH, EventWriter, ReadReport, TraceReader, readers

__all__ = ["BATCH", "EventWriter", "ReadReport", "TraceReader", "readers"]
