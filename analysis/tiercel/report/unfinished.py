"""What the report of a study that goes on says first: how much is there, what is missing, what may change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations

from tiercel.pages.tables import Cell, Table
from tiercel.report import words
from tiercel.runs.replaced import sentence
from tiercel.runs.status import Part, Status
from tiercel.runs.status_words import state_of
from tiercel.units import format_duration

#: Sentences on damaged runs that are shown.
_SHOWN = 3


@dataclass(frozen=True)
class Live:
    """How a page that is made again and again says so."""

    seconds: float
    """From one making to the next, about."""
    made: float
    """When, seconds since the epoch."""

    @property
    def at(self) -> str:
        return f"{datetime.fromtimestamp(self.made, UTC):%H:%M:%S} UTC"


@dataclass(frozen=True)
class Unfinished:
    """What is said on top of the page. All texts are plain."""

    sentences: tuple[str, ...]
    table: Table | None
    share: float
    """Of the planned runs that are done, 0 to 1."""
    ended: bool = False
    live: Live | None = None


def unfinished(status: Status, command: str, problems: Sequence[str] = ()) -> Unfinished | None:
    """Return what to say of a study; None of one that is whole.

    `command` goes on with it. `problems`: sentences on runs that could not be read.
    """
    failed = sum(len(failure.runs) for failure in status.failures)
    if not status.left and not problems:
        return None
    ended = status.done + failed
    planned = ended + status.left
    share = ended / planned if planned else 1.0
    counts = f"{status.done} of {words.count(planned, 'planned run')} done"
    counts += f", {failed} failed" if failed else ""
    said = [f"This study is not finished: {counts} ({words.percent(share)} of the plan)."]
    if status.left:
        said.append(
            f"State: {state_of(status, command)}. Remaining: {words.count(status.left, 'run')}, about "
            f"{format_duration(status.seconds_left)}."
        )
    if status.replaced:
        said.append(f"{sentence(status.replaced)}. The page shows the earlier results until then.")
    pairs, waiting = _comparisons(status.parts)
    if pairs:
        rest = "the comparisons between storage systems are final"
        if waiting:
            rest = (
                f"{waiting} of {words.count(pairs, 'comparison')} between storage systems can still change, "
                "because runs are missing"
            )
        said.append(f"{words.capital(rest)}.")
    said += problems[:_SHOWN]
    if len(problems) > _SHOWN:
        said.append(f"And {len(problems) - _SHOWN} more runs cannot be read.")
    return Unfinished(tuple(said), _table(status.parts), share)


def now(seconds: float) -> Live:
    """Return what a page says that is made now, and about so many seconds later again."""
    return Live(seconds, time.time())


def _comparisons(parts: Sequence[Part]) -> tuple[int, int]:
    """Return how many pairs of stacks are compared on a workload, and how many of these wait for runs."""
    workloads: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        workloads.setdefault((part.experiment, part.workload), []).append(part)
    pairs = [
        pair
        for some in workloads.values()
        for pair in combinations(some, 2)
        if (pair[0].storage == pair[1].storage) != (pair[0].layer == pair[1].layer)
    ]
    return len(pairs), sum(bool(a.left or b.left) for a, b in pairs)


def _table(parts: Sequence[Part]) -> Table | None:
    """Return runs done of those planned, of workloads with some to come: a row each, a column per stack."""
    open_ones = list(dict.fromkeys((p.experiment, p.workload) for p in parts if p.left))
    if not open_ones:
        return None
    labels = list(dict.fromkeys(words.stack(p.storage_label, p.layer) for p in parts))
    at = {(p.experiment, p.workload, words.stack(p.storage_label, p.layer)): p for p in parts}
    titles = {(p.experiment, p.workload): p.title for p in parts}
    rows = []
    for key in open_ones:
        cells = [Cell(titles[key], kind="title")]
        for label in labels:
            part = at.get((*key, label))
            cells.append(Cell(_of(part)) if part else Cell(words.MISSING))
        rows.append(("", cells))
    return Table(
        "Progress by workload. Runs done of those planned", ("Workload", *labels), frozenset(labels), rows
    )


def _of(part: Part) -> str:
    planned = part.done + part.failed + part.left
    return f"{part.done} of {planned}" + (f", {part.failed} failed" if part.failed else "")
