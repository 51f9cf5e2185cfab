"""What was measured of the ways: the trials of each, and what a run pays beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tiercel.advice.trial import Trial
from tiercel.advice.units import Unit
from tiercel.advice.ways import HOME, Way

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Terms:
    """What a run pays beside its replay, in seconds. `outside`: of the program, outside its I/O and what lies
    between; `in_calls`: what the trace measured in calls at home (None: it was not traced there); `script`:
    what the plan's script itself takes, in and out together, to begin with and for each move; `runs`: so
    often the files are used for each time that they are copied in."""

    outside: float = 0.0
    in_calls: float | None = None
    script: tuple[float, float] = (0.0, 0.0)
    runs: float = 1.0


@dataclass
class Measured:
    """Trials of each way, and why some have none. `rows`: of each unit, its files' places in the recipe;
    `dropped`: ways that were measured, and not to the end, with the reason; `aside`: of these, the ones that
    are in no comparison; `rounds`: how many were whole."""

    ways: dict[str, Way]
    rows: Mapping[str, Sequence[int]]
    terms: Terms = Terms()
    trials: dict[str, list[Trial]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)
    aside: set[str] = field(default_factory=set)
    rounds: int = 0
    interrupted: bool = False

    def values(self, way: str, quantity: str) -> Floats:
        """Return a quantity (`Trial`'s attribute) of each trial of a way."""
        return np.array([getattr(t, quantity) for t in self.trials.get(way, [])], dtype=np.float64)

    @property
    def fidelity(self) -> float:
        """I/O time that the trace measured at home over the replay's."""
        replayed = self.values(HOME, "io")
        if self.terms.in_calls is None or not len(replayed) or not np.median(replayed):
            return 1.0
        return self.terms.in_calls / float(np.median(replayed))


def rows_of(files: Sequence[str], units: Sequence[Unit]) -> dict[str, list[int]]:
    """Return the places in `files` of each unit's own."""
    place = {name: i for i, name in enumerate(files)}
    return {u.name: [place[f] for f in u.files] for u in units}
