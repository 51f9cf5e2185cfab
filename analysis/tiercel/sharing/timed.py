"""One run of an application: how long it took, and why it failed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread

from tiercel.children import ending
from tiercel.errors import RunFailed
from tiercel.runs.execute import last_line, wait
from tiercel.sharing.jobs import Member
from tiercel.sharing.workload_application import SharingApplicationWorkload

#: Bytes of what an application printed last that are kept.
_WORDS = 4096
#: Bytes that it may be ahead of whoever reads what it prints: with the kernel's 64 KiB it would wait often.
_AHEAD = 1 << 20


def timed(
    command: Sequence[str],
    member: Member,
    workload: SharingApplicationWorkload,
    what: str = "",
) -> float:
    """Run a command of the application to its end and return its seconds; RunFailed with its last line.

    It is over when its first process ends. What that leaves running in its session, a new one, ends with it,
    so that it disturbs no other run.
    """
    name = f"application {workload.application}: {what}"
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            command, env=member.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=member.enter,  # noqa: PLW1509
        )  # fmt: skip
    except OSError as error:
        raise RunFailed(f"{name}{command[0]}: {error.strerror}") from None
    words = _Words(process)
    try:
        ended = wait(process, workload.longest)
        seconds = time.monotonic() - began
    finally:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only who became another user
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not ended:
        raise RunFailed(
            f"{name}not done after {workload.longest:g} s: give it more time (`longest`) or less to do"
        )
    if process.returncode:
        raise RunFailed(f"{name}{last_line(words.last()) or ending(process.returncode)}")
    return seconds


class _Words:
    """The last bytes that a process prints. A file for all of it might lie on the storage under test, and
    memory for it might not be there."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._from, self._kept = process.stdout, b""
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._from:
            with suppress(OSError):  # more than this user's pipes may have in all
                fcntl.fcntl(self._from, fcntl.F_SETPIPE_SZ, _AHEAD)
            room = bytearray(_AHEAD)
            while count := os.readv(self._from.fileno(), [room]):
                self._kept = self._kept[-_WORDS:] + bytes(room[max(0, count - _WORDS) : count])

    def last(self) -> str:
        self._thread.join(1.0)  # who left its session may hold the other end for ever
        return self._kept[-_WORDS:].decode(errors="replace")
