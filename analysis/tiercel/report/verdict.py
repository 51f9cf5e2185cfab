"""The first screen of the report: which storage for which workload, what it gains, what to mind.

It says nothing of its own: classes and their ranking come from :mod:`tiercel.report.classes`. Words are for a
reader who has never seen a benchmark; what could not be told apart is counted, and told further down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiercel.report import verdict_sentences as sentences
from tiercel.report import words
from tiercel.report.classes import WorkloadClass, against_kept, in_sentence
from tiercel.report.columns import MOST_LETTERS, columns, short, storages
from tiercel.report.data import Record, Results, over_scales
from tiercel.report.room import free_bytes, storage_of
from tiercel.report.verdict_sentences import interval_of
from tiercel.site.model import Site
from tiercel.statistics.ranking import Advice, Standing, both, reverse, toward
from tiercel.statistics.verdict import Verdict as CellVerdict
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


#: Scales that are listed one by one.
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
    heading: str = "Where to put which files"
    """What the page answers: of one storage with layers in front of it, what these are worth."""
    lasting: bool = True
    """What the factors are against keeps files; where only memory was measured, nothing does."""

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
    "undecided": "not proven; the reason is in the cell",
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
    rows = [(c, [_place(results, c, stack, stacks, named) for stack in stacks]) for c in found]
    used = {place.advice for _, places in rows for place in places}
    # Sentences are about what was measured; a study without any speaks of what it has, and says so.
    origin = found[0].origin if all(c.origin != "measured" for c in found) else "measured"
    spoken = [c for c in found if c.origin == origin]
    prefix = "" if origin == "measured" else f"By {origin} numbers: "
    where = sentences.where(results, spoken)
    more = f"{words.count(left, 'more storage system')} of this study {'is' if left == 1 else 'are'} in"
    return Verdict(
        stacks,
        [(results.name(stack), _column(results, site, stack)) for stack in stacks],
        _labels(results, stacks, named),
        more if left else "",
        silent(results),
        rows,
        prefix + in_sentence(where) if prefix else where,
        sentences.gain(results, spoken),
        sentences.mind(results, site, list(dict.fromkeys(s for c in spoken for s in c.ranking.standings))),
        [(advice, text) for advice, text in _MEANINGS.items() if advice in used],
        sentences.left_open(results, found),
        _over(found),
        _heading(results, stacks),
        against_kept(results, found),
    )


def _heading(results: Results, stacks: Sequence[str]) -> str:
    base = storages(stacks)
    if len(base) > 1 or len(stacks) == 1:
        return Verdict.heading
    return f"What layers in front of {results.name(base[0])} are worth"


def _labels(results: Results, stacks: Sequence[str], named: Mapping[str, str]) -> list[str]:
    """Return the columns' names; where all are of one storage, which the heading names, its layers' alone."""
    plain = [results.name(stack) for stack in storages(stacks)]
    labels = [results.name(s).removeprefix(f"{plain[0]} ") if "+" in s else named[s] for s in stacks]
    several = len(plain) > 1 or "+" in storages(stacks)[0] or max(map(len, labels)) > MOST_LETTERS
    return [named[s] for s in stacks] if several else labels


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
        where = sentences.single(results, stacks[0])
        return _said(results, stacks, where, "", sentences.mind(results, site, stacks))
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
        f"`tiercel place train --study {results.study.study}`, then `tiercel place plan TRACE`."
    )
    return _said(results, stacks, where, gain, sentences.mind(results, site, stacks))


def _said(results: Results, stacks: list[str], where: str, gain: str, mind: str) -> Verdict:
    """Return a first screen of sentences alone."""
    return Verdict(stacks, [], [], "", silent(results), [], where, gain, mind, [], "", "")


def _column(results: Results, site: Site, stack: str) -> str:
    known = storage_of(site, stack)
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


def _place(
    results: Results, found: WorkloadClass, column: str, columns: Sequence[str], named: Mapping[str, str]
) -> Place:
    stack = _shown(found, column, columns)
    number = found.numbers.get(stack)
    if number is None:
        why = next((s.why for s in found.silent if s.stack == stack), "")
        return Place("nothing", note=f"no number: {why}" if why else words.MISSING)
    value, href = found.delivered(stack), number.anchor
    if number.invalid:
        return Place("nothing", note="did not pass a validity check", value=value, href=href)
    advice, standing = found.ranking.advice[stack], found.ranking.standings[stack]
    factor, interval, note = _factor(results, found, advice, standing, named)
    if factor and not note and standing.against not in columns:
        note = f"of {named[standing.against]}"  # nobody sees it beside this cell
    if advice == "undecided" and standing.rows and not found.single(stack, standing.against):
        seen = CellVerdict.of(standing.rows[0])
        note = ", ".join(filter(None, (note, "" if seen.outcome.decided else seen.rule)))
    largest = _largest(found, advice, standing) if factor else ""
    if stack != column:
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
        return f"{words.times(slower['ratio'])} slower", interval_of(slower), ""
    if advice == "nothing":  # a layer, which is compared with its own storage alone
        how = {"higher": "ahead of", "lower": "behind", "same": "the same as"}
        said = f"{how.get(standing.outcome, 'undecided against')} {against}"
        return words.times(row["ratio"]), interval_of(row), said
    if standing.outcome == "same":
        return "", "", words.same_as(against, row)
    several = sum(s not in results.memory for s in found.ranking.standings) > 2
    return words.times(row["ratio"]), interval_of(row), against if advice == "use" and several else ""


def _largest(found: WorkloadClass, advice: Advice, standing: Standing) -> str:
    """Return ``3.7× at 2 processes`` where the interval over all scales does not hold that factor."""
    row, one = standing.rows[0], found.at_largest(standing.stack, standing.against)
    if one is None or row["low"] <= one["ratio"] <= row["high"]:
        return ""
    ratio, slower = (1 / one["ratio"], " slower") if advice == "avoid" else (one["ratio"], "")
    scale = words.scale(int(one["nodes"]), int(one["processes_per_node"]))
    return f"{words.times(ratio)}{slower} at {scale}"
