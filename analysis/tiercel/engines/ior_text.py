"""Reads what IOR prints: per-repetition rows with the facts of their header, whatever the version.

The columns are found by the words above them, because they differ (3.0 to 3.2 lack IOPS and Latency), and
the rows are read rather than the "Summary of all tests", because many an archived output has no summary.

IOR rounds: bandwidth and times below 1 have six decimals, below 3600 two, above none. Bytes are exact
(the geometry, or "Using actual aggregate bytes moved"), so a time is known in several ways, as printed
and as bytes over a printed rate; the most precise one is taken, and ways that disagree by more than
their rounding make the row a problem instead of a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from tiercel.engines.ior_warnings import invalidates, lost_bytes

MIB = 1024**2

_FIRST = re.compile(r"IOR-(\d\S*): MPI Coordinated Test of Parallel I/O\s*")
_FACT = re.compile(r"\s*([A-Za-z][\w /()#-]*?)\s*[:=]\s+(.*)")
_ACTUAL = re.compile(r"WARNING: Using actual aggregate bytes moved\s*=\s*(\d+)\.?\s*")
_SIZE = re.compile(r"(\d+) (bytes|KiB|MiB|GiB|TiB)")
_POWER = {"bytes": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4}


@dataclass(frozen=True)
class IorRow:
    """One phase of one repetition. Units: bytes, seconds; None where IOR did not say it exactly."""

    test: int
    access: str
    """write or read."""
    iteration: int
    bandwidth: float
    total_time: float
    transfer_time: float
    open_time: float
    close_time: float
    bytes_moved: int | None
    bytes_expected: int | None
    operations: int | None


@dataclass
class IorTest:
    """One test of a log: its options, as printed, and its rows."""

    number: int
    facts: dict[str, str] = field(default_factory=dict)
    rows: list[IorRow] = field(default_factory=list)

    @property
    def repetitions(self) -> int:
        return _whole(self.facts.get("repetitions")) or 1


@dataclass
class IorLog:
    """What one start of IOR printed."""

    version: str
    facts: dict[str, str] = field(default_factory=dict)
    """Began, Command line, Machine."""
    tests: list[IorTest] = field(default_factory=list)
    finished: bool = False
    problems: list[str] = field(default_factory=list)
    """Why its numbers must not be taken as they are; empty for a whole and sound log."""

    @property
    def rows(self) -> list[IorRow]:
        return [row for test in self.tests for row in test.rows]


def parse_ior_text(text: str) -> list[IorLog]:
    """Return the logs in `text`, one for each start of IOR.

    A row that is torn, joined with other output or in contradiction with itself is left out, and a
    sentence in `problems` says so; so is a repetition that is missing, and an end without "Finished".
    """
    logs: list[IorLog] = []
    reader: _Reader | None = None
    for line in text.split("\n")[:-1]:  # what follows the last newline is torn
        first = _FIRST.fullmatch(line)
        if first:
            if reader:
                reader.close()
            logs.append(IorLog(first[1]))
            reader = _Reader(logs[-1])
        elif reader:
            reader.take(line.rstrip("\r"))
    if reader:
        if text and not text.endswith("\n"):
            last = text[text.rfind("\n") + 1 :]
            if not logs[-1].finished:
                logs[-1].problems.append(f"the output is torn within a line: {last[:80]!r}")
        reader.close()
    return logs


@dataclass(frozen=True)
class _Printed:
    """A printed number, and how far the number behind it can be from it, relatively."""

    value: float
    error: float

    @classmethod
    def of(cls, text: str) -> _Printed:
        value = float(text)
        half = 0.5 * 10.0 ** -len(text.partition(".")[2])
        return cls(value, half / value if value > 0 else math.inf)

    def of_amount(self, amount: float) -> _Printed:
        """Return the time in which `amount` was moved at this rate."""
        return _Printed(amount / self.value, self.error) if self.value > 0 else _Printed(0.0, math.inf)


class _Reader:
    """Takes the lines of one log."""

    def __init__(self, log: IorLog) -> None:
        self.log = log
        self.columns: list[str] = []
        self.summary_columns: list[str] = []
        self.text: list[str] = []
        self.actual: int | None = None
        self.raw: list[tuple[IorTest, dict[str, str], int | None]] = []
        self.summaries: dict[tuple[int, str], dict[str, str]] = {}

    def take(self, line: str) -> None:
        self.text.append(line)
        words = line.split()
        if invalidates(line):
            self.log.problems.append(line.strip())
        elif line.startswith("Finished") and line[8:].lstrip()[:1] in (":", "="):
            self.log.finished = True
        elif actual := _ACTUAL.fullmatch(line):
            self.actual = int(actual[1])
        elif words[:2] == ["access", "bw(MiB/s)"]:
            self.columns, self.summary_columns = words, []
            if not self.log.tests:
                self.log.tests.append(IorTest(0))
        elif words[:2] == ["Operation", "Max(MiB)"]:
            self.summary_columns = words
        elif words[:1] in (["write"], ["read"]) and (self.columns or self.summary_columns):
            self._row(line, words)
        elif fact := _FACT.fullmatch(line):
            self._fact(fact[1].strip(), fact[2].strip())

    def _fact(self, key: str, value: str) -> None:
        if key in ("TestID", "Test"):
            number = _whole(value.split(maxsplit=1)[0]) if value else 0
            self.log.tests.append(IorTest(number or 0))
            self.columns = []
        elif self.log.tests and not self.columns:
            self.log.tests[-1].facts.setdefault(key, value)
        elif not self.log.tests:
            self.log.facts.setdefault(key, value)
            if key == "api":  # 3.0 and 3.1 name no test before its options
                self.log.tests.append(IorTest(0, {key: value}))

    def _row(self, line: str, words: list[str]) -> None:
        if self.summary_columns:
            # It only adds digits, so one that a terminal has wrapped is passed over.
            if len(words) == len(self.summary_columns):
                cells = dict(zip(self.summary_columns, words, strict=True))
                self.summaries[_whole(cells.get("Test#")) or 0, words[0]] = cells
        elif len(words) != len(self.columns):
            self.log.problems.append(f"a row is torn: {line.strip()[:120]!r}")
        else:
            cells = dict(zip(self.columns, words, strict=True))
            self.raw.append((self.log.tests[-1], cells, self.actual))
            self.actual = None

    def close(self) -> None:
        """Turn what was taken into rows."""
        for test, cells, actual in self.raw:
            summary = self.summaries.get((test.number, cells["access"]), {})
            try:
                row = _make(test, cells, actual, summary)
            except (KeyError, ValueError) as error:
                self.log.problems.append(f"a row is no result ({error}): {' '.join(cells.values())!r}")
            else:
                test.rows.append(row)
        if lost := lost_bytes("\n".join(self.text)):
            self.log.problems.append(lost)
        if "--dryRun" in self.log.facts.get("Command line", "").split():
            self.log.problems.append("a dry run: nothing was moved")
        if not self.log.finished:
            self.log.problems.append('the output ends without "Finished"')
        for test in self.log.tests:
            for access in dict.fromkeys(cells["access"] for t, cells, _ in self.raw if t is test):
                seen = [row.iteration for row in test.rows if row.access == access]
                if sorted(seen) != list(range(test.repetitions)):
                    self.log.problems.append(
                        f"test {test.number} has {access} rows of repetitions {seen}, not of 0 to "
                        f"{test.repetitions - 1}"
                    )


def _make(test: IorTest, cells: Mapping[str, str], actual: int | None, summary: Mapping[str, str]) -> IorRow:
    """Return the row of printed `cells`; ValueError or KeyError where they are no result."""
    facts = test.facts
    transfer = _whole(summary.get("xsize")) or _size(facts.get("xfersize"))
    expected = _expected(facts, summary)
    moved = expected if actual is None else actual
    rate, total = _Printed.of(cells["bw(MiB/s)"]), _Printed.of(cells["total(s)"])
    totals = [total]
    if moved:
        totals.append(rate.of_amount(moved / MIB))
    if test.repetitions == 1 and summary:
        totals.append(_Printed.of(summary["Mean(s)"]))
        if moved:
            totals.append(_Printed.of(summary["Max(MiB)"]).of_amount(moved / MIB))
    operations = moved // transfer if moved is not None and transfer else None
    transfers = [_Printed.of(cells["wr/rd(s)"])]
    if operations and "IOPS" in cells:
        transfers.append(_Printed.of(cells["IOPS"]).of_amount(operations))
    seconds = _best(totals, "total time")
    open_time, close_time = float(cells["open(s)"]), float(cells["close(s)"])
    if not math.isfinite(open_time + close_time):
        raise ValueError("a time is not finite")
    return IorRow(
        test=test.number,
        access=cells["access"],
        iteration=int(cells["iter"]),
        bandwidth=moved / seconds if moved else rate.value * MIB,
        total_time=seconds,
        transfer_time=_best(transfers, "wr/rd time"),
        open_time=open_time,
        close_time=close_time,
        bytes_moved=moved,
        bytes_expected=expected,
        operations=operations,
    )


def _best(ways: Iterable[_Printed], name: str) -> float:
    """Return the most precise of several ways to know a number; ValueError where they disagree."""
    known = [way for way in ways if way.value > 0 and math.isfinite(way.value)]
    if not known:
        raise ValueError(f"no {name}")
    for a, b in combinations(known, 2):
        if abs(math.log(a.value / b.value)) > 1.5 * (a.error + b.error) + 1e-3 and a.error + b.error < 1:
            raise ValueError(f"{name} is {a.value:g} s and {b.value:g} s")
    return min(known, key=lambda way: way.error).value


def _expected(facts: Mapping[str, str], summary: Mapping[str, str]) -> int | None:
    """Return the bytes that all tasks were to move, or None where IOR printed them rounded only."""
    block = _whole(summary.get("blksiz")) or _size(facts.get("blocksize"))
    segments = _whole(summary.get("segcnt")) or _whole(facts.get("segments"))
    tasks = _whole(summary.get("#Tasks")) or _whole(facts.get("tasks"))
    if "clients" in facts:  # 3.0 and 3.1: "16 (8 per node)", "segmented (4 segments)"
        tasks = tasks or _whole(facts["clients"].split(maxsplit=1)[0])
        pattern = re.search(r"\((\d+) segments?\)", facts.get("pattern", ""))
        segments = segments or (int(pattern[1]) if pattern else None)
    if block and segments and tasks:
        return block * segments * tasks
    return _size(facts.get("aggregate filesize"))


def _size(text: str | None) -> int | None:
    """Return bytes for ``4 MiB``; None for ``4.25 MiB``, which is rounded."""
    match = _SIZE.fullmatch(text or "")
    return int(match[1]) * 1024 ** _POWER[match[2]] if match else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d+", text) else None
