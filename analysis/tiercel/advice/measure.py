"""Measures ways in rounds: each replays every way once, in random order, until decided or out of time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

import numpy as np

from tiercel.advice.judge import COPIES, decided, matters, wished_systems
from tiercel.advice.measured import Measured
from tiercel.advice.trial import Bench
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, MIXED, mixed
from tiercel.errors import RunFailed
from tiercel.placement.replaying import PATIENCE_S

#: Rounds before a verdict is possible: a rank test of four against eight at home, corrected for some ways.
LEAST, MOST = 4, 12
#: A way is given up when it takes this many times as long as home, and some seconds more.
_TOO_SLOW, _PATIENCE_S = 5.0, 5.0
#: After so many rounds only the best ways go on, those within the first factor of the best; after one round
#: those within the second.
_HALVE_AFTER, _NEAR, _FAR = 2, 1.3, 2.0

Progress = Callable[[str], None]


def measure(bench: Bench, found: Measured, seconds: float, seed: int, progress: Progress) -> None:
    """Add trials of all of `found.ways`. Ctrl-C ends it and keeps what is known; `seconds` is the budget."""
    units = bench.units
    deadline = time.monotonic() + seconds
    longest = 0.0
    try:
        for number in range(MOST):
            if number >= LEAST and decided(found, units):
                break
            began = time.monotonic()
            if number and began + longest > deadline:
                break
            _round(bench, found, number, seed, deadline, progress)
            longest = max(longest, time.monotonic() - began)
            found.rounds = number + 1
            _set_aside(found, units)
            _add_mixed(found, units)
            _drop_slow(found)
            if HOME not in found.trials:
                break
    except KeyboardInterrupt:
        found.interrupted = True


def _round(
    bench: Bench, found: Measured, number: int, seed: int, deadline: float, progress: Progress
) -> None:
    names = [n for n in found.ways if n not in found.failed and n not in found.dropped]
    random.Random(f"advise:{seed}:{number}").shuffle(names)
    if number == 0:  # home first: it says how long the others may take
        names.sort(key=lambda n: n != HOME)
    for name in names:
        left = max(0.0, deadline - time.monotonic())
        if number and not left:
            return
        progress(f"round {number + 1}: {name}, {left:.0f} s of the budget left")
        walls = found.values(HOME, "wall")
        limit = _TOO_SLOW * float(np.median(walls)) + _PATIENCE_S if len(walls) else PATIENCE_S
        # Of each way's own first trials: the mixed one may come late.
        copies = len(found.trials.get(name, ())) < COPIES and name not in (HOME, AGAIN)
        try:
            found.trials.setdefault(name, [])
            found.trials[name].append(bench.try_(found.ways[name], limit, copies))
        except RunFailed as failure:
            if not found.trials[name]:
                del found.trials[name]
            found.failed[name] = str(failure)


def _set_aside(found: Measured, units: Sequence[Unit]) -> None:
    """After the first round: leave off ways that move nothing that takes time."""
    if HOME not in found.trials:
        return
    for name, way in found.ways.items():
        if name in (HOME, AGAIN, MIXED, *found.dropped):
            continue
        if not any(matters(found, unit) for unit in way.moved(units)):
            found.dropped[name] = "it moves nothing that takes time"
            found.aside.add(name)


def _add_mixed(found: Measured, units: Sequence[Unit]) -> None:
    """After the first round: try each unit where its own I/O was fastest, if that is another way.

    Where it is a way that was tried, but for units that take no time, it takes that one's place.
    """
    if MIXED in found.ways or HOME not in found.trials:
        return
    way = mixed(units, wished_systems(found, units))
    if any(dict(way.systems) == dict(other.systems) for other in found.ways.values()):
        return
    found.ways[MIXED] = way
    home = found.ways[HOME]
    for name, other in found.ways.items():
        differing = [u for u in units if other.systems[u.name] != way.systems[u.name]]
        if name in (HOME, AGAIN, MIXED) or not found.trials.get(name):
            continue
        if all(way.systems[u.name] == home.systems[u.name] for u in differing) and not any(
            matters(found, u) for u in differing
        ):
            found.dropped[name] = "the same without its files that take no time is tried instead"
            found.aside.add(name)


def _drop_slow(found: Measured) -> None:
    """Leave off ways that are far behind the best, so that the budget decides between the others."""
    walls = {n: float(np.median(found.values(n, "wall"))) for n in found.trials if found.trials[n]}
    best = min(walls.values())
    factor = _NEAR if found.rounds >= _HALVE_AFTER else _FAR
    for name, wall in walls.items():
        if (
            name not in (HOME, AGAIN, *found.dropped)
            and wall > factor * best
            and wall > factor * walls.get(HOME, wall)
        ):
            found.dropped[name] = (
                f"slower than home by {wall / walls[HOME]:.1f} times in {found.rounds} rounds"
            )
