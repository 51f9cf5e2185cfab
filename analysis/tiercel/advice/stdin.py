"""The standard input of a program that runs several times: every run gets the same bytes."""

from __future__ import annotations

import os
import select
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO


class Input:
    """A file is opened again for each run. Of a pipe the first run gets what comes, the others the same
    bytes.

    A terminal is not shared: the program reads an empty input, and `note` says so.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor, self.note = descriptor, ""
        self._record: IO[bytes] | None = None
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            mode = 0
        self._file = stat.S_ISREG(mode)
        self._pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        if os.isatty(descriptor):
            self.note = "its standard input is empty in the trials: redirect it from a file if it reads any"

    @contextmanager
    def opened(self) -> Iterator[int | IO[bytes]]:
        """Yield what one run reads."""
        if self._file:
            with open(f"/proc/self/fd/{self._descriptor}", "rb") as file:  # noqa: PTH123
                yield file
        elif self._record is not None:
            with open(f"/proc/self/fd/{self._record.fileno()}", "rb") as file:  # noqa: PTH123
                yield file
        elif self._pipe:
            with self._passed_on() as reader:
                yield reader
        else:
            yield subprocess.DEVNULL

    @contextmanager
    def _passed_on(self) -> Iterator[int]:
        """Yield a pipe into which everything goes that comes in while the program runs, and record it."""
        record = self._record = tempfile.TemporaryFile()  # noqa: SIM115 -- kept for the later runs
        reader, writer = os.pipe()
        ended, stop = os.pipe()

        def pass_on() -> None:
            with suppress(BrokenPipeError, OSError):
                while self._descriptor in select.select([self._descriptor, ended], [], [])[0]:
                    block = os.read(self._descriptor, 1 << 16)
                    if not block:
                        break
                    record.write(block)
                    record.flush()
                    while block:
                        block = block[os.write(writer, block) :]
            os.close(writer)

        thread = threading.Thread(target=pass_on, daemon=True)
        thread.start()
        try:
            yield reader
        finally:
            os.close(reader)
            os.close(stop)
            thread.join()
            os.close(ended)
