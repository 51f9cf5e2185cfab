"""Counts what was said of traces against their labels: precision and recall, by label and in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from benchmarks.findings.labels import LABELS, Trace


@dataclass(frozen=True)
class Count:
    """How often a label was said where it is true, said where it is not, and not said where it is true."""

    right: int = 0
    false: int = 0
    missed: int = 0

    @property
    def precision(self) -> float | None:
        """Share of what was said that is true; None when nothing was said."""
        return self.right / (self.right + self.false) if self.right + self.false else None

    @property
    def recall(self) -> float | None:
        """Share of what is true that was said; None when there was nothing to say."""
        return self.right / (self.right + self.missed) if self.right + self.missed else None

    def __add__(self, other: Count) -> Count:
        return Count(self.right + other.right, self.false + other.false, self.missed + other.missed)


@dataclass(frozen=True)
class Miss:
    """One trace of which something false was said, or something true was not."""

    trace: str
    half: str
    missed: list[str]
    false: list[str]


@dataclass(frozen=True)
class Score:
    """What was said of some traces, judged."""

    traces: int
    #: Traces without a label, and those of them of which something was said nevertheless.
    clean: int
    alarmed: int
    labels: Mapping[str, Count]
    misses: list[Miss] = field(default_factory=list)
    #: Traces that could not be read: what is true of them counts as missed.
    unread: int = 0

    @property
    def whole(self) -> Count:
        """All labels together, each case counted once (micro-average)."""
        return sum(self.labels.values(), Count())


def score(traces: Iterable[Trace], said: Mapping[str, Set[str]], judged: Iterable[str] = LABELS) -> Score:
    """Judge `said` (labels by the trace's name; no such name: it was not read) by the labels.

    Only labels in `judged` count; a label that a trace allows counts neither way.
    """
    known = set(judged)
    counts = {label: Count() for label in LABELS if label in known}
    clean = alarmed = number = unread = 0
    misses = []
    for trace in traces:
        number += 1
        unread += trace.name not in said
        told = (set(said.get(trace.name, ())) & known) - set(trace.allowed)
        true = trace.labels & known
        for label in told | true:
            counts[label] += Count(label in told & true, label in told - true, label in true - told)
        if told != true:
            misses.append(Miss(trace.name, trace.half, sorted(true - told), sorted(told - true)))
        if not trace.labels:
            clean += 1
            alarmed += bool(told)
    return Score(number, clean, alarmed, counts, misses, unread)
