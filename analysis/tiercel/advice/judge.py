"""What the trials of the ways say: which one to take, what it saves, and how sure that is.

A way is advised only when its total (run and copying) is lower than home's by `statistics.comparison`: the
interval of the ratio lies outside what home against home shows in the same rounds, a rank test corrected for
the number of ways agrees, and it is more than `WORTH` of the run. Everything else stays where it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tiercel.advice.measured import Floats, Measured
from tiercel.advice.units import Unit
from tiercel.advice.ways import AGAIN, HOME, MIXED, Way
from tiercel.statistics.comparison import Comparison, compare, judge
from tiercel.statistics.difference import difference_interval
from tiercel.statistics.noise import noise_floor, shown_floor
from tiercel.statistics.summary import summarize
from tiercel.units import format_share

#: Rounds in which copying is measured too.
COPIES = 3
#: A gain below this share of the run is not worth moving files for.
WORTH = 0.03
#: A unit is moved in a mixed way when that saves this share of all I/O time at home, and of the run.
_PART, _OF_RUN = 0.02, 0.005
#: By so much a program's own run time varies at least, from run to run, beside what its I/O does: of 20
#: programs at two homes (benchmarks.advise) half had a median absolute deviation of 2.7 % or more, on an idle
#: machine.
_OWN_NOISE = 0.05


@dataclass(frozen=True)
class Span:
    """A number with the interval in which it lies at 95 %."""

    median: float
    low: float
    high: float

    def scaled(self, factor: float) -> Span:
        return Span(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class WayResult:
    """What a way came to, in seconds. `run`: of the program; `copies`: what copying adds to one run."""

    placed: Way
    n: int
    run: Span
    io: Span
    copy_in: float
    copy_out: float
    saved: Span
    """Of run time, against home, copying not counted."""
    comparison: Comparison | None
    """Of home's time against this way's, copying counted; None for home itself."""
    living: Comparison | None
    """The same without copying: if the files lived there."""
    pays_from: int | None = None
    """How many runs must share what was copied in, so that even the least of `saved` pays; None: no number
    does."""

    @property
    def name(self) -> str:
        return self.placed.name

    @property
    def systems(self) -> Mapping[str, str]:
        return self.placed.systems

    def moved(self, units: Sequence[Unit]) -> list[Unit]:
        return self.placed.moved(units)

    @property
    def copies(self) -> float:
        return self.copy_in + self.copy_out


@dataclass(frozen=True)
class Verdict:
    """`way`: the one to take (home where nothing else is surely better). `living`: which would be best if its
    files lived there (their own storage otherwise), None where none is surely better. `copied`: where files
    stay at home, which is surely better but for copying."""

    way: WayResult
    home: WayResult
    decided: bool
    living: WayResult | None
    reason: str
    copied: WayResult | None = None


def results_of(found: Measured, units: Sequence[Unit]) -> list[WayResult]:
    """Return every way's result, home first, then by total."""
    walls = {name: found.values(name, "wall") for name in found.trials if found.trials[name]}
    if HOME not in walls:
        return []
    offset, fidelity = found.terms.outside, found.fidelity
    own = np.concatenate([walls[HOME], walls.get(AGAIN, np.empty(0))])
    again = walls.get(AGAIN, np.empty(0))
    floor, spread = shown_floor(walls[HOME], again), noise_floor(walls[HOME], again)
    names = [n for n in walls if n not in (HOME, AGAIN, *found.aside)]
    totals = {n: walls[n] + sum(_copying(found, n, units)) for n in names}
    judged = judge([compare(own + offset, totals[n] + offset, floor) for n in names])
    living = judge([compare(own + offset, walls[n] + offset, floor) for n in names])
    varies = max(_OWN_NOISE, min(0.1, spread.high - 1 if spread.known else 0.1))
    noise = varies * (float(np.median(own)) + offset)
    nothing = Span(0.0, 0.0, 0.0)
    found_ways = [_result(found, HOME, own, offset, nothing, None, None, (0.0, 0.0))]
    for name, c, alive in zip(names, judged, living, strict=True):
        saved = _saved(own, walls[name], fidelity, noise)
        copies = _copying(found, name, units)
        found_ways.append(_result(found, name, walls[name], offset, saved, c, alive, copies))
    head, *rest = found_ways
    return [head, *sorted(rest, key=lambda w: w.run.median + w.copies)]


def verdict(
    ways: Sequence[WayResult], volatile: Mapping[str, bool], waited: float, fidelity: float = 1.0
) -> Verdict | None:
    """Return which of the ways to take.

    `volatile`: storages whose files are gone after a restart. `waited`: share of the run that waits for I/O.
    `fidelity`: as measured; below 1 the program's own I/O at home took less than the replay's, and so much
    less can be saved.
    """
    if not ways:
        return None
    home, *others = ways
    if waited < WORTH:
        return Verdict(
            home, home, True, None, f"no storage can save more than {format_share(waited, 1)} of a run"
        )
    better = [w for w in others if _better(w.comparison) and w.saved.median * min(1.0, fidelity) > w.copies]
    alive = [
        w for w in others if _better(w.living) and not any(volatile[s] for s in set(w.systems.values()) if s)
    ]
    living = min(alive, key=lambda w: w.run.median, default=None)
    if better:
        best = min(better, key=lambda w: w.run.median + w.copies)
        return Verdict(best, home, True, living, "")
    if not others:
        return Verdict(home, home, True, None, "there is no other storage to try")
    near = min(others, key=lambda w: w.run.median + w.copies)
    c = near.comparison
    assert c is not None
    gains = [w for w in others if _better(w.living) and w.saved.median > WORTH * home.run.median]
    copied = min(gains, key=lambda w: w.run.median, default=None)
    if c.verdict == "lower" or (c.low > 1 - WORTH and c.high < 1 + WORTH):
        return Verdict(home, home, True, living, f"{near.name}, the best of the others, is no faster", copied)
    if c.verdict == "higher":
        reason = f"{near.name} gains less than {format_share(WORTH)} of a run"
        return Verdict(home, home, True, living, reason, copied)
    return Verdict(home, home, False, living, f"{near.name} against home: {c.reason}", copied)


def decided(found: Measured, units: Sequence[Unit]) -> bool:
    """Return whether more rounds change nothing: the best way is surely better, or surely not."""
    ways = results_of(found, units)
    if len(ways) < 2:
        return True
    near = min(ways[1:], key=lambda w: w.run.median + w.copies)
    c = near.comparison
    return c is not None and (c.verdict != "undecided" or (c.low > 1 - WORTH and c.high < 1 + WORTH))


def wished_systems(found: Measured, units: Sequence[Unit]) -> dict[str, str]:
    """Return for each unit the storage on which its own I/O, and copying it, took least."""
    least = _decides(found)
    wished = {}
    for unit in units:
        if not unit.storage or unit.stays:
            continue
        cost = {unit.storage: unit_seconds(found, HOME, unit)}
        for name, way in found.ways.items():
            if name in (HOME, AGAIN, MIXED) or not found.trials.get(name):
                continue
            storage = way.systems[unit.name]
            if storage != unit.storage:
                cost[storage] = unit_seconds(found, name, unit) + sum(_copying(found, name, units)) * _share(
                    unit, way.moved(units)
                )
        best = min(cost, key=lambda s: cost[s])
        wished[unit.name] = best if cost[unit.storage] - cost[best] > least else unit.storage
    return wished


def unit_seconds(found: Measured, way: str, unit: Unit) -> float:
    """Return the seconds in calls on a unit's files, in the median of a way's trials."""
    rows = found.rows[unit.name]
    return float(np.median([t.files[rows].sum() for t in found.trials[way]]))


def matters(found: Measured, unit: Unit) -> bool:
    """Return whether a unit's I/O at home is a part of it all that decides something."""
    return unit_seconds(found, HOME, unit) > _decides(found)


def _decides(found: Measured) -> float:
    """Return the seconds of I/O below which nothing is moved."""
    io, wall = (float(np.median(found.values(HOME, q))) for q in ("io", "wall"))
    return max(_PART * io, _OF_RUN * wall)


def _share(unit: Unit, moved: Sequence[Unit]) -> float:
    """Return which part of a way's copying is this unit's."""
    whole = sum(u.bytes_before + u.bytes_after for u in moved)
    return (unit.bytes_before + unit.bytes_after) / whole if whole else 0.0


def _copying(found: Measured, way: str, units: Sequence[Unit]) -> tuple[float, float]:
    """Return the seconds that copying in (once for all runs) and out (after each) add to one run."""
    trials = found.trials[way][:COPIES]
    moves = sum(1 if u.whole else len(u.inputs) for u in found.ways[way].moved(units) if u.size)
    begin, each = found.terms.script
    script = (begin + each * moves) / 2 if moves else 0.0
    copy_in, copy_out = (float(np.median([getattr(t, q) for t in trials])) for q in ("copy_in", "copy_out"))
    runs = found.terms.runs
    return (copy_in + script) / runs, copy_out + script / runs


def _pays_from(saved: Span, copies: tuple[float, float], runs: float) -> int | None:
    """Return how many runs must share what is copied in. `copies`: of one run, when `runs` share it."""
    each = saved.low - copies[1]
    return math.ceil(copies[0] * runs / each) if each > 0 else None


def _saved(own: Floats, walls: Floats, fidelity: float, noise: float) -> Span:
    """Return seconds saved, as wide as its three sources of doubt: the trials' spread, how well the replay at
    home repeats the trace's own I/O time, and how much the program itself varies from run to run."""
    median = float(np.median(own) - np.median(walls))
    low, high = difference_interval(own, walls)
    factors = (min(1.0, fidelity), max(1.0, fidelity))
    ends = [value * factor for value in (min(low, median), max(high, median)) for factor in factors]
    # No more can be saved than lies between the slowest run at home and the fastest of this way.
    most = float(own.max() - walls.min()) * max(1.0, fidelity) + noise
    return Span(median, min(min(ends) - noise, median), max(median, min(max(ends) + noise, most)))


def _result(
    found: Measured, name: str, walls: Floats, offset: float, saved: Span, comparison: Comparison | None,
    living: Comparison | None, copies: tuple[float, float],
) -> WayResult:  # fmt: skip
    run, io = summarize(walls + offset), summarize(found.values(name, "io"))
    return WayResult(
        found.ways[name], len(walls), Span(run.median, run.low, run.high), Span(io.median, io.low, io.high),
        *copies, saved, comparison, living, _pays_from(saved, copies, found.terms.runs),
    )  # fmt: skip


def _better(c: Comparison | None) -> bool:
    return c is not None and c.verdict == "higher" and c.ratio > 1 + WORTH
