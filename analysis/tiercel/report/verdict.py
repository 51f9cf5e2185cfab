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

from tiercel.report import deciding, words
from tiercel.report.classes import WorkloadClass, in_sentence, undecided
from tiercel.report.columns import columns, short, storages
from tiercel.report.data import Record, Results, over_scales
from tiercel.site.model import Site
from tiercel.statistics.comparison import NO_PAIR
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
    "nothing": "",
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
    largest: str = ""
    """The factor at the largest scale, where that lies outside of the interval over all scales."""
    note: str = ""
    value: str = ""
    """What it delivered at the largest scale."""
    href: str = ""
    cached: bool = False
    """The value is not proven to come from the storage."""
    held_back: bool = False
    """What ran before made it slower."""

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
    labels: list[str]
    """The same names, short enough for a column."""
    more: str
    """How many storages have no column; empty for none."""
    silent: str
    """Which storages gave no number, and why; empty for none."""
    rows: list[tuple[WorkloadClass, list[Place]]]
    where: str
    gain: str
    mind: str
    explained: list[tuple[Advice, str]]
    """The words in use and what they mean."""
    undecided: str
    """How many answers are open; empty where none is."""
    over: str
    """What the factors are over: ``over 1 and 2 processes``; empty for one scale."""

    @property
    def intervals(self) -> bool:
        return any(place.interval for _, places in self.rows for place in places)

    @property
    def beyond(self) -> bool:
        return any(place.largest for _, places in self.rows for place in places)

    @property
    def cached(self) -> bool:
        return any(place.cached for _, places in self.rows for place in places)

    @property
    def held_back(self) -> bool:
        return any(place.held_back for _, places in self.rows for place in places)


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
    stacks, left = columns(results, found)
    named = short(results, list({**results.stacks, **results.silent}))
    rows = [(c, [_place(results, c, _shown(c, stack, stacks), named) for stack in stacks]) for c in found]
    used = {place.advice for _, places in rows for place in places}
    # Sentences are about what was measured; a study without any speaks of what it has, and says so.
    origin = found[0].origin if all(c.origin != "measured" for c in found) else "measured"
    spoken = [c for c in found if c.origin == origin]
    prefix = "" if origin == "measured" else f"By {origin} numbers: "
    more = f"{words.count(left, 'more storage system')} of this study {'is' if left == 1 else 'are'} in"
    return Verdict(
        stacks,
        [(results.name(stack), _column(results, site, stack)) for stack in stacks],
        [named[stack] for stack in stacks],
        more if left else "",
        silent(results),
        rows,
        prefix + (in_sentence(_where(results, spoken)) if prefix else _where(results, spoken)),
        _gain(results, spoken),
        _mind(results, site, list(dict.fromkeys(s for c in spoken for s in c.ranking.standings))),
        [(advice, text) for advice, text in _MEANINGS.items() if advice in used],
        _open(results, found),
        _over(found),
    )


def silent(results: Results) -> str:
    """Name the stacks of the study's runs that gave no number, and say why; empty for none."""
    by_why: dict[str, list[str]] = {}
    for s in results.silent.values():
        by_why.setdefault(s.why, []).append(s.label)
    each = {why: " each" if len(names) > 1 else "" for why, names in by_why.items()}
    return " ".join(
        f"{words.listed(names)} gave no number: {why}{each[why]}." for why, names in by_why.items()
    )


def _over(found: Sequence[WorkloadClass]) -> str:
    """Say over which scales the factors are; not all workloads need to have all of them."""
    of = [
        list(dict.fromkeys((int(r["nodes"]), int(r["processes_per_node"])) for r in c.scales)) for c in found
    ]
    several = {scale for scales in of if len(scales) > 1 for scale in scales}
    if not several:
        return ""
    ordered = sorted(several, key=lambda scale: (scale[0] * scale[1], scale))
    if all(nodes == 1 for nodes, _ in ordered):
        said = f"{words.listed([str(ppn) for _, ppn in ordered])} processes"
        if len(ordered) > _NAMED:
            said = f"{ordered[0][1]} to {ordered[-1][1]} processes ({len(ordered)} scales)"
    else:
        said = f"{words.scale(*ordered[0])} to {words.scale(*ordered[-1])} ({len(ordered)} scales)"
    same = all(set(scales) == several for scales in of if scales)
    return f"over {said}" if same else f"over the scales of each row, of {said}"


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
        where = _single(results, stacks[0])
        return _said(results, stacks, where, "", _mind(results, site, stacks))
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
        f"tiercel place train --study {results.study.study}, then tiercel place plan TRACE."
    )
    return _said(results, stacks, where, gain, _mind(results, site, stacks))


def _said(results: Results, stacks: list[str], where: str, gain: str, mind: str) -> Verdict:
    """Return a first screen of sentences alone."""
    return Verdict(stacks, [], [], "", silent(results), [], where, gain, mind, [], "", "")


def _single(results: Results, stack: str) -> str:
    """Return what is to be said where one stack alone has numbers."""
    name = results.name(stack)
    lost = [s.label for s in results.silent.values() if s.stack not in results.memory]
    if stack in results.memory and lost:
        return (
            f"Where to keep files is not known: of the places that keep them ({words.listed(lost)}) none "
            f"gave a number. {name} is memory, which keeps no file over a restart."
        )
    if results.silent and not lost:
        return f"Keep your files on {name}: it is the only storage here that keeps them."
    if lost:
        return f"Only {name} gave numbers, so nothing could be compared."
    return f"Only {name} has numbers here: nothing to choose between."


def _column(results: Results, site: Site, stack: str) -> str:
    known = _storage(site, stack)
    said = "memory: gone after a restart" if stack in results.memory else "keeps files"
    if known and known.objects:
        said = "keeps objects, for programs that speak S3"
    if stack not in results.memory and known and site.node_local(known):
        said += ", on one node"
    if stack in results.silent:
        return f"{said} · gave no number"
    free = free_bytes(results, stack)
    return said if free is None else f"{said} · {format_size(free)} free"


# Cells.


def _shown(found: WorkloadClass, column: str, columns: Sequence[str]) -> str:
    """Return the stack that a column shows: through a layer where that is the one to use."""
    for stack in (found.ranking.reference, found.ranking.fastest):
        same = stack not in columns and stack.partition("+")[0] == column
        if same and found.ranking.advice[stack] in ("use", "only", "fastest"):
            return stack
    return column


def _place(results: Results, found: WorkloadClass, stack: str, named: Mapping[str, str]) -> Place:
    number = found.numbers.get(stack)
    if number is None:
        why = next((s.why for s in found.silent if s.stack == stack), "")
        return Place("nothing", note=f"no number: {why}" if why else words.MISSING)
    value, href = found.delivered(stack), number.anchor
    if number.invalid:
        return Place("nothing", note="did not pass a validity check", value=value, href=href)
    advice, standing = found.ranking.advice[stack], found.ranking.standings[stack]
    factor, interval, note = _factor(results, found, advice, standing, named)
    largest = _largest(found, advice, standing) if factor else ""
    if "+" in stack:
        note = f"with {number.layer}{f', against {note}' if note else ''}"
    cached = not number.cold and stack not in results.memory
    return Place(advice, factor, interval, largest, note, value, href, cached, number.held_back)


def _factor(
    results: Results, found: WorkloadClass, advice: Advice, standing: Standing, named: Mapping[str, str]
) -> tuple[str, str, str]:
    """Return (factor, interval, note) of a cell."""
    if not standing.rows:
        return "", "", ""
    row, against = standing.rows[0], named[standing.against]
    if found.single(standing.stack, standing.against):
        return words.times(row["ratio"]), "", "a single repetition"
    if advice == "avoid":
        slower = reverse(row)
        return f"{words.times(slower['ratio'])} slower", _interval(slower), ""
    if advice == "nothing":  # a layer, which is compared with its own storage alone
        how = {"higher": "ahead of", "lower": "behind", "same": "the same as"}
        said = f"{how.get(standing.outcome, 'undecided against')} {against}"
        return words.times(row["ratio"]), _interval(row), said
    if standing.outcome == "same":
        return "", "", words.same_as(against, row)
    several = sum(s not in results.memory for s in found.ranking.standings) > 2
    return words.times(row["ratio"]), _interval(row), against if advice == "use" and several else ""


def _largest(found: WorkloadClass, advice: Advice, standing: Standing) -> str:
    """Return ``3.7× at 2 processes`` where the interval over all scales does not hold that factor."""
    row, one = standing.rows[0], found.at_largest(standing.stack, standing.against)
    if one is None or row["low"] <= one["ratio"] <= row["high"]:
        return ""
    ratio, slower = (1 / one["ratio"], " slower") if advice == "avoid" else (one["ratio"], "")
    scale = words.scale(int(one["nodes"]), int(one["processes_per_node"]))
    return f"{words.times(ratio)}{slower} at {scale}"


def _interval(row: Record) -> str:
    return words.factors(row["low"], row["high"])


# Sentences.


def _where(results: Results, found: Sequence[WorkloadClass]) -> str:
    stacks = list(dict.fromkeys(s for c in found for s in c.ranking.standings))
    lasting = [s for s in stacks if s not in results.memory]
    name = results.name
    if len(stacks) == 1:
        return _single(results, stacks[0])
    lost = [s.label for s in results.silent.values() if s.stack not in results.memory]
    if not lasting:
        unknown = (
            f": {words.listed(lost)} gave no number, so where to keep files is not known" if lost else ""
        )
        return f"Everything measured here is memory, which keeps no file over a restart{unknown}."
    if len(base := storages(lasting)) == 1:
        only = f"Keep your files on {name(base[0])}: it is the only storage here that keeps them."
        if lost:
            only = (
                f"Keep your files on {name(base[0])}: of the storages that keep them, it alone gave numbers."
            )
        return f"{only}{_through(results, found)}"
    best, anywhere = _places(found, lasting)
    if not best and not anywhere:
        # A storage may have no number of some class.
        if not any(of.rows for c in found for s, of in c.ranking.standings.items() if s in lasting):
            return "No place can be named: nothing that keeps files could be compared."
        avoided = _avoided(results, found, lasting)
        if not avoided:
            return (
                "No storage here is proven better than another for any of these workloads: put files where "
                "there is room."
            )
        return f"No storage here is proven to be the best for any of these workloads. {avoided}"
    parts = [f"on {name(stack)} for {_classes(some, len(found))}" for stack, some in best.items()]
    if len(best) == 1 and len(next(iter(best.values()))) == len(found):
        parts = [f"on {name(next(iter(best)))}"]
    if anywhere:
        parts.append(f"anywhere for {_classes(anywhere, len(found))}")
    told = {c.key for some in (anywhere, *best.values()) for c in some}
    left = [c for c in found if c.key not in told]
    rest = ""
    if left:
        avoided = _avoided(results, left, lasting)
        rest = f" For the other {'one' if len(left) == 1 else len(left)} no place is proven to be the best."
        rest += f" There: {in_sentence(avoided)}" if avoided else ""
    return f"Put your files {'; '.join(parts)}.{rest}"


def _avoided(results: Results, found: Sequence[WorkloadClass], lasting: Sequence[str]) -> str:
    """Name what is slower beyond chance where no place is the best; empty where nothing is."""
    slow: dict[str, list[tuple[WorkloadClass, float]]] = {}
    for c in found:
        for stack in lasting:
            if c.ranking.advice.get(stack) == "avoid":
                slow.setdefault(stack, []).append((c, 1 / c.ranking.standings[stack].rows[0]["ratio"]))
    if not slow:
        return ""
    ordered = sorted(slow, key=lambda s: (-len(slow[s]), -max(by for _, by in slow[s])))
    parts = []
    for stack in ordered[:_NAMED]:
        least, most = (words.factor(edge(by for _, by in slow[stack])) for edge in (min, max))
        by = f"{most} times slower" if least == most else f"{least} to {most} times slower"
        parts.append(f"{results.name(stack)} for {_classes([c for c, _ in slow[stack]], len(found))} ({by})")
    more = len(ordered) - _NAMED
    said = f"Avoid {'; '.join(parts)}{f'; and {more} more' if more > 0 else ''}."
    if all(len(some) == len(found) for some in slow.values()):
        said += " Among the others, put files where there is room."
    return said


def _through(results: Results, found: Sequence[WorkloadClass]) -> str:
    """Say where a layer in front of a storage is ahead of everything else."""
    best: dict[str, list[WorkloadClass]] = {}
    for c in found:
        if "+" in c.ranking.winner:
            best.setdefault(c.ranking.winner, []).append(c)
    parts = [f"as {results.name(s)} for {_classes(some, len(found))}" for s, some in best.items()]
    return f" Use it {'; '.join(parts)}." if parts else ""


def _places(
    found: Sequence[WorkloadClass], lasting: Sequence[str]
) -> tuple[dict[str, list[WorkloadClass]], list[WorkloadClass]]:
    """Return the decided classes by where their files go, in as few places as will do; and those that may go
    anywhere."""
    good = {c.key: [s for s in lasting if c.ranking.advice.get(s) == "use"] for c in found}
    anywhere = [
        c for c in found
        if len(good[c.key]) > 1 and set(good[c.key]) == {s for s in lasting if s in c.ranking.standings}
    ]  # fmt: skip
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
    if len(some) == of:
        return f"all {of} workloads"
    return f"{len(some)} of {of} workloads"


def _gain(results: Results, found: Sequence[WorkloadClass]) -> str:
    free = [c for c in found if not any(n.held_back for n in c.numbers.values())]
    found = free or found
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
    if len(stacks) == 1 and not any(n.invalid for c in found for n in c.numbers.values()):
        parts = [f"{c.delivered(s)} for {in_sentence(c.name)}" for c in found[:_NAMED] for s in c.numbers]
        return f"It delivers {words.listed(parts)}."
    return _not_gained(found)


def _not_gained(found: Sequence[WorkloadClass]) -> str:
    """Say why no gain can be named."""
    numbers = [n for c in found for n in c.numbers.values()]
    compared = [(c, s) for c in found for s in c.ranking.standings.values() if s.rows]
    if not compared:
        if all(n.invalid for n in numbers):
            return "Nothing could be compared: no number passed the validity checks."
        return "Nothing could be compared: no two storages have valid numbers of the same work."
    if all(c.single(s.stack, s.against) for c, s in compared):
        if all(n.origin == "simulated" for n in numbers):
            return "No difference is claimed: how far a simulation is off is not known."
        return (
            "Nothing could be compared: numbers of a single repetition do not tell a difference from chance."
        )
    slower = [(c, reverse(s.rows[0])) for c, s in compared if c.ranking.advice[s.stack] == "avoid"]
    if slower:
        least, most = (words.factor(edge(row["ratio"] for _, row in slower)) for edge in (min, max))
        by = f"{least} times" if least == most else f"{least} to {most} times"
        return f"No place is proven to be the fastest; what the table says to avoid is {by} slower."
    open_ones = [str(row["reason"]) for _, s in compared for row in s.rows if s.outcome == "undecided"]
    if open_ones and all(reason.startswith("too few") for reason in open_ones):
        return "No place is proven faster: there are too few repetitions to tell a difference from chance."
    if open_ones and all(reason == NO_PAIR for reason in open_ones):
        return "No place is proven faster: nothing was measured twice over, so the noise is not known."
    return "No place is proven faster: the differences are no larger than those of one place with itself."


def _range(rows: Sequence[tuple[WorkloadClass, Record]]) -> str:
    """Return ``2.1 times as fast for ... (1.9–2.3), up to 4.7 times for ...``."""
    ordered = sorted(rows, key=lambda item: item[1]["ratio"])
    (least, low), (most, high) = ordered[0], ordered[-1]
    first = f"{words.factor(low['ratio'])} times as fast for {in_sentence(least.name)} ({_interval(low)})"
    if len(ordered) == 1:
        return first
    if words.factor(low["ratio"]) == words.factor(high["ratio"]):
        names = _classes([c for c, _ in ordered], len(ordered))
        bounds = {"low": min(r["low"] for _, r in ordered), "high": max(r["high"] for _, r in ordered)}
        return f"{words.factor(low['ratio'])} times as fast for {names} ({_interval(bounds)})"
    last = f"{words.factor(high['ratio'])} times for {in_sentence(most.name)} ({_interval(high)})"
    return f"{first}, {'up to ' if len(ordered) > 2 else ''}{last}"


def _mind(results: Results, site: Site, stacks: Sequence[str]) -> str:
    said = []
    memory = storages([s for s in stacks if s in results.memory])
    if memory:
        verb = "is" if len(memory) == 1 else "are"
        said.append(
            f"{words.listed([results.name(s) for s in memory])} {verb} memory: files there are gone after a "
            "restart, take memory from programs and are seen on one node only."
        )
    lasting = storages([s for s in stacks if s not in results.memory])
    local = [s for s in lasting if (known := _storage(site, s)) and site.node_local(known)]
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


def _open(results: Results, found: Sequence[WorkloadClass]) -> str:
    count = len(undecided(found))
    if not count:
        return ""
    said = f"{count} of {words.count(len(found), 'row')} {'has' if count == 1 else 'have'} an undecided cell"
    takes = deciding.sentence(deciding.open_answers(results, found), results)
    return f"{said}; {takes}" if takes else said
