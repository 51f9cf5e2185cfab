"""Repetitions beyond what a study plans, for what it left undecided (`tiercel evaluate --decide`).

::

    results/<site>/looks/<study>.<n>.json     the n-th further look, written once

A look is a list of configurations, by their hash, and how many more repetitions each gets. It is part of the
plan: whoever makes the plan again, in a job on another node or after a kill, finds the same runs in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.atomic_file import drafted
from tiercel.errors import UserError

#: No configuration gets more repetitions in a look: a damaged file must not make a plan of billions.
_MOST = 100_000
_REMEDY = "remove it and those after it: their runs stay, and are planned no more"


@dataclass(frozen=True)
class Look:
    """One further look. Its rounds are numbered on from `first`, for all configurations alike: runs that
    carry one number ran within minutes."""

    number: int
    first: int
    repetitions: Mapping[str, int]
    """By configuration: how many."""
    seconds: float = math.inf
    """What its runs may take together: then none is begun any more."""

    @property
    def end(self) -> int:
        """The number after its last round's."""
        return self.first + max(self.repetitions.values(), default=0)


def path_of(results: Path, study: str, number: int) -> Path:
    return results / "looks" / f"{study}.{number}.json"


def read_looks(results: Path, study: str) -> tuple[Look, ...]:
    """Return the further looks of a study on a site, in order. UserError for a file that is damaged."""
    found: list[Look] = []
    while (path := path_of(results, study, len(found) + 1)).is_file():
        look = _read(path, len(found) + 1)
        if found and look.first < found[-1].end:
            raise UserError(f"{path}: begins with round {look.first}, within the look before it: {_REMEDY}")
        found.append(look)
    return tuple(found)


def _read(path: Path, number: int) -> Look:
    try:
        content: Any = json.loads(path.read_text())
        counts = {str(key): int(n) for key, n in content["repetitions"].items()}
        first = int(content["first"])
        seconds = float(content.get("seconds", math.inf))
        if first < 0 or seconds < 0 or any(n < 0 for n in counts.values()):
            raise ValueError("a negative number")
        if any(n > _MOST for n in counts.values()):
            raise ValueError(f"more than {_MOST:,} repetitions")
    except (OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: not readable as a further look ({error or type(error).__name__}): put it back, or "
            f"{_REMEDY}"
        ) from None
    return Look(number, first, counts, seconds)


def write_look(
    results: Path, study: str, first: int, repetitions: Mapping[str, int], seconds: float = math.inf
) -> Path:
    """Write the next further look of a study, which may take so long; return its file."""
    path = path_of(results, study, len(read_looks(results, study)) + 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {"first": first, "repetitions": dict(sorted(repetitions.items()))}
    if math.isfinite(seconds):
        content["seconds"] = seconds
    with drafted(path) as draft:
        draft.write_text(json.dumps(content, indent=1) + "\n")
    return path


def first_after(maximum: int, looks: Iterable[Look]) -> int:
    """Return the number of the next look's first round."""
    return max([maximum, *(look.end for look in looks)])
