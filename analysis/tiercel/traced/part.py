"""Which events of a trace count: those of the measured phases, on files of the run's data folder.

A traced run holds more than what was measured: a cold read first writes its file, an engine's start and end
look around. The engine says when each phase began and how long it took, by the clock that the tracer reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tiercel.engines import Measurement
from tiercel.results.raw import RawRun
from tiercel.runs.scratch import RUN_PREFIX
from tiercel.traces.analysis.common import IS_IO
from tiercel.traces.engine import quoted
from tiercel.traces.frame import IOFrame

#: Tracers cut their times to whole microseconds, and a time of day in float64 is good to a quarter of one.
_CLOCK_S = 2e-6

MEASURED, WHOLE = "measured phases", "whole trace"


@dataclass(frozen=True)
class Phase:
    """A measured phase; times in seconds from the frame's time 0."""

    operation: str
    start: float
    end: float
    limit: float
    """An event that begins at this time or later is none of the phase's."""
    operations: int | None
    bytes: int | None
    repeats: int = 1
    """Of how many pieces this is one."""


@dataclass(frozen=True)
class Part:
    """The events that count, and what is left out."""

    frame: IOFrame
    folder: str
    """The run's data folder as the trace names it; empty where no file lies in it."""
    phases: tuple[Phase, ...]
    """Empty where their times are not known: then the whole trace counts."""
    elsewhere: int
    """Files outside the folder, whose calls do not count."""

    @property
    def name(self) -> str:
        return MEASURED if self.phases else WHOLE

    @property
    def repeated(self) -> bool:
        """Whether a phase was run several times over, each time on new files."""
        return any(p.repeats > 1 for p in self.phases)

    @property
    def seconds(self) -> float | None:
        return sum(p.end - p.start for p in self.phases) if self.phases else None


def part_of(frame: IOFrame, raw: RawRun, measurements: Sequence[Measurement]) -> Part:
    """Return the part of a run's trace that its numbers are of."""
    phases = _phases(frame, measurements, raw.run["nodes"])
    if phases:
        frame = frame.where(" OR ".join(_during(phases)))
    folder = data_folder(frame, raw)
    below = f"(starts_with(file, {quoted(folder + '/')}) OR file = {quoted(folder)})"
    others = f"count(DISTINCT file) FILTER ({IS_IO}" + (f" AND NOT {below})" if folder else ")")
    elsewhere = int(frame.query(f"SELECT {others} AS n FROM events WHERE file IS NOT NULL")["n"].iloc[0])
    if folder:
        frame = frame.where(f"file IS NULL OR {below}")
    return Part(frame, folder, phases, elsewhere if folder else 0)


def _phases(frame: IOFrame, measurements: Sequence[Measurement], nodes: int) -> tuple[Phase, ...]:
    """Return the measured phases, each from the first process's start to the last one's end.

    What begins later is the engine's own: it drops the next repeat's file from memory some microseconds after
    a phase that may be as short. Only clocks of several nodes may say later of what was in time.
    """
    if frame.began is None or not any(m.role == "measured" for m in measurements):
        return ()
    found = []
    begins = [began - frame.began - _CLOCK_S for m in measurements for began, _ in _pieces(m)]
    for m in measurements:
        if m.role != "measured":
            continue
        pieces = _pieces(m)
        if not pieces or m.total_time is None:
            return ()
        for number, (began, seconds) in enumerate(pieces):
            start = began - frame.began - _CLOCK_S
            end = start + seconds
            late = (m.clock_skew or 0.0) if nodes > 1 else 0.0
            limit = min([end + _CLOCK_S + late, *(b for b in begins if b > start)])
            calls, moved = (_share(whole, number, len(pieces)) for whole in (m.operations, m.bytes_moved))
            found.append(Phase(m.operation, start, end, limit, calls, moved, len(pieces)))
    return tuple(sorted(found, key=lambda phase: phase.start))


def _pieces(m: Measurement) -> tuple[tuple[float, float], ...]:
    """Return start and seconds of each piece of a phase; nothing where its start is not known."""
    if m.pieces:
        return m.pieces
    return () if m.began is None else ((m.began, m.total_time or 0.0),)


def _share(whole: int | None, number: int, pieces: int) -> int | None:
    """Return what one of so many equal pieces did; the first has what does not divide."""
    return None if whole is None else whole // pieces + (whole % pieces if number == 0 else 0)


def _during(phases: Sequence[Phase]) -> list[str]:
    """Return SQL conditions on the time at which an event begins; no event meets two of them."""
    return [f"(time >= {p.start!r} AND time < {p.limit!r})" for p in phases]


def data_folder(frame: IOFrame, raw: RawRun) -> str:
    """Return the folder that the run's engine was given, as the trace names it; empty when no file is below.

    A layer may show the storage under another path: the tracer was told which (DFTRACER_DATA_DIR). An engine
    that traces itself was not: then it is the folder of the run in the storage's scratch folder.
    """
    for step in raw.record.get("steps", ()):
        for word in step["argv"]:
            if word.startswith("DFTRACER_DATA_DIR="):
                return str(word.partition("=")[2].rstrip("/"))
    marker = f"/{RUN_PREFIX}{raw.run['run']}/data"
    found = frame.query(
        f"SELECT file FROM events WHERE contains(file, {quoted(marker)}) LIMIT 1"
    )["file"]  # fmt: skip
    if found.empty:
        return ""
    name = str(found.iloc[0])
    return name[: name.index(marker) + len(marker)]


def relative(text: str, folder: str) -> str:
    """Return a text with paths below the data folder as the run knows them: without the folder."""
    return re.sub(re.escape(folder) + r"(/|(?![\w.-]))", "", text) if folder else text
