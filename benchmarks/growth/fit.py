"""Measures a subject at several sizes, and fits the exponent with which its cost grows."""

from __future__ import annotations

import math
import multiprocessing
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.cost import TooLong, files_in, measure, written

_T = TypeVar("_T")

#: Below this part of the start-up cost, processor time above it is noise.
_NOISE = 0.25
#: Seconds of processor time that a size must take above the start-up cost.
_LEAST_S = 0.05


@dataclass(frozen=True)
class Trial:
    """A command that is ready to be measured."""

    command: list[str]
    folder: Path
    writes: tuple[Path, ...]
    """Folders: files in them that are new or changed afterwards count as written."""


@dataclass(frozen=True)
class Subject:
    """A command whose cost is measured at several sizes."""

    name: str
    unit: str
    """What the sizes count."""
    smallest: int
    """The size whose cost counts as the cost of starting."""
    sizes: tuple[int, ...]
    make: Callable[[Path, int], Trial]
    """Write the input of a size into a folder, unless it is there, and return the trial."""
    note: str = ""
    missing: Callable[[], str] = str
    """Return why the subject cannot be measured here; empty where it can."""


@dataclass(frozen=True)
class Row:
    """What a subject costs at one size."""

    size: int
    cpu: float | None
    wall: float | None
    memory: int | None
    """Bytes, of the largest process."""
    files: int | None
    bytes: int | None
    reason: str = ""
    """Why there is no number."""


@dataclass(frozen=True)
class Growth:
    """A subject's costs, the smallest size first, and how they grow."""

    subject: str
    unit: str
    note: str
    rows: tuple[Row, ...]
    exponent: float | None
    reason: str
    """Why there is no exponent."""


def grow(
    subject: Subject, sizes: Sequence[int], limit: float, root: Path, say: Callable[[Row], None]
) -> Growth:
    """Measure a subject at each size until one needs more than `limit` seconds; inputs are kept in `root`."""
    if why := apart(subject.missing):
        return Growth(subject.name, subject.unit, subject.note, (), None, why)
    rows: list[Row] = []
    for size in (subject.smallest, *sizes):
        if rows and (reason := _hopeless(rows[-1], limit)):
            rows.append(Row(size, None, None, None, None, None, reason))
        else:
            rows.append(_measured(subject, size, limit, root))
        say(rows[-1])
    exponent, why = exponent_of(rows)
    return Growth(subject.name, subject.unit, subject.note, tuple(rows), exponent, why)


def _hopeless(last: Row, limit: float) -> str:
    """Return why a larger size is not tried; empty where it may be."""
    if last.wall is None:
        return last.reason
    return f"not tried: more than {limit:.0f} s expected" if last.wall > limit / 2 else ""


def _measured(subject: Subject, size: int, limit: float, root: Path) -> Row:
    trial = apart(subject.make, root, size)
    before = files_in(trial.writes)
    try:
        cost = measure(trial.command, limit, trial.folder)
    except TooLong:
        return Row(size, None, None, None, None, None, f"longer than {limit:.0f} s")
    return Row(size, cost.cpu, cost.wall, cost.memory, *written(before, files_in(trial.writes)))


def apart(function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function in a process of its own, so that this one, whose memory others inherit, stays small."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def exponent_of(rows: Sequence[Row]) -> tuple[float | None, str]:
    """Return the slope of log(CPU) over log(size), both less those of the smallest size; or None, and why."""
    known = [(row.size, row.cpu) for row in rows if row.cpu is not None]
    if len(known) < 3:
        return None, rows[-1].reason or "fewer than two sizes above the smallest"
    (smallest, start), *others = known
    points = [
        (math.log(size - smallest), math.log(cpu - start))
        for size, cpu in others
        if cpu - start > max(_LEAST_S, _NOISE * start)
    ]
    if len(points) < 2:
        return None, "no cost above that of starting"
    return statistics.linear_regression(*zip(*points, strict=True)).slope, ""
