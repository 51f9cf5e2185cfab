"""From what was measured to figures: is the gain in the stated interval, what is regretted, is it harmful?

Regret is held against the best single storage *as the other rounds show it*: for each round the storage with
the lowest median of the others is taken, with its value in this one. The least of several medians would lie
below what any storage can be relied on for.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiercel.statistics.comparison import compare
from tiercel.statistics.noise import noise_floor


@dataclass(frozen=True)
class Case:
    """One program at one home. Times in seconds, of one run; shares of 1."""

    program: str
    title: str
    home: str
    way: str
    """What the advice says: home, all on X, mixed; or why there is none."""
    moves: int
    at_home: float
    as_advised: float
    staging: float
    """Staging in and out of the advice."""
    stated: tuple[float, float, float] | None
    """What the advice says is saved: median, low, high."""
    saved: float
    """What was saved, measured, without staging."""
    inside: bool | None
    """Whether `saved` is in the stated interval; None where none is stated."""
    best: str
    """The best single storage for files that live there."""
    regret: float
    regret_staged: float
    slower: bool
    """Slower than at home beyond noise."""
    slower_staged: bool
    wrong: tuple[str, ...]
    """Why outputs were wrong, or runs failed."""

    @property
    def advised(self) -> bool:
        return self.stated is not None

    @property
    def best_seconds(self) -> float:
        return self.as_advised / (1 + self.regret)


def cases(measured: Mapping[str, Any]) -> list[Case]:
    """Return one case for each home of a measured program (what `Truth.measure` returned)."""
    return [_case(measured, home) for home in measured["homes"]]


def _case(measured: Mapping[str, Any], home: str) -> Case:
    advice = measured["advice"][home]
    moves = int(advice.get("moves") or 0)
    single = {s: [run["run"] for run in runs] for s, runs in measured["single"].items()}
    again = [run["run"] for run in measured["again"][home]]
    taken = measured["advised"][home] if moves else measured["again"][home]
    advised = [run["run"] for run in taken]
    staging = [run.get("in", 0.0) + run.get("out", 0.0) for run in taken]
    staged = [a + b for a, b in zip(advised, staging, strict=True)]
    # Where nothing moves the advised run is the run at home made once more: it cannot be in both samples.
    at_home = single[home] + again if moves else single[home]
    floor = noise_floor(single[home], again)
    stated = None if "failed" in advice else _stated(advice["verdict"])
    saved = statistics.median(at_home) - statistics.median(advised) if moves else 0.0
    live_there = reference(single)
    counted = reference(
        {s: _with_staging(v, measured["staging"].get(f"{home}>{s}")) for s, v in single.items()}
    )
    return Case(
        program=measured["program"], title=measured["title"], home=home,
        way=advice["failed"] if "failed" in advice else str(advice["verdict"]["way"]), moves=moves,
        at_home=statistics.median(at_home), as_advised=statistics.median(advised),
        staging=statistics.median(staging), stated=stated, saved=saved,
        inside=None if stated is None else stated[1] <= saved <= stated[2], best=best_of(single),
        regret=statistics.median(advised) / statistics.median(live_there) - 1,
        regret_staged=statistics.median(staged) / statistics.median(counted) - 1,
        slower=bool(moves) and compare(advised, at_home, floor).verdict == "higher",
        slower_staged=bool(moves) and compare(staged, at_home, floor).verdict == "higher",
        wrong=tuple(sorted({run["wrong"] for run in taken if run["wrong"]})),
    )  # fmt: skip


def _stated(verdict: Mapping[str, Any]) -> tuple[float, float, float] | None:
    said = verdict.get("saved_seconds")
    if not said or any(said.get(key) is None for key in ("median", "low", "high")):
        return None
    return float(said["median"]), float(said["low"]), float(said["high"])


def _with_staging(values: Sequence[float], copies: Sequence[Mapping[str, float]] | None) -> list[float]:
    cost = statistics.median(one["in"] + one["out"] for one in copies) if copies else 0.0
    return [value + cost for value in values]


def best_of(single: Mapping[str, Sequence[float]]) -> str:
    """Return the storage with the lowest median; the first by name of equal ones."""
    return min(sorted(single), key=lambda s: statistics.median(single[s]))


def reference(single: Mapping[str, Sequence[float]]) -> list[float]:
    """Return, for each round, the value of the storage that is best in the other rounds."""
    rounds = min(len(values) for values in single.values())
    if rounds == 1:
        return [single[best_of(single)][0]]
    values = []
    for number in range(rounds):
        others = {s: [v for i, v in enumerate(taken) if i != number] for s, taken in single.items()}
        values.append(single[best_of(others)][number])
    return values


@dataclass(frozen=True)
class Totals:
    """Over all cases. `None` where there is nothing to say it of."""

    cases: int
    without_advice: int
    moved: int
    inside: int
    stated: int
    inside_moved: int
    regret: float | None
    """All run time as advised over that of the best single storages, less one."""
    regret_staged: float | None
    regret_median: float | None
    over: int
    """Cases with a regret over 2 %."""
    harmful: int
    harmful_staged: int
    wrong: int

    @property
    def coverage(self) -> float | None:
        return self.inside / self.stated if self.stated else None


def totals(judged: Sequence[Case]) -> Totals:
    answered = [case for case in judged if case.advised]
    moved = [case for case in answered if case.moves]
    return Totals(
        cases=len(judged), without_advice=len(judged) - len(answered), moved=len(moved),
        inside=sum(case.inside is True for case in answered), stated=len(answered),
        inside_moved=sum(case.inside is True for case in moved),
        regret=_share([(c.as_advised, c.regret) for c in answered]),
        regret_staged=_share([(c.as_advised + c.staging, c.regret_staged) for c in answered]),
        regret_median=statistics.median(c.regret for c in answered) if answered else None,
        over=sum(case.regret > 0.02 for case in answered),
        harmful=sum(case.slower for case in answered),
        harmful_staged=sum(case.slower_staged for case in answered),
        wrong=sum(bool(case.wrong) for case in judged),
    )  # fmt: skip


def _share(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the regret of all together from (seconds, regret) of each."""
    if not pairs:
        return None
    return sum(seconds for seconds, _ in pairs) / sum(s / (1 + regret) for s, regret in pairs) - 1
