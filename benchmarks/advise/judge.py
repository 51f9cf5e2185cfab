"""From what was measured to figures: is the gain in the stated interval, what is regretted, is it harmful?

An advice answers two questions. *Now*: files lie at home; copying them in and out counts, on both sides of
every comparison (to a single storage that is not home the whole folder is copied, and back from it, by the
same script). *Living there*: where they
would best live for good; nothing is copied, and memory, which is empty after a restart, is no choice.

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

#: How an advice names the way that puts everything on one storage.
_ALL_ON = "all on "


@dataclass(frozen=True)
class Living:
    """The second answer: where the files would best live. `saved`: of run time, measured, in seconds."""

    storage: str
    best: str
    saved: float
    inside: bool | None
    """None where files would best stay where they are, so that no gain is stated."""
    regret: float


@dataclass(frozen=True)
class Case:
    """One program at one home. Times in seconds, of one run; shares of 1."""

    program: str
    title: str
    home: str
    way: str
    """What the advice says: home, all on X, mixed; or why there is none."""
    decided: bool
    moves: int
    at_home: float
    as_advised: float
    staging: float
    """Staging in and out of the advice."""
    stated: tuple[float, float, float] | None
    """What the advice says is saved of run time, copying not counted: median, low, high."""
    saved: float
    """What was saved so, measured."""
    inside: bool | None
    """Whether `saved` is in the stated interval; None where none is stated."""
    best: str
    """The best single storage, copying counted."""
    lost: float
    """Seconds of a run as advised beyond one on the best single storage, copying counted for both."""
    regret: float
    """The same over the time on that storage."""
    slower: bool
    """Slower than at home beyond noise, copying counted."""
    living: Living | None
    wrong: tuple[str, ...]
    """Why outputs were wrong, or runs failed."""
    fails_there: str
    """Why a plain run at home failed, or what it made was wrong: then nothing is said of the advice."""


def cases(measured: Mapping[str, Any]) -> list[Case]:
    """Return one case for each home of a measured program (what `Truth.measure` returned)."""
    return [_case(measured, home) for home in measured["homes"]]


def _case(measured: Mapping[str, Any], home: str) -> Case:
    advice = measured["advice"][home]
    verdict = advice.get("verdict") or {}
    moves = int(advice.get("moves") or 0)
    single = {s: _seconds(runs) for s, runs in measured["single"].items()}
    again = _seconds(measured["again"][home])
    # Where nothing moves, running as advised is running at home.
    taken = measured["advised"][home] if moves else measured["single"][home]
    advised = _seconds(taken)
    staging = [run.get("in", 0.0) + run.get("out", 0.0) for run in taken]
    whole = [a + b for a, b in zip(advised, staging, strict=True)]
    at_home = single[home] + again
    counted = {s: _staged(measured["staged"], home, s) if s != home else v for s, v in single.items()}
    stated = _span(verdict.get("saved_seconds"))
    saved = statistics.median(at_home) - statistics.median(advised) if moves else 0.0
    least = statistics.median(reference(counted))
    lost = statistics.median(whole) - least
    return Case(
        program=measured["program"], title=measured["title"], home=home,
        way=str(verdict.get("way") or advice.get("failed") or "nothing could be measured"),
        decided=bool(verdict.get("decided")), moves=moves, at_home=statistics.median(at_home),
        as_advised=statistics.median(advised), staging=statistics.median(staging), stated=stated, saved=saved,
        inside=_within(saved, stated), best=best_of(counted),
        lost=lost, regret=lost / least,
        slower=bool(moves)
        and compare(whole, at_home, noise_floor(single[home], again)).verdict == "higher",
        living=_living(verdict, single, measured["media"], home) if verdict else None,
        wrong=tuple(sorted({run["wrong"] for run in taken if run["wrong"]})),
        fails_there=next(
            (r["wrong"] for r in measured["single"][home] + measured["again"][home] if r["wrong"]), ""
        ),
    )  # fmt: skip


def _living(
    verdict: Mapping[str, Any], single: Mapping[str, list[float]], media: Mapping[str, str], home: str
) -> Living | None:
    """Return the second answer judged; None for one that no single storage shows (files on several)."""
    lasting = {s: values for s, values in single.items() if media[s] != "memory" or s == home}
    said = verdict.get("if_files_lived_there")
    name = str(said["way"]).removeprefix(_ALL_ON) if said else home
    if name not in lasting:
        return None
    values = single[name]
    saved = statistics.median(single[home]) - statistics.median(values)
    regret = statistics.median(values) / statistics.median(reference(lasting)) - 1
    inside = _within(saved, _span(said["saved_seconds"])) if said else None
    return Living(name, best_of(lasting), saved, inside, regret)


def _seconds(runs: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(run["run"]) for run in runs]


def _span(said: Mapping[str, Any] | None) -> tuple[float, float, float] | None:
    if not said or any(said.get(key) is None for key in ("median", "low", "high")):
        return None
    return float(said["median"]), float(said["low"]), float(said["high"])


def _within(value: float, stated: tuple[float, float, float] | None) -> bool | None:
    return None if stated is None else stated[1] <= value <= stated[2]


def _staged(runs: Mapping[str, Any], home: str, storage: str) -> list[float]:
    """Return the seconds of runs with everything on another storage, copying included."""
    return [float(run["run"] + run["in"] + run["out"]) for run in runs[f"{home}>{storage}"]]


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
    """Over all cases that got an answer. `None` where there is nothing to say it of."""

    cases: int
    failing: int
    """Cases whose program fails at home by itself; they are in nothing else here."""
    without_answer: int
    moved: int
    stated: int
    inside: int
    inside_moved: int
    lost: float | None
    """All seconds lost against the best single storages over all run time at home."""
    regret: float | None
    """The same over all run time on those storages."""
    regret_median: float | None
    over: int
    """Cases with a regret over 2 %."""
    slower: int
    wrong: int
    living: int
    living_stated: int
    living_inside: int
    living_regret: float | None
    living_over: int

    @property
    def coverage(self) -> float | None:
        return self.inside / self.stated if self.stated else None


def totals(judged: Sequence[Case]) -> Totals:
    failing = sum(bool(case.fails_there) for case in judged)
    judged = [case for case in judged if not case.fails_there]
    answered = [case for case in judged if case.stated is not None]
    moved = [case for case in answered if case.moves]
    living = [(case, case.living) for case in answered if case.living is not None]
    return Totals(
        cases=len(judged), failing=failing,
        without_answer=len(judged) - len(answered), moved=len(moved), stated=len(answered),
        inside=sum(case.inside is True for case in answered),
        inside_moved=sum(case.inside is True for case in moved),
        lost=sum(c.lost for c in answered) / sum(c.at_home for c in answered) if answered else None,
        regret=_together([(c.as_advised + c.staging, c.regret) for c in answered]),
        regret_median=statistics.median(c.regret for c in answered) if answered else None,
        over=sum(case.regret > 0.02 for case in answered), slower=sum(case.slower for case in answered),
        wrong=sum(bool(case.wrong) for case in judged), living=len(living),
        living_stated=sum(one.inside is not None for _, one in living),
        living_inside=sum(one.inside is True for _, one in living),
        living_regret=_together([(c.at_home - one.saved, one.regret) for c, one in living]),
        living_over=sum(one.regret > 0.02 for _, one in living),
    )  # fmt: skip


def _together(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the regret of all together from (seconds, regret) of each."""
    if not pairs:
        return None
    return sum(seconds for seconds, _ in pairs) / sum(s / (1 + regret) for s, regret in pairs) - 1
