"""Which system serves a workload best: the one rule behind findings, tables, verdicts and recommendations.

Input are the comparisons of one workload's systems, pair by pair, as rows (``statistics.tables.comparisons``)
with the names of both systems in `stack_a` and `stack_b`. Nothing here compares anew: a system is ahead only
where the row says so.

Files must outlive the program, so the systems that keep them are ranked against each other, and the best of
these is the *reference*. What is gone after a restart (memory) is held against it, never in its place. A
workload of several operations gives several rows for a pair; then ahead means ahead in some and behind in
none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tiercel.statistics.verdict import Outcome as VerdictOutcome
from tiercel.statistics.verdict import Verdict

Record = dict[str, Any]
Outcome = Literal["higher", "lower", "same", "undecided"]
#: What a user should do. use: best of those that keep files, or the same as it; fastest: memory that is ahead
#: of it; no gain: memory that is not; only: there is no other; nothing: it has no comparison.
Advice = Literal["use", "avoid", "undecided", "fastest", "no gain", "only", "nothing"]


def reverse(row: Record) -> Record:
    """Return a comparison of a to b as one of b to a."""
    swapped = dict(row)
    for name in [k for k in row if k.endswith("_a")]:
        other = f"{name[:-2]}_b"
        swapped[name], swapped[other] = row[other], row[name]
    if "farthest" in row:
        swapped["farthest"] = 1 / row["farthest"]
    return swapped | Verdict.of(row).reversed().columns()


def toward(row: Record, stack: str) -> Record:
    """Return the comparison with `stack` as its first side."""
    return row if row["stack_a"] == stack else reverse(row)


def both(row: Mapping[str, Any]) -> set[str]:
    """Return the two systems of a comparison."""
    return {row["stack_a"], row["stack_b"]}


def same(row: Mapping[str, Any]) -> bool:
    """Return whether a comparison shows two systems to be the same within its margin: the whole 95 % interval
    lies within it (two one-sided tests, D. J. Schuirmann, 1987)."""
    return bool(row["outcome"] == VerdictOutcome.SAME)


def outcome(rows: Iterable[Mapping[str, Any]]) -> Outcome:
    """Return how the first side of all `rows` (one pair, one row for each operation) does."""
    rows = list(rows)
    if rows and all(map(same, rows)):  # a difference that is sure, and too small to matter, is none
        return "same"
    verdicts = {row["verdict"] for row in rows}
    if "higher" in verdicts and "lower" not in verdicts:
        return "higher"
    if "lower" in verdicts and "higher" not in verdicts:
        return "lower"
    return "undecided"


@dataclass(frozen=True)
class Standing:
    """One system of a ranking, held against another one."""

    stack: str
    against: str
    """The system that it is compared with: the reference; for the reference, its best rival; "" for none."""
    rows: tuple[Record, ...]
    """The comparisons, with `stack` as the first side."""

    @property
    def outcome(self) -> Outcome:
        return outcome(self.rows)


@dataclass(frozen=True)
class Ranking:
    """How the systems of one workload stand."""

    standings: Mapping[str, Standing]
    """Every system, the best first; memory after those that keep their files."""
    reference: str
    """The best system that keeps files; the best of all where none does."""
    winner: str
    """The reference, if it is ahead of every other system that keeps files; else ""."""
    fastest: str
    """A system that does not keep files and is ahead of the reference, the best of such; else ""."""
    advice: Mapping[str, Advice]


def rank(
    rows: Sequence[Record],
    memory: Collection[str] = (),
    present: Iterable[str] = (),
    silent: Collection[str] = (),
) -> Ranking | None:
    """Return how the systems in `rows` stand; None where there is none.

    `present` names systems that have numbers but perhaps no comparison: a machine with a single storage has
    no row at all. `silent` names systems that were tried and have no number: beside them nothing is the only
    choice if they keep files, and memory that was measured alone is no place to advise.
    """
    usable = [row for row in rows if math.isfinite(row["ratio"]) and row["ratio"] > 0]
    stacks = list(dict.fromkeys([*present, *(row[f"stack_{side}"] for row in rows for side in "ab")]))
    if not stacks:
        return None
    lasting = [s for s in stacks if s not in memory] or stacks
    # What keeps files is ordered by its own comparisons; those with memory have no say in it.
    level = _levels(usable, stacks) | _levels([r for r in usable if both(r) <= set(lasting)], lasting)
    # Held to the verdicts first: nothing that another one is ahead of is the best, however the medians lie.
    behind = {s for s in lasting for t in lasting if s != t and outcome(_pair(usable, s, t)) == "lower"}
    reference = max([s for s in lasting if s not in behind] or lasting, key=lambda s: level[s])
    order = sorted(stacks, key=lambda s: (s in memory, s != reference, -level[s]))
    standings = {s: _standing(usable, s, reference, lasting, order) for s in order}
    rivals = {s: outcome(_pair(usable, reference, s)) for s in lasting if s != reference}
    fast = [
        s for s in order if s not in lasting and standings[s].against == reference
        and standings[s].outcome == "higher"
    ]  # fmt: skip
    winner = reference if rivals and set(rivals.values()) == {"higher"} else ""
    advice = {s: _advice(s, standings, reference, rivals, memory) for s in order}
    if set(silent) - set(memory) and (advice[reference] == "only" or reference in memory):
        advice |= {s: "nothing" for s in order if advice[s] in ("only", "use")}
    return Ranking(standings, reference, winner, fast[0] if fast else "", advice)


def _advice(
    stack: str,
    standings: Mapping[str, Standing],
    reference: str,
    rivals: Mapping[str, Outcome],
    memory: Collection[str],
) -> Advice:
    """Return what to do with a system; `rivals`: how the reference does against each other lasting one."""
    decided = set(rivals.values()) <= {"higher", "same"}
    if stack == reference:
        if len(standings) == 1:
            return "only"
        return "use" if decided else "undecided"
    standing = standings[stack]
    if standing.against != reference:
        return "nothing"
    found = standing.outcome
    if stack in memory and stack not in rivals:
        words: dict[Outcome, Advice] = {"higher": "fastest", "lower": "avoid", "same": "no gain"}
        return words.get(found, "undecided")
    if found == "same":
        return "use" if decided else "undecided"
    return "avoid" if found == "lower" else "undecided"


def _standing(
    rows: Sequence[Record], stack: str, reference: str, lasting: Sequence[str], order: Sequence[str]
) -> Standing:
    if stack != reference:
        found = _pair(rows, stack, reference)
        if found:
            return Standing(stack, reference, tuple(found))
        # A layer is compared on its own storage only: with the first of the ranking that it has a row with.
        for other in order:
            if other != stack and (found := _pair(rows, stack, other)):
                return Standing(stack, other, tuple(found))
        return Standing(stack, "", ())
    rivals = [s for s in order if s in lasting and s != stack and _pair(rows, stack, s)]
    if not rivals:
        return Standing(stack, "", ())
    # One that it is not ahead of is the rival that counts.
    rivals.sort(key=lambda s: outcome(_pair(rows, stack, s)) == "higher")
    return Standing(stack, rivals[0], tuple(_pair(rows, stack, rivals[0])))


def _pair(rows: Sequence[Record], one: str, other: str) -> list[Record]:
    return [toward(row, one) for row in rows if both(row) == {one, other}]


def _levels(rows: Sequence[Record], stacks: Sequence[str]) -> dict[str, float]:
    """Return a log number for each system: differences are, in least squares, the log ratios of the rows.

    Not every pair has a row (a layer is compared on its own storage), so sums of ratios would not do.
    """
    if not rows:
        return dict.fromkeys(stacks, 0.0)
    place = {stack: i for i, stack in enumerate(stacks)}
    differences = np.zeros((len(rows), len(stacks)))
    for i, row in enumerate(rows):
        differences[i, place[row["stack_a"]]] = 1
        differences[i, place[row["stack_b"]]] = -1
    logs = np.array([math.log(row["ratio"]) for row in rows])
    solved = np.linalg.lstsq(differences, logs, rcond=None)[0]
    return {stack: float(solved[i]) for stack, i in place.items()}
