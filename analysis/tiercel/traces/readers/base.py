"""What every trace reader offers, and what it writes into.

A reader turns files of one format into record batches of the schema in `traces/schema.py`. It never holds a
whole trace: it writes batch after batch and returns a report of what it could not read. To add a format,
write one file with a class under ``@readers.register`` in this folder, or name it in a subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tiercel.registry import Registry
from tiercel.subjects import fill

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a batch that readers aim at: large enough for Parquet, small enough for memory.
BATCH = 1 << 17


@dataclass(frozen=True)
class ReadReport:
    """What a reader says after reading.

    `warnings`: one sentence for each thing that was lost, with numbers (bytes, lines, events) and the file.
    `metadata`: what the trace says about the program as a whole (command line, tracer's version...), plain
    JSON values. The key ``epoch`` is the time of day, in seconds since 1970, of the reader's time 0.
    """

    warnings: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Words to replace in a column at the end, for readers that learn late what a hash stands for.
    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class EventWriter(Protocol):
    """Takes events, in any order."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows: column name to a sequence of one length (list, numpy, pandas or pyarrow array).

        Columns that are left out are missing in all rows. Missing values are None, a pandas NA or an
        Arrow null; words may be dictionary-encoded. `time` is in seconds from an instant that the reader
        chooses once for the whole trace (near its start, so that float64 keeps nanoseconds); the frame moves
        it to the earliest event. `rank` may be left out: then ranks are the numbers of the processes
        (host, process) in order of appearance. `api` may be left out where `function` is the C library's,
        MPI's or HDF5's name of a call (traces/calls.py): an I/O call of no layer is refused, as no sum would
        have it.
        """

    def keep(self, name: str, table: pa.Table) -> None:
        """Keep a table of counters beside the events (`IOFrame.counters`): columns file, rank, and one for
        each counter."""


class TraceReader(Protocol):
    """One trace format."""

    #: One line for messages: ``DFTracer (.pfw, .pfw.gz)``.
    title: str
    #: Whether each file (or folder) is a trace of its own; else files that lie together are one.
    alone: bool

    def recognises(self, path: Path) -> bool:
        """Say whether the file `path` is of this format: by its content, or by its name when it is empty.

        Cheap (reads at most the first kilobytes) and never raises. For a format whose trace is a folder
        (Recorder), `path` may be a folder.
        """

    def read(self, sources: Sequence[Path], writer: EventWriter) -> ReadReport:
        """Write the events of all `sources` (of one trace, recognised before, sorted by name).

        What cannot be read is left out and reported as a warning. UserError only when nothing at all of a
        source's format could be understood.
        """


readers: Registry[type[TraceReader]] = Registry("trace format", partial(fill, "readers", __name__))
