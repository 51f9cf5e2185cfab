"""Which storage systems the first screen shows where there are more than a reader can take in at once."""

from __future__ import annotations

from collections.abc import Sequence

from tiercel.report import words
from tiercel.report.classes import WorkloadClass
from tiercel.report.data import Results

#: As many columns fit a page; with more, some are left to the tables further down.
MOST = 6
_BEST, _MEMORY = 3, 1
#: Letters of a name in a column's head and in its cells.
MOST_LETTERS = 40


def storages(stacks: Sequence[str]) -> list[str]:
    """Return one stack for each storage: the plain one, or else the first through a layer."""
    found: dict[str, str] = {}
    for stack in sorted(stacks, key=lambda s: "+" in s):
        found.setdefault(stack.partition("+")[0], stack)
    return [s for s in stacks if s in found.values()]


def columns(results: Results, found: Sequence[WorkloadClass]) -> tuple[list[str], int]:
    """Return the stacks to show, those to use first and memory last, and how many more there are.

    A column for each storage: a layer in front of it shows where it decides something. A study of one
    storage, or without the plain storages, is about the layers themselves. Of too many, the best that keep
    files stay, the best memory, and those most to avoid.
    """
    stacks = [s for s in results.stacks if any(s in c.numbers for c in found)]
    stacks += [s for s in results.silent if s not in stacks]
    plain = storages(stacks)
    about_layers = len(plain) == 1 or any("+" in stack for stack in plain)
    stacks = stacks if about_layers else plain
    first = {s: sum(c.ranking.reference == s for c in found) for s in stacks}
    stacks.sort(key=lambda s: (s in results.memory, -first[s]))
    if len(stacks) <= MOST:
        return stacks, 0
    numbered = [s for s in stacks if s not in results.silent]
    lasting = sorted(
        (s for s in numbered if s not in results.memory), key=lambda s: (-first[s], _place(found, s))
    )
    memory = sorted(
        (s for s in numbered if s in results.memory),
        key=lambda s: -sum(c.ranking.fastest == s for c in found),
    )[:_MEMORY]
    best = lasting[:_BEST]
    worst = sorted(lasting[_BEST:], key=lambda s: -_place(found, s))[: MOST - len(best) - len(memory)]
    worst.reverse()
    kept = [*best, *worst, *memory]
    return kept, len(stacks) - len(kept)


def _place(found: Sequence[WorkloadClass], stack: str) -> float:
    """Return the mean place of a stack in the rankings that it is in; 0 is the first."""
    places = [list(c.ranking.standings).index(stack) for c in found if stack in c.ranking.standings]
    return sum(places) / len(places) if places else 0.0


def short(results: Results, stacks: Sequence[str]) -> dict[str, str]:
    """Return a name of each stack that fits a cell; names stay different from each other."""
    names = words.told_apart([results.name(s) for s in stacks], MOST_LETTERS)
    return dict(zip(stacks, names, strict=True))
