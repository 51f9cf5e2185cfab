"""What a rule is, what it looks at, what it gives.

A rule is a function from a `Case` to findings, in a file by theme, under ``@rules.register``. It fires on a
named threshold whose reason stands beside it, and its evidence is the table that its sentence was read from.
How grave a finding is follows from the time that it costs, not from how strong the pattern is: a pattern that
costs nothing is a note. What a trace cannot know (how fast the medium is, how wide a stripe) comes from the
caller as `Storage`.

References: Drishti's triggers (Bez et al., "Drishti: Guiding End-Users in the I/O Optimization Journey",
PDSW 2022), Darshan's documentation of its counters, and the papers that a rule cites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from tiercel.pages.words import percent
from tiercel.registry import Registry
from tiercel.subjects import fill
from tiercel.traces.analysis.tally import BLOCK, places, topmost
from tiercel.units import format_latency

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: problem: costs time or makes a number wrong; hint: likely does; note: worth knowing.
Severity = Literal["problem", "hint", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "hint", "note")
#: Shares of the processes' time from which a pattern is a problem, and a hint: for less nobody changes a
#: program.
PROBLEM, HINT = 0.05, 0.02
#: Seconds in calls (the sum over ranks) below which a share of the time is not worth a finding.
WORTH = 0.01
#: Bytes below which nothing is worth reading, or writing, otherwise.
ENOUGH_BYTES = 1 << 20
#: Bytes a second that one process gets at most where nothing is wrong: four lanes of PCIe 4, half of a
#: 100 Gb/s link. Calls that move bytes as fast as that cost nothing, however small they are.
BEST = 4 << 30


@dataclass(frozen=True)
class Storage:
    """What is known of the storage under the traced files.

    `read_bandwidth` is the most that it delivers to this job, in bytes a second (a measured ceiling; None:
    not known).
    `stripe` is the unit in which it spreads and locks files: 1 MiB is Lustre's default stripe and a
    common GPFS block. `block` is the unit in which it reads and writes, where the trace does not tell.
    """

    read_bandwidth: float | None = None
    stripe: int = 1 << 20
    block: int = BLOCK


@dataclass(frozen=True)
class Finding:
    """One sentence with numbers, the table that it rests on, and what to try."""

    rule: str
    severity: Severity
    sentence: str
    advice: str
    evidence: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)
    #: What the pattern costs at most: seconds in calls, summed over the processes; None: not known.
    seconds: float | None = None
    #: The same as a share of what all processes had (run time times ranks).
    share: float | None = None


@dataclass(frozen=True)
class Case:
    """What a rule looks at: a trace, and what its counters or events sum up to.

    `table` has a row for each layer, file and rank (`analysis.tally`; rank -1: all ranks of a shared file
    together), `low` its rows of the layer whose calls count. `took` is the time that all processes had
    together, in seconds; `felt` the part of the time in I/O that computation does not hide. `numbered`:
    ranks are only numbers of processes.
    """

    frame: IOFrame
    layer: str
    storage: Storage
    table: pd.DataFrame
    low: pd.DataFrame
    ranks: int | None = None
    took: float | None = None
    felt: float = 1.0
    numbered: bool = False
    program: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Rows on the program's own files (traces/program.py), which `table` and `low` leave out."""
    sees_mpiio: bool = True
    """Calls of MPI-IO would be in the trace."""

    @cached_property
    def events(self) -> bool:
        """Say whether the trace tells single operations."""
        return len(self.frame) > 0

    @cached_property
    def places(self) -> pd.DataFrame:
        """Accesses of each file by pattern, and bytes read again: see `analysis.patterns.places`."""
        found = places(self.frame, self.low, self.layer)
        found = found.reindex(columns=PLACES).fillna(dict.fromkeys(PLACES[:-1], 0))
        # Whose data MPI-IO gathered is not known below it: an aggregator writes for others.
        gathered = found.index.isin(self.table.loc[self.table["collective"] > 0, "file"])
        return found.assign(read_of_others=found["read_of_others"].mask(gathered))

    @cached_property
    def extents(self) -> pd.Series:
        """How far each file is read or written, in bytes (index: file); unlimited where that is not known."""
        ends = self.low.groupby("file")[["last_byte_read", "last_byte_written"]].max().max(axis=1)
        return (ends + 1).where(ends > 0, math.inf)

    @cached_property
    def shared(self) -> pd.DataFrame:
        """Rows of `low` on files that several ranks used; processes that are no ranks share none."""
        several = (self.low.groupby("file")["rank"].transform("nunique") > 1) & (self.ranks is not None)
        # Of a program of one process Darshan says "all ranks" too.
        return self.low[((self.low["rank"] < 0) & (self.ranks != 1)) | several]

    @cached_property
    def top(self) -> pd.DataFrame:
        """Rows of each file's topmost layer: what ranks ask for, before MPI-IO gathers it in aggregators."""
        return topmost(self.table, self.low)

    @cached_property
    def waits(self) -> pd.Series:
        """What a second in reads and writes below MPI-IO costs in calls of MPI-IO (index: file; 1 where not
        through it): while an aggregator writes, all ranks of a collective call wait."""
        names = ["read_time", "write_time"]
        below, above = (
            rows.groupby("file")[names].sum().sum(axis=1)
            for rows in (self.low, self.table[self.table["api"] == "mpiio"])
        )
        return (above / below.where(below > 0)).reindex(below.index).fillna(1.0).clip(lower=1.0)

    def lost(self, files: Iterable[Any], seconds: pd.Series, moved: pd.Series | None = None) -> float:
        """Return what calls on `files` cost all processes together: their seconds, beyond what their bytes
        take where nothing is wrong (`BEST`), with the waiting of others."""
        beyond = seconds if moved is None else (seconds - moved / BEST).clip(lower=0)
        factors = self.waits.reindex(list(files)).fillna(1.0).to_numpy()
        return float((beyond * factors).sum())

    def held_up(self, rows: pd.DataFrame) -> float:
        """Return what all ranks spend at most while one of them moves data on the files of `rows` (of `low`):
        its seconds there for each of them, and no more than they are in calls."""
        data = rows["read_time"] + rows["write_time"]
        slowest = rows["slowest_time"].where(rows["slowest_time"] > 0, data).clip(upper=data)
        return min(self.lost(rows["file"], data), float(slowest.sum()) * (self.ranks or 1))

    def share(self, seconds: float) -> float | None:
        """Return seconds in calls, over all processes, as a share of what these had; None: not known."""
        return self.felt * seconds / self.took if self.took else None

    def severity(self, seconds: float) -> Severity:
        """Return how grave something is that costs so many seconds in calls, over all processes."""
        share = self.share(seconds)
        if share is None:
            return "hint"
        return "problem" if share >= PROBLEM else "hint" if share >= HINT else "note"

    def says(
        self, rule: str, seconds: float, sentence: str, advice: str, evidence: pd.DataFrame,
        sure: bool = True,
    ) -> Iterator[Finding]:  # fmt: skip
        """Yield a finding on something that costs so many seconds in calls over all processes; none where
        that is not worth a word. What is not `sure` is a hint at most."""
        if seconds >= WORTH:
            severity = self.severity(seconds)
            severity = "hint" if severity == "problem" and not sure else severity
            yield Finding(rule, severity, sentence, advice, evidence, seconds, self.share(seconds))

    def costs(self, seconds: float) -> str:
        """Return that as words."""
        share = self.share(seconds)
        whole = "" if share is None else f", {percent(share)} of the processes' time"
        hidden = " that computation does not hide" if self.felt < 1 else ""
        return f"{long(seconds)} in calls{whole}{hidden}"


#: Columns of `Case.places`.
PLACES = [
    "placed_reads", "consecutive_reads", "random_reads", "turns_reads", "placed_writes",
    "consecutive_writes", "random_writes", "turns_writes", "read_again", "read_of_others",
]  # fmt: skip

Rule = Callable[[Case], Iterable[Finding]]
rules: Registry[Rule] = Registry("finding rule", partial(fill, "rules", __name__))
_OF_RANKS: set[Rule] = set()


def of_ranks(rule: Rule) -> Rule:
    """Mark a rule on what several ranks do together: it is asked only where there are several."""

    @wraps(rule)
    def asked(case: Case) -> Iterable[Finding]:
        return rule(case) if (case.ranks or 0) > 1 else ()

    _OF_RANKS.add(asked)
    return asked


def needs_ranks(rule: Rule) -> bool:
    """Say whether a rule is mute where a trace tells processes and not ranks."""
    return rule in _OF_RANKS


def findings_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """Return findings as rows: severity, rule, sentence, advice."""
    columns = ["severity", "rule", "sentence", "advice"]
    return pd.DataFrame([[getattr(finding, c) for c in columns] for finding in findings], columns=columns)


def long(seconds: float) -> str:
    """Return seconds of many processes together: ``4.2 ms``, ``760 s``, ``76.2 h``, ``13,695 h``."""
    if seconds < 1000:
        return format_latency(seconds)
    hours = seconds / 3600
    return f"{hours:,.0f} h" if hours >= 100 else f"{hours:.3g} h"


def kinds(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, str, str, str]]:
    """Yield (kind, rows that did it, column of calls, of bytes, of time) for reads and writes."""
    for kind, calls, moved, time in (("read", "reads", "bytes_read", "read_time"),
                                     ("write", "writes", "bytes_written", "write_time")):  # fmt: skip
        chosen = rows[rows[calls] > 0]
        if len(chosen):
            yield kind, chosen, calls, moved, time


def top(rows: pd.DataFrame, by: str, columns: Iterable[str]) -> pd.DataFrame:
    """Return evidence: files and ranks with the most of something first."""
    names = list(columns)
    table = rows.groupby(["file", "rank"], as_index=False, dropna=False)[names].sum()
    return table.sort_values(by, ascending=False, kind="stable").reset_index(drop=True)
