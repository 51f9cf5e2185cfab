"""A child process that is asked line by line, so that what breaks it does not break its parent.

C libraries end the whole process on some damaged files, or never come back. The child that they run in is
started when it is first asked, does many tasks in turn, and is replaced after one that ended it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

#: How the reason begins of what took too long.
LATE = "not done after"


class Lost(Exception):
    """The child did not answer; the text says why: how it ended, or that its time was up."""


class Child:
    """Context manager. `group`: the child gets a session of its own, and its children end with it.
    `environment`: variables that it has beside this process' own."""

    def __init__(
        self, command: Sequence[str], *, group: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = list(command)
        self._environment = dict(environment or {})
        self._group = group
        self._process: subprocess.Popen[bytes] | None = None
        self.answered = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self.close()

    def ask(self, line: str, seconds: float) -> str:
        """Send a line and return the line that answers it; `Lost` when none comes within `seconds`."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode("utf-8", "surrogateescape") + b"\n")
            process.stdin.flush()
            answer = self._answer(process, seconds)
        except BrokenPipeError:
            answer = None
        except BaseException:  # interrupted: what it does now nobody wants any more
            self.close()
            raise
        if answer is None:
            raise Lost(self._ended())
        self.answered += 1
        return answer

    def close(self) -> None:
        """End the child; the next question starts another one."""
        self.kill()
        process, self._process = self._process, None
        if process is None:
            return
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def kill(self) -> None:
        """Kill the child: who waits for its answer, in another thread, learns that it ended."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            if self._group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        self.answered = 0
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=self._group, env={**os.environ, **self._environment},
        )  # fmt: skip
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> str | None:
        """Return the child's next line; None when it ended. It writes no line that nobody asked for."""
        assert process.stdout is not None
        descriptor, parts = process.stdout.fileno(), [b""]
        waits = select.poll()
        waits.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + seconds
        while not parts[-1].endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not waits.poll(left * 1000):
                self.close()
                raise Lost(f"{LATE} {seconds:g} s")
            parts.append(os.read(descriptor, 1 << 16))
            if not parts[-1]:
                return None
        return b"".join(parts).decode("utf-8", "surrogateescape").rstrip("\n")

    def _ended(self) -> str:
        process = self._process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):  # it closed its output and lives on
            process.wait(5)
        code = process.poll()
        self.close()
        if code is not None and code < 0:
            return f"ended with signal {-code}"
        return "gave no answer" if code is None else f"ended with exit code {code}"
