"""Rounds of replays: which ways go on, and which are left off."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tiercel.advice.judge import COPIES, results_of
from tiercel.advice.measure import LEAST, measure
from tiercel.advice.measured import Measured
from tiercel.advice.trial import Trial
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, MIXED, Way

BASE = Unit("/base", Path("/base"), True, ("/base/f",), "disk", size=1)
SCRIPT = Unit("/script/*", Path("/script"), False, ("/script/f",), "other", size=1)
UNITS = (BASE, SCRIPT)
#: Seconds in calls on /base and on /script, by storage.
TOOK = {"disk": (1.0, 0.9), "fast": (0.1, 0.0), "other": (0.8, 0.001)}


@dataclass
class FixedBench:
    """Replays take what TOOK says, and what a little noise adds."""

    units: tuple[Unit, ...] = UNITS
    tried: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)

    def try_(self, way: Way, _limit: float, copies: bool = False) -> Trial:
        self.tried.append(way.name)
        self.copied += [way.name] if copies else []
        seconds = [TOOK[way.systems[u.name]][i] for i, u in enumerate(self.units)]
        noise = 1 + 0.001 * (len(self.tried) % 7)
        files = np.array([[s * noise, 0, 0, 0] for s in seconds])
        return Trial(0.5 + float(files.sum()), files, np.ones((2, 4)))


def measured(*ways: Way) -> tuple[FixedBench, Measured]:
    bench: Any = FixedBench()
    home = {"/base": "disk", "/script/*": "other"}
    every = [Way(HOME, home), Way(AGAIN, home), *ways]
    found = Measured({w.name: w for w in every}, {"/base": [0], "/script/*": [1]})
    measure(bench, found, 60.0, 1, lambda _said: None)
    return bench, found


def test_a_way_that_moves_nothing_that_takes_time_is_left_off() -> None:
    """All on disk moves a script alone: its replays would take as long as those at home, for nothing."""
    ways = [Way("all on disk", {"/base": "disk", "/script/*": "disk"})]
    bench, found = measured(*ways, Way("all on fast", {"/base": "fast", "/script/*": "fast"}))
    assert bench.tried.count("all on disk") == 1
    assert "nothing that takes time" in found.dropped["all on disk"]
    assert [w.name for w in results_of(found, UNITS)] == [HOME, MIXED]


def test_files_that_take_no_time_stay_and_the_answer_needs_few_rounds() -> None:
    bench, found = measured(Way("all on fast", {"/base": "fast", "/script/*": "fast"}))
    assert dict(found.ways[MIXED].systems) == {"/base": "fast", "/script/*": "other"}
    # Tried once, and then the same without the script.
    assert bench.tried.count("all on fast") == 1 and found.aside == {"all on fast"}
    assert found.rounds <= LEAST + 1
    # What copying takes is measured for the one that came later, too, and never for home.
    assert {name: bench.copied.count(name) for name in set(bench.copied)} == {"all on fast": 1, MIXED: COPIES}
