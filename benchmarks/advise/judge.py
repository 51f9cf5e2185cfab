"""From what was measured to figures: is the gain in the stated interval, is an answer wrong, harmful, or
too slow?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

#: A storage so many times faster must be named.
FASTER = 1.5
#: An answer may take so many runs of the program, and seconds.
RUNS, SECONDS = 10, 5


@dataclass(frozen=True)
class Case:
    """One program at one home. Times in seconds, of one run; ratios are home's time over the other's."""

    program: str
    new: bool
    home: str
    user: int
    failed: str
    """Why there is no answer; empty where there is one."""
    advised: str
    decided: bool
    at_home: float
    as_advised: float | None
    """With copying; None where a part was advised, which this benchmark does not run."""
    best: float
    """The least of home and the whole folder staged to each other storage, where every run was faster."""
    stated: Mapping[str, tuple[float, float, float]]
    """How many times faster a run is on each storage as stated: median, low, high."""
    measured: Mapping[str, float]
    inside: int
    faster_there: bool
    """Some storage is 1.5 times faster."""
    told: bool
    wrong: tuple[str, ...]
    """Storages of which the answer was certain and false."""
    slower: bool
    harm: str
    took: float
    in_time: bool
    between: tuple[tuple[float, float], ...]
    """Of each storage: how the logarithm of the ratio differs between advise and this benchmark, squared, and
    the variance of that which the runs explain."""


def cases(measured: Mapping[str, Any]) -> list[Case]:
    """Return one case for each home of a measured program; none for a home at which the program itself
    fails."""
    return [_case(measured, h) for h in measured["homes"] if not any(r["wrong"] for r in measured["runs"][h])]


def _case(measured: Mapping[str, Any], home: str) -> Case:
    answer = measured["advice"][home]
    runs = {name: [float(r["run"]) for r in found] for name, found in measured["runs"].items()}
    at_home = median(runs[home])
    others = [s for s in runs if ">" not in s and s != home]
    ratios = {s: at_home / median(runs[s]) for s in others}
    moved = {s: runs[f"{home}>{s}"] for s in others if f"{home}>{s}" in runs}
    staged = {s: median(seconds) for s, seconds in moved.items()}
    stated, outcomes, copied = {}, {}, {}
    for placement in answer.get("placements", []):
        name = placement["placement"]
        if placement["faster"] and name in ratios:
            span = placement["faster"]["times"]
            stated[name] = (span["median"], span["low"] or 0.0, span["high"] or float("inf"))
            outcomes[name] = placement["faster"]["outcome"]
            copied[name] = placement["faster_with_copying"]["outcome"]
    advised = answer.get("advised") or {}
    places = set(advised.get("places", {}).values())
    whole = advised.get("move") and any(
        p["places"] == advised["places"] and p["placement"] in ratios for p in answer["placements"]
    )
    storage = next(iter(places), home)
    as_advised = at_home if not places else staged.get(storage) if whole else None
    there = runs.get(f"{home}>{storage}", [])
    failed_there = [r["wrong"] for s in places for r in measured["runs"].get(f"{home}>{s}", []) if r["wrong"]]
    return Case(
        program=measured["program"],
        new=bool(measured["new"]),
        home=home,
        user=int(measured["user"]),
        failed=answer.get("failed", ""),
        advised=" ".join(sorted(places)) or home,
        decided=bool(advised.get("decided")),
        at_home=at_home,
        as_advised=as_advised,
        best=min([at_home, *(staged[s] for s in moved if _separated(runs[home], moved[s]))]),
        stated=stated,
        measured=ratios,
        inside=sum(low <= ratios[s] <= high for s, (_, low, high) in stated.items()),
        faster_there=any(_separated(runs[home], runs[s]) and ratios[s] >= FASTER for s in others),
        told=any(o == "faster" for o in outcomes.values()),
        wrong=(
            *(s for s, said in outcomes.items() if _wrong(said, runs[home], runs[s])),
            *(
                f"{s} with copying"
                for s, said in copied.items()
                if s in moved and _wrong(said, runs[home], moved[s])
            ),
        ),
        slower=bool(whole and there and _separated(there, runs[home])),
        harm="; ".join(filter(None, [answer.get("harm", ""), *failed_there])),
        took=float(answer.get("measured_seconds") or answer["took"]),
        between=tuple(
            _between(answer, placement, runs[home], runs[placement["placement"]])
            for placement in answer.get("placements", [])
            if placement["placement"] in ratios and placement["run_seconds"]
        ),
        in_time=(answer.get("measured_seconds") or answer["took"])
        <= RUNS * _longest(answer, at_home) + SECONDS,
    )


def _between(
    answer: Mapping[str, Any], placement: Mapping[str, Any], home: Sequence[float], other: Sequence[float]
) -> tuple[float, float]:
    difference, variance = 0.0, 0.0
    for sign, first, second in (
        (1, answer["home_seconds"]["runs"], placement["run_seconds"]["runs"]), (-1, home, other)
    ):  # fmt: skip
        samples = [[math.log(seconds) for seconds in runs] for runs in (first, second)]
        freedom = sum(len(sample) - 1 for sample in samples)
        squares = sum((x - fmean(sample)) ** 2 for sample in samples for x in sample)
        difference += sign * (fmean(samples[0]) - fmean(samples[1]))
        variance += squares / max(freedom, 1) * sum(1 / len(sample) for sample in samples)
    return difference**2, variance


def _wrong(outcome: str, home: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether an answer was certain and false, by what every run shows."""
    if outcome == "faster":
        return _separated(other, home)
    faster = median(home) / median(other) >= FASTER
    return outcome in ("slower", "same") and faster and _separated(home, other)


def _longest(answer: Mapping[str, Any], at_home: float) -> float:
    """Return the time of a run at home while the answer was found: a busy machine is slower at times."""
    seconds = (answer.get("home_seconds") or {}).get("median")
    return max(at_home, seconds or 0.0)


def _separated(slow: Sequence[float], fast: Sequence[float]) -> bool:
    """Return whether every run of one is slower than every run of the other."""
    return min(slow) > max(fast)


@dataclass(frozen=True)
class Totals:
    """Over all cases. Counts come with the number that they are of; None where that is 0."""

    cases: int
    without_answer: int
    stated: int
    inside: int
    wrong: int
    moved: int
    slower: int
    harmed: int
    faster_there: int
    told: int
    regret: float | None
    """Seconds as advised, with copying, over those of the best of home and the whole folder elsewhere, less
    1."""
    in_time: int
    session_sd: float | None
    """By what ratios differ between two sessions in addition to what their runs explain (standard deviation
    of logarithms); None: less than they explain, or no ratio."""


def totals(judged: Sequence[Case]) -> Totals:
    answered = [case for case in judged if not case.failed]
    regretted = [(c.as_advised, c.best) for c in answered if c.as_advised is not None]
    best = sum(b for _, b in regretted)
    between = [pair for case in answered for pair in case.between]
    session = fmean(squared - explained for squared, explained in between) if between else 0.0
    return Totals(
        cases=len(judged),
        without_answer=len(judged) - len(answered),
        stated=sum(len(c.stated) for c in answered),
        inside=sum(c.inside for c in answered),
        wrong=sum(bool(c.wrong) for c in answered),
        moved=sum(c.advised != c.home for c in answered),
        slower=sum(c.slower for c in answered),
        harmed=sum(bool(c.harm) for c in judged),
        faster_there=sum(c.faster_there for c in judged),
        told=sum(c.faster_there and c.told for c in judged),
        regret=sum(a for a, _ in regretted) / best - 1 if best else None,
        in_time=sum(c.in_time for c in answered),
        session_sd=math.sqrt(session) if session > 0 else None,
    )


def table(judged: Sequence[Case]) -> str:
    """Return the cases as a table in Markdown."""
    heads = (
        "program",
        "home",
        "advice",
        "at home s",
        "as advised s",
        "best s",
        "times faster: stated",
        "measured",
        "told",
        "wrong",
        "took s",
    )
    lines = [heads, ["---"] * len(heads)]
    for c in judged:
        stated = "; ".join(f"{s} {m:.2g} ({low:.2g} to {high:.2g})" for s, (m, low, high) in c.stated.items())
        real = "; ".join(f"{s} {ratio:.2g}" for s, ratio in c.measured.items())
        advice = c.failed or (c.advised if c.decided else f"{c.home}, not decided")
        lines.append(
            (
                c.program + (" (new)" if c.new else ""),
                c.home,
                advice,
                f"{c.at_home:.2f}",
                "" if c.as_advised is None else f"{c.as_advised:.2f}",
                f"{c.best:.2f}",
                stated,
                real,
                ("yes" if c.told else "no") if c.faster_there else "",
                c.harm or ("slower" if c.slower else ", ".join(c.wrong)),
                f"{c.took:.0f}",
            )
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def summary(total: Totals) -> str:
    """Return the totals in lines, each with its goal."""
    session = "not seen" if total.session_sd is None else f"{total.session_sd:.1%}"
    regret = "unknown" if total.regret is None else f"{total.regret:.1%}"
    return (
        f"{total.cases} cases, {total.moved} advised to move, {total.without_answer} without an answer\n"
        f"measured ratio inside the stated interval: {total.inside} of {total.stated} (goal 90 %)\n"
        f"wrong with certainty: {total.wrong} (goal 0)\n"
        f"slower as advised: {total.slower} (goal 0); files harmed or left: {total.harmed} (goal 0)\n"
        f"told of a storage that is {FASTER} times faster: {total.told} of {total.faster_there} (goal 90 %)\n"
        f"regret against the best of home and the whole folder elsewhere: {regret} (goal 2 %)\n"
        f"ratios differ between sessions, in addition to what runs explain: {session}\n"
        f"answered in {RUNS} runs and {SECONDS} s: {total.in_time} of {total.cases - total.without_answer}\n"
    )
