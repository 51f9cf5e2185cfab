"""Tells the user what runs, how it went and how long the rest takes: one line, renewed on a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from tiercel.runs.execute import Outcome
from tiercel.study.plan import Run
from tiercel.units import format_bandwidth, format_duration, format_rate

#: Without a terminal (a job's log) a line at most this often, so that logs stay readable.
QUIET_S = 5.0
#: The estimate of the time left looks at every run of the plan: for plans of thousands of short runs it is
#: made anew this often, not after each.
ESTIMATE_S = 1.0


class Progress:
    """`done` and `total` count runs of the whole study, not of one job."""

    def __init__(self, done: int, total: int, stream: TextIO | None = None) -> None:
        self._done, self._total = done, total
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._last = float("-inf")
        self._left, self._estimated = "", float("-inf")
        self._growing = False

    def start(self, run: Run) -> None:
        if self._live:
            self._show(f"{describe(run)} ...")

    def end(self, outcome: Outcome, time_left: Callable[[], float | None], expected: bool) -> None:
        """Count a run (`expected`: it was in the total); show it, and keep the line of a failed one.

        `time_left` gives the seconds that the rest will take, or None; it is asked only when it is shown.
        """
        self._done += 1
        self._total += not expected
        self._growing |= not expected
        line = f"{describe(outcome.run)}  {result_of(outcome)}"
        if outcome.status == "failed":
            self._keep(line)
        elif self._live:
            self._show(line + self._time_left(time_left))
        elif time.monotonic() - self._last >= QUIET_S or (self._done == self._total and not self._growing):
            self._keep(line + self._time_left(time_left))

    def skip(self, expected: bool) -> None:
        """Take a run that needs no doing (its interval is tight enough, say) out of the total."""
        self._total -= expected

    def close(self) -> None:
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _time_left(self, time_left: Callable[[], float | None]) -> str:
        if time.monotonic() - self._estimated >= ESTIMATE_S:
            seconds = time_left()
            self._left = "" if seconds is None else f"  about {format_duration(seconds)} left"
            self._estimated = time.monotonic()
        return self._left

    def _show(self, line: str) -> None:
        text = f"{self._count()} {line}"
        self._stream.write(f"\r\x1b[K{text[: self._width()]}")
        self._stream.flush()

    def _keep(self, line: str) -> None:
        start = "\r\x1b[K" if self._live else ""
        self._stream.write(f"{start}{self._count()} {line}\n")
        self._stream.flush()
        self._last = time.monotonic()

    def _count(self) -> str:
        # More repetitions than the fewest are decided one after the other: nobody knows yet how many.
        total = f"{self._total}{'+' if self._growing else ''}"
        return f"[{self._done:{len(total)}}/{total}]"

    def _width(self) -> int:
        return shutil.get_terminal_size().columns - 1


def describe(run: Run) -> str:
    """Return ``scaling scientific  ext4 /  1 node x 2``, in words a stranger understands."""
    c = run.configuration
    storage = c.stack.storage.label or c.stack.name
    nodes = f"{c.nodes} nodes x " if c.nodes > 1 else ""
    traced = ", traced" if run.traced else ", calibration" if run.calibration else ""
    processes = f"{c.processes_per_node} process{'es' if c.processes_per_node > 1 else ''}"
    return f"{c.experiment} {c.name}  {storage}  {nodes}{processes}{traced}"


def result_of(outcome: Outcome) -> str:
    """Return the run's first measured number, or why there is none."""
    if outcome.status == "failed":
        return f"FAILED: {outcome.reason}"
    if outcome.amount is not None:
        return f"chose {outcome.amount.amount:,} blocks or items per process ({outcome.amount.bound})"
    measured = [m for m in outcome.measurements if m.role == "measured"]
    if not measured:
        return "no result"
    first = measured[0]
    if first.bandwidth is not None:
        return format_bandwidth(first.bandwidth)
    if first.operation_rate is not None:
        return f"{first.operation} {format_rate(first.operation_rate)}"
    # Of a program on plain storage nobody counts what it moves.
    return f"{first.operation} {format_duration(first.total_time)}" if first.total_time else "done"
