"""What Spack does, told in one line that is renewed; everything it says goes to a log."""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from tiercel.privacy import private

#: Without a terminal a line at most this often.
QUIET_S = 10.0

_DONE = re.compile(r"^\[(?:\+|e)\] +(\S+)")
_BEGUN = re.compile(r"^==> (?:Installing|Fetching|Adding package|Concretiz\w+) *(.*)")
_ERROR = re.compile(r"^(?:==> )?Error: (.*)")


class Progress:
    """Counts the packages that Spack reports as installed; `total` is how many the lock has."""

    def __init__(self, log: Path, doing: str, total: int | None = None, stream: TextIO | None = None) -> None:
        self.done: set[str] = set()
        self.errors: list[str] = []
        self._private = private()
        self._doing, self._total = doing, total
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._begun = time.monotonic()
        self._last = float("-inf")
        self._name = ""
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a", encoding="utf-8")

    def __enter__(self) -> Progress:
        self._log.write(f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} {self._doing}\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._stream.write("\r\x1b[K")
        self._log.close()

    def line(self, text: str) -> None:
        """Take one line of Spack's output."""
        self._log.write(self._private.text(text) + "\n")
        self._log.flush()
        if match := _DONE.match(text):
            self.done.add(match[1])
        elif match := _BEGUN.match(text):
            self._name = match[1].strip()
        elif (match := _ERROR.match(text)) and match[1]:
            self.errors.append(match[1])
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if not self._live and now - self._last < QUIET_S:
            return
        self._last = now
        count = f"[{len(self.done)}/{self._total}] " if self._total else ""
        text = f"{count}{self._doing}: {self._name}  {now - self._begun:.0f} s"
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
