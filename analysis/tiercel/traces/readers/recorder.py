"""Recorder: the folder of a trace, read without Recorder's own library.

Versions 2.3 to 3.x are read (the layouts are in `recorder_format`). What the format does not hold stays
missing or is said in a warning:

* a call's answer is not recorded, so `size` is what was asked for: a read at a file's end counts in full;
* a position in a file is followed through open, read, write and lseek by path; it is unknown (missing) after
  a seek to the end, in append mode, and while one rank has the same path open more than once;
* times of a rank are from the start of that rank's own tracing, to a microsecond;
* process numbers and hosts are not recorded; a blank in an argument was written as ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tiercel.errors import UserError
from tiercel.traces.calls import api_of, kind_of
from tiercel.traces.readers.base import BATCH, EventWriter, ReadReport, readers
from tiercel.traces.readers.recorder_format import RankCalls, Signature, is_recorder, open_recorder

#: Stands for functions that a compiler instrumented (their name is the second argument), unless the list of
#: functions is so long that one of its own has this number.
_USER = 255
_APPEND = 0o2000  # O_APPEND on Linux, except Alpha and MIPS
_PATTERN = re.compile(r"(-?\d{1,18})\*r\+(-?\d{1,18})")  # an offset kept as a function of the rank
#: Sizes of MPI's named types that programs pass to MPI-IO.
_TYPES = {
    "MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_SIGNED_CHAR": 1, "MPI_UNSIGNED_CHAR": 1, "MPI_CHARACTER": 1,
    "MPI_PACKED": 1, "MPI_INT8_T": 1, "MPI_UINT8_T": 1, "MPI_SHORT": 2, "MPI_UNSIGNED_SHORT": 2,
    "MPI_INT16_T": 2, "MPI_UINT16_T": 2, "MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_INTEGER": 4, "MPI_INT32_T": 4,
    "MPI_UINT32_T": 4, "MPI_FLOAT": 4, "MPI_REAL": 4, "MPI_LONG": 8, "MPI_UNSIGNED_LONG": 8,
    "MPI_LONG_LONG": 8, "MPI_LONG_LONG_INT": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_INT64_T": 8,
    "MPI_UINT64_T": 8, "MPI_DOUBLE": 8,
    "MPI_DOUBLE_PRECISION": 8, "MPI_OFFSET": 8, "MPI_AINT": 8, "MPI_COUNT": 8, "MPI_C_DOUBLE_COMPLEX": 16,
    "MPI_DOUBLE_COMPLEX": 16,
}  # fmt: skip
#: What calls do to the position in their file.
_PLACES = {
    "open": "open", "creat": "open", "fopen": "open", "close": "close", "fclose": "close",
    "lseek": "seek", "fseek": "seek", "fseeko": "seek",
}  # fmt: skip


@readers.register("recorder")
class Recorder:
    """Reads one trace folder, rank after rank."""

    title = "Recorder (a folder with recorder.mt or recorder.dat)"
    alone = True

    def recognises(self, path: Path) -> bool:
        return is_recorder(path)

    def read(self, sources: Sequence[Path], writer: EventWriter) -> ReadReport:
        if len(sources) > 1:
            names = ", ".join(path.name for path in sources[:3])
            raise UserError(
                f"{len(sources)} Recorder traces ({names}...): each is a program's; name one of them"
            )
        trace = open_recorder(sources[0])
        header = trace.header
        rows = 0
        asked = False
        for calls in trace:
            words = _Words(header.functions, calls.rank, header.patterns)
            for columns in words.columns(calls, header.resolution):
                writer.write(columns)
                rows += len(columns["time"])
            asked = asked or words.sized
        warnings = list(dict.fromkeys(trace.warnings))
        if not rows and warnings:
            raise UserError(f"{sources[0]}: nothing of this Recorder trace can be read: {warnings[0]}")
        if asked:
            warnings.append("sizes are what calls asked for: Recorder keeps no answers")
        if header.patterns:
            warnings.append("offsets of single calls are missing: they were recorded as patterns")
        metadata: dict[str, Any] = {
            "format": "recorder",
            "recorder_version": header.version,
            "ranks": header.ranks,
            "resolution_s": header.resolution,
        }
        if header.start > 1e9:
            metadata["epoch"] = header.start
        return ReadReport(warnings, metadata)


@dataclass(frozen=True)
class _Call:
    """What one signature says once and for all."""

    function: str
    category: str
    api: str
    kind: str
    file: str | None
    size: int | None
    offset: int | None
    role: str  # what it does to a position: '', open, close, seek, move, mpi-open, mpi-view, ...
    arguments: tuple[str, ...]


@dataclass
class _Position:
    """Where one path is, in one rank."""

    at: int | None = None
    opened: int = 0


@dataclass
class _MPIFile:
    """One MPI file handle: its path, where its own pointer is, and its view (None: not a plain one)."""

    path: str
    at: int | None = 0
    displacement: int | None = 0
    unit: int = 1


class _Words:
    """Turns one rank's calls into columns."""

    def __init__(self, functions: Sequence[str], rank: int, patterns: bool) -> None:
        self._functions = functions
        self._rank = rank
        self._patterns = patterns
        self._paths: dict[str, _Position] = {}
        self._handles: dict[str, _MPIFile] = {}
        self.sized = False

    def columns(self, calls: RankCalls, resolution: float) -> Iterator[dict[str, Any]]:
        """Yield batches of columns."""
        numbers = sorted(calls.signatures)
        table = [self._call(calls.signatures[number]) for number in numbers]
        threads = np.array([calls.signatures[n].thread for n in numbers], dtype=np.int64)
        place = {number: i for i, number in enumerate(numbers)}
        lookup = np.zeros((numbers[-1] if numbers else 0) + 1, dtype=np.int32)
        for number, i in place.items():
            lookup[number] = i
        codes = lookup[calls.calls]
        for begin in range(0, len(codes), BATCH):
            part = slice(begin, begin + BATCH)
            yield self._batch(table, threads, codes[part], calls.starts[part] * resolution,
                              calls.durations[part] * resolution)  # fmt: skip

    def _batch(
        self, table: Sequence[_Call], threads: Any, codes: Any, times: Any, durations: Any
    ) -> dict[str, Any]:
        sizes: list[int | None] = [call.size for call in table]
        offsets: list[int | None] = [table[code].offset for code in codes]
        files: dict[int, str | None] = {}
        roles = np.array([bool(call.role) for call in table], dtype=bool)
        for row in np.flatnonzero(roles[codes]).tolist():
            offset, path = self._follow(table[codes[row]])
            offsets[row] = offset
            if path is not None:
                files[row] = path
        plain = [call.file for call in table]
        named = [plain[code] for code in codes]
        for row, path in files.items():
            named[row] = path
        thread = threads[codes]
        columns: dict[str, Any] = {
            "time": times,
            "duration": durations,
            "rank": np.full(len(codes), self._rank, dtype=np.int32),
            "size": pa.array([sizes[code] for code in codes], pa.int64()),
            "offset": pa.array(offsets, pa.int64()),
            "file": pa.array(named, pa.string()),
        }
        if thread.any():
            columns["thread"] = thread
        for name in ("function", "category", "api", "kind"):
            columns[name] = pa.DictionaryArray.from_arrays(
                pa.array(codes, pa.int32()), pa.array([getattr(call, name) for call in table], pa.string())
            )
        self.sized = self.sized or any(size is not None for size in sizes)
        return columns

    def _call(self, signature: Signature) -> _Call:
        number, arguments = signature.function, signature.arguments
        if number < len(self._functions):
            name = re.sub("^PMPI_", "MPI_", self._functions[number])
        elif number == _USER and len(arguments) > 1:
            return _Call(arguments[1], "user", "app", "other", None, None, None, "", ())
        else:
            return _Call(f"function {number}", "unknown", "app", "other", None, None, None, "", ())
        category, api = _layer(name)
        kind = kind_of(name, api)
        file = None if api == "app" else next((a for a in arguments if a.startswith("/")), None)
        role, size, offset = _effect(name, api, kind, arguments, self._rank)
        if self._patterns:
            offset = None
        return _Call(name, category, api, kind, file, size, offset, role, arguments)

    def _follow(self, call: _Call) -> tuple[int | None, str | None]:
        """Return offset and path of a call that depends on calls before, and remember what it changes."""
        if call.role.startswith("mpi"):
            return self._follow_mpi(call)
        if call.file is None:
            return call.offset, None
        position = self._paths.setdefault(call.file, _Position())
        if call.role == "open":
            position.opened += 1
            position.at = 0 if position.opened == 1 and not _appends(call) else None
        elif call.role == "close":
            position.opened = max(position.opened - 1, 0)
            position.at = None
        elif call.role == "seek":
            position.at = None if position.opened > 1 or self._patterns else _sought(call, position.at)
        elif call.role == "move":
            here = position.at
            position.at = None if here is None or call.size is None else here + call.size
            return here, None
        return call.offset, None

    def _follow_mpi(self, call: _Call) -> tuple[int | None, str | None]:
        arguments = call.arguments
        if call.role == "mpi-open":
            self._handles[arguments[-1]] = _MPIFile(arguments[1])
            return None, arguments[1]
        handle = self._handles.get(arguments[0]) if arguments else None
        if handle is None:
            return None, None
        here: int | None = None
        if call.role == "mpi-view":
            handle.unit = _TYPES.get(arguments[2], 0)
            plain = handle.unit > 0 and arguments[2] == arguments[3] and not self._patterns
            handle.displacement = _number(arguments[1]) if plain else None
            handle.at = 0
        elif call.role == "mpi-seek":
            handle.at = _number(arguments[1]) if arguments[2:] == ("MPI_SEEK_SET",) else None
        elif call.role == "mpi-at" and call.offset is not None and handle.displacement is not None:
            here = handle.displacement + call.offset * handle.unit
        elif call.role == "mpi-move" and handle.at is not None and handle.displacement is not None:
            here = handle.displacement + handle.at * handle.unit
            handle.at = None if call.size is None else handle.at + call.size // max(handle.unit, 1)
        elif call.role == "mpi-close":
            self._handles.pop(arguments[0], None)
        return here, handle.path


def _layer(name: str) -> tuple[str, str]:
    """Return (category, api): Recorder's own layers in words."""
    if name.startswith("MPI_File_"):
        return "MPI-IO", "mpiio"
    if name.startswith("MPI_"):
        return "MPI", "app"
    if re.match(r"H5[A-Z]", name):
        return "HDF5", "hdf5"
    if name.startswith("ncmpi_"):
        return "PnetCDF", "app"
    if name.startswith("nc_"):
        return "NetCDF", "app"
    api = api_of(name)
    return ("STDIO", "stdio") if api == "stdio" else ("POSIX", "posix")


def _effect(name: str, api: str, kind: str, arguments: tuple[str, ...],
            rank: int) -> tuple[str, int | None, int | None]:  # fmt: skip
    """Return (role, size, offset) of a call, from the order in which Recorder keeps its arguments."""
    if api == "mpiio":
        return _mpi_effect(name, kind, arguments, rank)
    if api not in {"posix", "stdio"}:
        return "", None, None
    base = name.removesuffix("64")
    if base in _PLACES:
        return _PLACES[base], None, None
    if base in {"pread", "pwrite"} and len(arguments) == 4:
        return "", _number(arguments[2]), _number(arguments[3], rank)
    if base in {"read", "write"} and len(arguments) == 3:
        return "move", _number(arguments[2]), None
    if base in {"readv", "writev"} and len(arguments) == 3:
        return "move", _number(arguments[1]), None
    if base in {"fread", "fwrite"} and len(arguments) == 4:
        each, items = _number(arguments[1]), _number(arguments[2])
        return "move", None if each is None or items is None else each * items, None
    if base == "vfprintf" and len(arguments) == 2:
        counted = _number(arguments[1])  # with the zero that ends the text, which is not written
        return "move", None if counted is None else max(counted - 1, 0), None
    return "", None, None


def _mpi_effect(
    name: str, kind: str, arguments: tuple[str, ...], rank: int
) -> tuple[str, int | None, int | None]:
    short = name.removeprefix("MPI_File_")
    sizes = {"open": 5, "set_view": 6, "seek": 3, "close": 1}
    if short in sizes:
        role = {"open": "mpi-open", "set_view": "mpi-view", "seek": "mpi-seek", "close": "mpi-close"}[short]
        return (role if len(arguments) >= sizes[short] else ""), None, None
    if kind not in {"read", "write"}:
        return "mpi-other", None, None
    at = "_at" in short
    first = 3 if at else 2
    count = _number(arguments[first]) if len(arguments) > first + 1 else None
    unit = _TYPES.get(arguments[first + 1]) if len(arguments) > first + 1 else None
    size = None if count is None or unit is None else count * unit
    if at:
        return "mpi-at", size, _number(arguments[1], rank) if len(arguments) > 1 else None
    shared = "shared" in short or "ordered" in short
    return "mpi-other" if shared else "mpi-move", size, None


def _number(text: str, rank: int = 0) -> int | None:
    """Return a number of the trace, or None; a pattern over ranks is worked out."""
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if found := _PATTERN.fullmatch(text):
        slope, start = (int(part) for part in found.groups())
        value = slope * rank + start
        return value if abs(value) < 1 << 62 else None
    return None


def _appends(call: _Call) -> bool:
    """Say whether this open appends: then a write's position is wherever the file ends."""
    how = call.arguments[1] if len(call.arguments) > 1 else ""
    if call.function.startswith("fopen"):
        return how.startswith("a")
    flags = _number(how)
    return call.function.startswith("open") and flags is not None and bool(flags & _APPEND)


def _sought(call: _Call, at: int | None) -> int | None:
    """Return the position after a seek: known from the start of a file, or from a known position."""
    offset = _number(call.arguments[1]) if len(call.arguments) == 3 else None
    whence = call.arguments[2] if len(call.arguments) == 3 else ""
    if offset is None or whence not in {"0", "1"}:
        return None
    if whence == "1" and at is None:
        return None
    value = offset + (at or 0) if whence == "1" else offset
    return value if 0 <= value < 1 << 62 else None
