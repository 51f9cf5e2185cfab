"""What every command prints in one way."""

from __future__ import annotations

import json
from io import TextIOBase
from pathlib import Path
from typing import TextIO

from tiercel.plain import plain


def print_json(answer: object) -> None:
    """Print an answer as one valid JSON value: numpy's scalars as numbers, NaN and infinity as null."""
    print(json.dumps(plain(answer), allow_nan=False))


class Logged(TextIOBase):
    """A stream whose lines go to a file too, but for those that a terminal shows only for a moment.

    A file that takes no more, on a full disk, is told once: what is said in it ends, and nothing else.
    """

    def __init__(self, stream: TextIO, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream, self._file = stream, path.open("wb", buffering=0)
        self._full = False

    def write(self, text: str) -> int:
        if "\r" not in text and not self._full:
            try:
                self._file.write(text.encode(errors="replace"))
            except OSError as error:
                self._full = True
                self._stream.write(
                    f"tiercel: {self._file.name}: {error.strerror}: what follows is not in it\n"
                )
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()
