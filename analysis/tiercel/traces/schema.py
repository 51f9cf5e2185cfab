"""The one schema of a trace, whatever tracer wrote it: one row for each event.

Sources of the columns: paper 003 section IV.A (IOFrame: function, times, rank, file, access offsets) and
DFTracer's events. A reader fills what its tracer knows; the rest is missing, never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["read", "write", "metadata", "sync", "compute", "pseudo", "other"]

#: read and write move bytes; metadata is open, close, stat, seek, mkdir...; sync is fsync and its like;
#: compute is what the program (or its framework) marked as computation; pseudo is a call on what has a file's
#: name and is no storage (traces/pseudo.py); other is everything else (application spans such as epochs, MPI,
#: hints).
KINDS: tuple[Kind, ...] = ("read", "write", "metadata", "sync", "compute", "pseudo", "other")


@dataclass(frozen=True)
class Field:
    """One column. `kind` is a pyarrow type name; `unit` is empty for words and numbers of things."""

    name: str
    kind: str
    unit: str
    meaning: str


EVENTS = (
    Field("time", "float64", "s", "start of the event, from the start of the trace"),
    Field("duration", "float64", "s", "how long it took; 0 for instants"),
    Field("process", "int64", "", "operating system's process id"),
    Field("thread", "int64", "", "operating system's thread id"),
    Field("rank", "int32", "", "MPI rank, or the process' number in order of appearance"),
    Field("host", "string", "", "node"),
    Field("function", "string", "", "name of the call or span: pwrite64, H5Dread, loop.iter"),
    Field("category", "string", "", "the tracer's own category: POSIX, STDIO, ai_framework"),
    Field("api", "string", "", "posix, stdio, mpiio, hdf5, or app for spans of the program"),
    Field("kind", "string", "", "read, write, metadata, sync, compute, pseudo or other"),
    Field("file", "string", "", "path of the file, where the event has one"),
    Field(
        "offset",
        "int64",
        "B",
        "first byte accessed, followed through read, write and lseek where implicit; of a truncate the new "
        "length",
    ),
    Field("size", "int64", "B", "bytes moved (what the call returned, not what it was asked for)"),
    Field("failed", "bool", "", "whether the call came back with an error, where the tracer tells"),
    Field(
        "flags",
        "string",
        "",
        "how a file was opened (O_WRONLY|O_CREAT), or locked (F_SETLK|F_WRLCK|510: bytes, from the offset "
        "on; LOCK_EX), or allocated (FALLOC_FL_KEEP_SIZE|4096); of a futex, waits or wakes; "
        "of a pipe, reads|bytes or writes|bytes; of a process, starts or collects",
    ),
    Field(
        "target",
        "string",
        "",
        "the other path of a rename, link or copy; of a futex, pipe or process, which one",
    ),
    Field("epoch", "int32", "", "training epoch, where the program says"),
    Field("step", "int32", "", "training step, where the program says"),
)

NAMES = tuple(field.name for field in EVENTS)
#: Columns that Parquet files of earlier versions lack: they are missing there.
LATER = ("failed", "flags", "target")
UNITS = {field.name: field.unit for field in EVENTS}
