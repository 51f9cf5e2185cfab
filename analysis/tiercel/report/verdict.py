"""The first screen of the report: which storage for which workload, what it gains, what to mind.

It says nothing of its own: classes and their ranking come from :mod:`tiercel.report.classes`. Words are for a
reader who has never seen a benchmark; what could not be told apart is counted, and told further down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tiercel.report import words
from tiercel.report.classes import WorkloadClass, in_sentence, undecided
from tiercel.report.data import Record, Results, over_scales
from tiercel.site.model import Site
from tiercel.statistics.ranking import Advice, Standing, both, reverse, toward
from tiercel.units import format_size

#: What each kind of advice is called on the page.
WORDS: Mapping[Advice, str] = {
    "use": "use",
    "avoid": "avoid",
    "undecided": "undecided",
    "fastest": "fastest",
    "no gain": "no gain",
    "only": "only choice",
    "nothing": "not compared",
}
#: A sign beside the word, so that no one needs to tell colours apart.
SIGNS: Mapping[Advice, str] = {
    "use": "✔",
    "avoid": "✘",
    "undecided": "?",
    "fastest": "▲",
    "no gain": "=",
    "only": "·",
    "nothing": "",
}
_NAMED = 3


@dataclass(frozen=True)
class Place:
    """One cell: what a storage is for a workload."""

    advice: Advice
    factor: str = ""
    """``6.0×``; ``3.4× slower`` where that reads better."""
    interval: str = ""
    note: str = ""
    value: str = ""
    """What it delivered at the largest scale."""
    href: str = ""
    cached: bool = False
    """The value is not proven to come from the storage."""

    @property
    def word(self) -> str:
        return WORDS[self.advice]

    @property
    def sign(self) -> str:
        return SIGNS[self.advice]

    @property
    def kind(self) -> str:
        return self.advice.replace(" ", "-")


@dataclass(frozen=True)
class Verdict:
    """Everything on the first screen but the picture."""

    stacks: list[str]
    columns: list[tuple[str, str]]
    """Name of each storage, and what to know of it: whether it keeps files, and its room."""
    rows: list[tuple[WorkloadClass, list[Place]]]
    where: str
    gain: str
    mind: str
    explained: list[tuple[Advice, str]]
    """The words in use and what they mean."""
    undecided: str
    """How many answers are open; empty where none is."""

    @property
    def intervals(self) -> bool:
        return any(place.interval for _, places in self.rows for place in places)

    @property
    def cached(self) -> bool:
        return any(place.cached for _, places in self.rows for place in places)


_MEANINGS: Mapping[Advice, str] = {
    "use": "the best place that keeps your files, and by how much against the next",
    "avoid": "slower, beyond chance",
    "undecided": "what was seen could be chance",
    "fastest": "faster than any place that keeps files, but gone after a restart",
    "no gain": "not faster than a place that keeps files",
}


def verdict(results: Results, site: Site, found: Sequence[WorkloadClass]) -> Verdict | None:
    """Return the first screen's words; None where nothing has a number.

    `results` hold the points of samples, too: a study that has nothing else is told by them.
    """
    if not found:
        return _sampled(results, site)
    stacks = [s for s in results.stacks if any(s in c.numbers for c in found)]
    stacks.sort(key=lambda s: (s in results.memory, -sum(c.ranking.reference == s for c in found)))
    rows = [(c, [_place(results, c, stack) for stack in stacks]) for c in found]
    used = {place.advice for _, places in rows for place in places}
    # Sentences are about what was measured; a study without any speaks of what it has, and says so.
    origin = found[0].origin if all(c.origin != "measured" for c in found) else "measured"
    spoken = [c for c in found if c.origin == origin]
    prefix = "" if origin == "measured" else f"By {origin} numbers: "
    return Verdict(
        stacks,
        [(results.name(stack), _column(results, site, stack)) for stack in stacks],
        rows,
        prefix + (in_sentence(_where(results, spoken)) if prefix else _where(results, spoken)),
        _gain(results, spoken),
        _mind(results, site, list(dict.fromkeys(s for c in spoken for s in c.ranking.standings))),
        [(advice, text) for advice, text in _MEANINGS.items() if advice in used],
        _open(found),
    )


def _sampled(results: Results, site: Site) -> Verdict | None:
    """Return the words for a study of designed samples: how often each storage was fastest."""
    stacks = list(results.stacks)
    kinds: dict[tuple[Any, ...], list[Record]] = {}
    for row in over_scales(results.comparisons):
        kinds.setdefault((row["experiment"], row["workload"], row["operation"], row["origin"]), []).append(
            row
        )
    if not stacks:
        return None
    if not kinds:
        where = f"There is one storage system here, {results.name(stacks[0])}: nothing to choose between."
        return Verdict(stacks, [], [], where, "", _mind(results, site, stacks), [], "")
    ahead = dict.fromkeys(stacks, 0)
    for rows in kinds.values():
        for stack in {s for row in rows for s in both(row)}:
            mine = [toward(row, stack) for row in rows if stack in both(row)]
            if all(row["separated"] and row["ratio"] > 1 for row in mine):
                ahead[stack] += 1
    parts = [f"{results.name(s)} in {n}" for s, n in sorted(ahead.items(), key=lambda item: -item[1])]
    left = len(kinds) - sum(ahead.values())
    where = (
        f"Of {words.count(len(kinds), 'kind')} of I/O, fastest in all repetitions were {words.listed(parts)}"
        f"{f'; in {left} no storage was' if left else ''}."
    )
    gain = (
        "Where the files of a program belong is told file by file, by a model that learns from this study: "
        f"tiercel placement train --study {results.study.study}, then tiercel place TRACE."
    )
    return Verdict(stacks, [], [], where, gain, _mind(results, site, stacks), [], "")


def _column(results: Results, site: Site, stack: str) -> str:
    known = _storage(site, stack)
    said = "memory: gone after a restart" if stack in results.memory else "keeps files"
    if stack not in results.memory and known and site.node_local(known):
        said += ", on one node"
    free = free_bytes(results, stack)
    return said if free is None else f"{said} · {format_size(free)} free"


# Cells.


def _place(results: Results, found: WorkloadClass, stack: str) -> Place:
    number = found.numbers.get(stack)
    if number is None:
        return Place("nothing", note="not measured")
    value, href = found.delivered(stack), number.anchor
    if number.invalid:
        return Place("nothing", note="did not pass a validity check", value=value, href=href)
    advice, standing = found.ranking.advice[stack], found.ranking.standings[stack]
    factor, interval, note = _factor(results, found, advice, standing)
    cached = not number.cold and stack not in results.memory
    return Place(advice, factor, interval, note, value, href, cached)


def _factor(
    results: Results, found: WorkloadClass, advice: Advice, standing: Standing
) -> tuple[str, str, str]:
    """Return (factor, interval, note) of a cell."""
    if not standing.rows:
        return "", "", ""
    row, against = standing.rows[0], results.name(standing.against)
    if advice == "avoid":
        slower = reverse(row)
        return f"{words.times(slower['ratio'])} slower", _interval(slower), ""
    if advice == "nothing":  # a layer, which is compared with its own storage alone
        how = {"higher": "ahead of", "lower": "behind", "same": "the same as"}
        said = f"{how.get(standing.outcome, 'undecided against')} {against}"
        return words.times(row["ratio"]), _interval(row), said
    if standing.outcome == "same":
        return "", "", f"as good as {against}" if advice == "use" else "within 10\u00a0%"
    several = sum(s not in results.memory for s in found.ranking.standings) > 2
    return words.times(row["ratio"]), _interval(row), against if advice == "use" and several else ""


def _interval(row: Record) -> str:
    return words.factors(row["low"], row["high"])


# Sentences.


def _where(results: Results, found: Sequence[WorkloadClass]) -> str:
    stacks = list(dict.fromkeys(s for c in found for s in c.ranking.standings))
    lasting = [s for s in stacks if s not in results.memory]
    name = results.name
    if len(stacks) == 1:
        return f"There is one storage system here, {name(stacks[0])}: nothing to choose between."
    if not lasting:
        return "Everything measured here is memory: it keeps no file over a restart."
    if len(lasting) == 1:
        return f"Keep your files on {name(lasting[0])}: it is the only storage here that keeps them."
    best, anywhere = _places(found, lasting)
    if not best and not anywhere:
        return (
            "No storage here is proven better than another for any of these workloads: put files where there "
            "is room."
        )
    parts = [f"on {name(stack)} for {_classes(some, len(found))}" for stack, some in best.items()]
    if len(best) == 1 and len(next(iter(best.values()))) == len(found):
        parts = [f"on {name(next(iter(best)))}"]
    if anywhere:
        parts.append(f"anywhere for {_classes(anywhere, len(found))}")
    left = len(found) - len(anywhere) - sum(map(len, best.values()))
    rest = f" For the other {'one' if left == 1 else left} no place is proven better." if left else ""
    return f"Put your files {'; '.join(parts)}.{rest}"


def _places(
    found: Sequence[WorkloadClass], lasting: Sequence[str]
) -> tuple[dict[str, list[WorkloadClass]], list[WorkloadClass]]:
    """Return the decided classes by where their files go, in as few places as will do; and those that may go
    anywhere."""
    good = {c.key: [s for s in lasting if c.ranking.advice.get(s) == "use"] for c in found}
    anywhere = [c for c in found if set(good[c.key]) == {s for s in lasting if s in c.ranking.standings}]
    left = [c for c in found if good[c.key] and c not in anywhere]
    best: dict[str, list[WorkloadClass]] = {}
    while left:
        stack = max(lasting, key=lambda s: sum(s in good[c.key] for c in left))
        best[stack] = [c for c in left if stack in good[c.key]]
        left = [c for c in left if stack not in good[c.key]]
    return best, anywhere


def _classes(some: Sequence[WorkloadClass], of: int) -> str:
    if len(some) <= _NAMED:
        return words.listed([in_sentence(c.name) for c in some])
    return f"{len(some)} of {of} workloads"


def _gain(results: Results, found: Sequence[WorkloadClass]) -> str:
    wins = [(c, c.ranking.standings[c.ranking.winner].rows[0]) for c in found if c.ranking.winner]
    fast = [(c, c.ranking.standings[c.ranking.fastest].rows[0]) for c in found if c.ranking.fastest]
    said = []
    if wins:
        said.append(f"Against the next best place that keeps files: {_range(wins)}.")
    if fast:
        names = words.listed([results.name(s) for s in dict.fromkeys(c.ranking.fastest for c, _ in fast)])
        said.append(f"Copies in {names} (memory): {_range(fast)}.")
    if said:
        return " ".join(said)
    stacks = {s for c in found for s in c.ranking.standings}
    if len(stacks) == 1:
        parts = [f"{c.delivered(s)} for {in_sentence(c.name)}" for c in found[:_NAMED] for s in c.numbers]
        return f"It delivers {words.listed(parts)}."
    return "No place is proven faster: the differences are no larger than those of one place with itself."


def _range(rows: Sequence[tuple[WorkloadClass, Record]]) -> str:
    """Return ``2.1 times as fast for ... (1.9–2.3), up to 4.7 times for ...``."""
    ordered = sorted(rows, key=lambda item: item[1]["ratio"])
    (least, low), (most, high) = ordered[0], ordered[-1]
    first = f"{words.factor(low['ratio'])} times as fast for {in_sentence(least.name)} ({_interval(low)})"
    if len(ordered) == 1:
        return first
    last = f"{words.factor(high['ratio'])} times for {in_sentence(most.name)} ({_interval(high)})"
    return f"{first}, {'up to ' if len(ordered) > 2 else ''}{last}"


def _mind(results: Results, site: Site, stacks: Sequence[str]) -> str:
    said = []
    memory = [s for s in stacks if s in results.memory]
    if memory:
        verb = "is" if len(memory) == 1 else "are"
        said.append(
            f"{words.listed([results.name(s) for s in memory])} {verb} memory: files there are gone after a "
            "restart, take memory from programs and are seen on one node only."
        )
    local = [s for s in stacks if s not in memory and (known := _storage(site, s)) and site.node_local(known)]
    if local:
        verb = "is" if len(local) == 1 else "are"
        said.append(f"{words.listed([results.name(s) for s in local])} {verb} seen on one node only.")
    tight = min(((free, s) for s in stacks if (free := free_bytes(results, s)) is not None), default=None)
    if tight and not memory:
        of = f"The least room is on {results.name(tight[1])}: " if len(stacks) > 1 else ""
        said.append(f"{of}{format_size(tight[0])} {'' if of else 'were '}free while measuring.")
    return " ".join(said)


def _storage(site: Site, stack: str) -> Any:
    return site.storages.get(stack.partition("+")[0])


def free_bytes(results: Results, stack: str) -> float | None:
    """Return the least that was free on a stack's storage while measuring, None where nobody looked."""
    runs = results.runs[results.runs["storage"] == stack.partition("+")[0]]
    free = pd.to_numeric(runs["free_bytes"], errors="coerce").min()
    return float(free) if pd.notna(free) and math.isfinite(free) else None


def _open(found: Sequence[WorkloadClass]) -> str:
    count = len(undecided(found))
    if not count:
        return ""
    return f"{count} of {words.count(len(found), 'row')} {'has' if count == 1 else 'have'} an undecided cell"
