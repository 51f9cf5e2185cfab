"""Rows made since the table was last written: a checksum and one line of JSON each, beside the table.

A row is in the file as soon as it is made, so that a survey that is killed has lost what it was reading at
that moment and nothing else. What is not as it was written is read again.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tiercel.atomic_file import drafted
from tiercel.errors import UserError

#: What a row must have to be told apart and judged (table._current).
_KEYS = {"log", "log_bytes", "log_stamp", "reason"}


class Journal:
    """Context manager: open for adding. `signature` names the code that makes the rows.

    UserError where something that is no file has the journal's name.
    """

    def __init__(self, output: Path, signature: str) -> None:
        self.path = output.with_name(f".{output.name}.rows")
        if self.path.exists() and not self.path.is_file():
            raise UserError(f"{self.path}: not a file, and the survey keeps its rows there: move it away")
        self._head = {"tiercel": signature}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows that the same code left."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        if _parsed(lines[0]) != self._head:
            return
        for line in lines[1:]:  # the last one may be cut off
            mark, _, body = line.partition(b" ")
            if body and mark == _mark(body) and (row := _parsed(body)) and row.keys() >= _KEYS:
                yield row

    def __enter__(self) -> Self:
        if not self.path.exists() or _parsed(self.path.read_bytes().split(b"\n", 1)[0]) != self._head:
            with drafted(self.path) as draft:
                draft.write_text(json.dumps(self._head) + "\n")
        self._file = self.path.open("r+b")
        whole = self._file.read()
        self._file.truncate(whole.rfind(b"\n") + 1)
        self._file.seek(0, os.SEEK_END)
        return self

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        body = json.dumps(row).encode()
        self._file.write(_mark(body) + b" " + body + b"\n")
        self._file.flush()

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        with contextlib.suppress(OSError):  # a full disk: what is not there yet is read again
            self._file.close()


def _mark(body: bytes) -> bytes:
    return b"%08x" % zlib.crc32(body)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
