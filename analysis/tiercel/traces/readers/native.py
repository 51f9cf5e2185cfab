"""The quick scanner: a small C library (native/tracescan), many times as fast as the one in Python.

It is optional: `make setup` builds it where there is a C compiler, and without it everything works the same.
``TIERCEL_TRACESCAN`` names another library, or is ``off``.
"""

from __future__ import annotations

import ctypes
import json
from functools import cache
from typing import Any

import numpy as np

from tiercel import native
from tiercel.traces.readers.scan import (
    COLUMNS,
    NOTES,
    TABLES,
    Block,
    Ints,
    Notes,
    PythonScanner,
    Scanner,
    clean,
)

_ABI = 4
_Numbers = ctypes.POINTER(ctypes.c_int64)


class _Report(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("rows", "metadata", "lost_lines", "lost_bytes", "other_lines", "unfinished")
    ]


def new_scanner() -> Scanner:
    """Return the quick scanner where its library is found, else the one in Python."""
    library = load_library()
    return PythonScanner() if library is None else NativeScanner(library)


@cache
def load_library() -> ctypes.CDLL | None:
    """Return the scanner's library, or None."""
    found = native.load_library("tracescan", _ABI)
    return _declared(found) if found else None


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    words: list[Any] = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Numbers)]
    handle = ctypes.c_void_p
    library.tracescan_new.restype = handle
    library.tracescan_free.argtypes = [handle]
    library.tracescan_scan.argtypes = [handle, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_Report)]
    library.tracescan_column.restype = _Numbers
    library.tracescan_column.argtypes = [handle, ctypes.c_int]
    library.tracescan_words.restype = ctypes.c_int64
    library.tracescan_words.argtypes = [handle, ctypes.c_int, *words]
    library.tracescan_notes.restype = ctypes.c_int64
    library.tracescan_notes.argtypes = [handle, ctypes.c_int, *words, ctypes.POINTER(_Numbers)]
    library.tracescan_track.argtypes = [
        handle, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    return library


class NativeScanner:
    """The scanner of the C library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._free = library.tracescan_free
        self._handle = library.tracescan_new()
        if not self._handle:
            raise MemoryError

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free(self._handle)
            self._handle = None

    def scan(self, block: bytes) -> Block:
        report = _Report()
        if self._library.tracescan_scan(self._handle, block, len(block), ctypes.byref(report)):
            raise MemoryError
        columns = {name: self._column(number, report.rows) for number, name in enumerate(COLUMNS)}
        notes = {name: self._notes(number) for number, name in enumerate(NOTES)} if report.metadata else {}
        return Block(
            columns, {name: each for name, each in notes.items() if each.keys}, report.metadata,
            report.lost_lines, report.lost_bytes, report.other_lines, bool(report.unfinished),
        )  # fmt: skip

    def _notes(self, number: int) -> Notes:
        base, ends, numbers = ctypes.c_void_p(), _Numbers(), _Numbers()
        count = self._library.tracescan_notes(
            self._handle, number, ctypes.byref(base), ctypes.byref(ends), ctypes.byref(numbers)
        )
        texts = _texts(base, ends, 2 * count, 0)
        pairs = np.ctypeslib.as_array(numbers, (count, 2)) if count else np.empty((0, 2), dtype=np.int64)
        return Notes(texts[::2], texts[1::2], pairs[:, 0].tolist(), pairs[:, 1].tolist())

    def _column(self, number: int, rows: int) -> Ints:
        if not rows:
            return np.empty(0, dtype=np.int64)
        # No copy: the numbers stay valid until the next scan, and the reader is done with them by then.
        return np.ctypeslib.as_array(self._library.tracescan_column(self._handle, number), (rows,))

    def words(self, table: str, start: int) -> list[str]:
        base, ends = ctypes.c_void_p(), _Numbers()
        count = self._library.tracescan_words(
            self._handle, TABLES.index(table), ctypes.byref(base), ctypes.byref(ends)
        )
        return _texts(base, ends, count, start)

    def track(self, columns: dict[str, Ints], roles: Ints, sizes: Ints) -> Ints:
        offsets = np.empty(len(sizes), dtype=np.int64)
        roles, sizes = np.ascontiguousarray(roles), np.ascontiguousarray(sizes)
        failed = self._library.tracescan_track(
            self._handle, roles.ctypes.data, len(roles), sizes.ctypes.data, offsets.ctypes.data
        )
        if failed:
            raise MemoryError
        return offsets


def _texts(base: ctypes.c_void_p, ends: ctypes._Pointer[ctypes.c_int64], count: int, start: int) -> list[str]:
    """Return words from number `start` on: they lie at `base` one after the other, and end at `ends`."""
    if count <= start:
        return []
    begin = ends[start - 1] if start else 0
    stops = (np.ctypeslib.as_array(ends, (count,))[start:] - begin).tolist()
    if not stops[-1] or base.value is None:
        return [""] * len(stops)
    raw = ctypes.string_at(base.value + begin, stops[-1])
    limits = zip([0, *stops[:-1]], stops, strict=True)
    if raw.isascii() and b"\\" not in raw:
        text = raw.decode()
        return [text[low:high] for low, high in limits]
    return [_decoded(raw[low:high]) for low, high in limits]


def _decoded(raw: bytes) -> str:
    text = raw.decode("utf-8", "surrogateescape")
    return clean(str(json.loads(f'"{text}"', strict=False)) if "\\" in text else text)
