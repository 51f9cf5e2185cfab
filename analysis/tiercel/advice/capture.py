"""Runs a program as it is, under a tracer, and says what was seen of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tiercel.advice.presence import Presence
from tiercel.advice.tracers import CallCost, Tracer, children_seconds, find_program
from tiercel.errors import UserError
from tiercel.placement.delay import Delay

#: How long helpers that outlive the program are waited for, and the tracer to write what it has.
_GRACE_S = 3.0


@dataclass(frozen=True)
class Capture:
    """One traced run. Times in seconds."""

    argv: tuple[str, ...]
    cwd: Path
    tracer: str
    tracer_version: str
    why: str
    folder: Path
    seconds: float
    """From start to end of the program, or until tracing ended; the tracer's cost is in it."""
    exit_code: int | None
    """None: it still runs."""
    cost: CallCost
    """What the tracer added to a call, as measured before the run."""
    user: float
    system: float
    """User and system time of the program and the helpers that it waited for."""
    kernel_bytes: int
    """What the program and the helpers that it waited for moved by read and write calls, as the kernel counts
    (pipes and terminals too)."""
    presence: Presence
    """What of its likely inputs was in the page cache just before."""
    notes: tuple[str, ...] = ()

    @property
    def delay(self) -> Delay:
        """What the tracer added to the run, for `compile_trace`."""
        user = None if self.exit_code is None else self.user
        cost = self.cost
        return Delay(cost.delay, user, self.seconds, self.system, cost.user, cost.system, cost.told)


class Program:
    """A started program; it goes on when tracing ends before it does.

    `quiet`: what it prints goes to standard error, since standard output is for the answer.
    """

    def __init__(
        self,
        argv: Sequence[str],
        tracer: Tracer,
        folder: Path,
        trace_for: float | None,
        quiet: bool = False,
    ) -> None:
        find_program(argv)
        self._argv, self._tracer, self._folder, self._trace_for = tuple(argv), tracer, folder, trace_for
        self._quiet = quiet
        folder.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None

    def capture(self) -> Capture:
        """Run it, with this terminal's input and output, until it ends or `trace_for` is over."""
        notes: list[str] = []
        cost = self._tracer.call_cost()
        command, variables = self._tracer.command(self._argv, self._folder, self._trace_for is not None)
        presence = Presence.take(self._argv)
        before, spent, began = _kernel_bytes(), children_seconds(), time.monotonic()
        try:
            self._process = subprocess.Popen(
                command, env={**os.environ, **variables}, stdout=sys.stderr if self._quiet else None
            )
        except OSError as error:
            raise UserError(f"{self._argv[0]}: does not start: {error.strerror}") from None
        watcher = _tracer_of(self._process.pid) if self._tracer.name == "strace" else None
        interrupted = False
        try:
            ended = _wait(self._process, self._trace_for)
        except KeyboardInterrupt:  # the terminal sent it to the program as well
            ended, interrupted = True, True
            self._process.wait()
        seconds = time.monotonic() - began
        user, system = (now - then for now, then in zip(children_seconds(), spent, strict=True))
        code = self._process.returncode if ended else None
        if not ended:
            notes.append(f"traced for {seconds:.0f} s; the program went on without the tracer")
            if watcher is not None:
                _stop(watcher)
        elif watcher is not None and not _gone(watcher, _GRACE_S):
            notes.append("it left helpers that still run: what they do from here on is not in the advice")
        if interrupted:
            notes.append("interrupted: the advice is on what it did until then")
        elif code:
            ended_by = (
                f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            )
            notes.append(f"the program {ended_by}: the advice is on what it did")
        return Capture(
            self._argv, Path.cwd(), self._tracer.name, self._tracer.version(), self._tracer.why, self._folder,
            seconds, code, cost, user, system, max(0, _kernel_bytes() - before), presence, tuple(notes),
        )  # fmt: skip

    def finish(self) -> int | None:
        """Wait for a program that went on, and return its exit code."""
        return self._process.wait() if self._process is not None else None


def _wait(process: subprocess.Popen[bytes], seconds: float | None) -> bool:
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        return False


def _tracer_of(process: int, patience: float = 5.0) -> int | None:
    """Return the pid of the tracer of a process; it is there within milliseconds."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        try:
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
        except OSError:
            return None
        said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        if pid := int(said.get("TracerPid", "0")):
            return pid
        if said.get("State", "").startswith("Z"):
            return None
        time.sleep(0.001)
    return None


def _gone(pid: int, seconds: float) -> bool:
    """Wait until a process that is no child of ours is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _stop(tracer: int) -> None:
    """Ask strace to let its programs go, and wait until it wrote what it had."""
    with suppress(ProcessLookupError):
        os.kill(tracer, signal.SIGTERM)
    _gone(tracer, _GRACE_S)


def _kernel_bytes() -> int:
    """Return what this process and the children that it waited for have moved so far (proc(5), io)."""
    try:
        pairs = (line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
        return sum(int(value) for name, value in pairs if name in ("rchar", "wchar"))
    except (OSError, ValueError):
        return 0
