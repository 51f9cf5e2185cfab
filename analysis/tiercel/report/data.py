"""What a report is made from: the study's rows, and every table computed from them, once."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import pandas as pd

from tiercel.pages.words import clipped, plain
from tiercel.report import words
from tiercel.results.current import current_runs
from tiercel.results.observations import load_observations, load_runs
from tiercel.statistics import contrasts, tables
from tiercel.statistics.ranking import reverse
from tiercel.study.model import Study

Record = dict[str, Any]

#: Flags of numbers that what ran before made slower: no sentence is told by how much.
HELD_BACK = frozenset({"inodes-remembered"})
#: The flag whose share of reads is told with it.
CACHE_BEHIND = "cache-behind"
#: A read with one of these flags is not proven to come from the storage.
NOT_COLD = frozenset({"cache-not-cold", "cache-unknown", "server-cache", CACHE_BEHIND})
#: What is measured here comes first everywhere.
ORIGINS = ("measured", "imported", "simulated")


class FlagText(Protocol):
    """What a validity flag says (tiercel.results.validity.Flag)."""

    @property
    def code(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def advice(self) -> str: ...
    @property
    def severity(self) -> Literal["info", "caution", "invalid"]: ...


@dataclass(frozen=True)
class UnknownFlag:
    """Stands in for a code in the data that this version of tiercel does not know."""

    code: str
    advice: str = "This version of tiercel does not know this check. Use the version that wrote the data."
    severity: Literal["info", "caution", "invalid"] = "caution"

    @property
    def title(self) -> str:
        return self.code


@dataclass(frozen=True)
class Number:
    """One row of the summary: one configuration and operation, with what the report says about it."""

    anchor: str
    row: Record
    flags: Mapping[str, FlagText]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["row"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def label(self) -> str:
        return words.stack(self.row["storage_label"] or self.row["storage"], self.row["layer"])

    @property
    def scale(self) -> str:
        return words.scale(self.row["nodes"], self.row["processes_per_node"])

    @property
    def interval(self) -> str:
        return words.interval_of(self.row)

    @property
    def value(self) -> str:
        return words.value(self.row["metric"], self.row["median"])

    @property
    def invalid(self) -> bool:
        """Some repetition carries a flag that takes it out of every comparison."""
        return any(flag.severity == "invalid" for flag in self.flags.values())

    @property
    def cold(self) -> bool:
        return not NOT_COLD & self.flags.keys()

    def checks(self) -> list[str]:
        """Return the titles of the flags, each with the figure that belongs to it."""
        return [self._check(code, flag.title) for code, flag in self.flags.items()]

    def _check(self, code: str, title: str) -> str:
        share = self.row["flags"][code]
        told = [words.percent(share)] if share != 1 else []
        if code == CACHE_BEHIND and not math.isnan(self.row["behind_share"]):
            told.insert(0, f"{words.percent(self.row['behind_share'])} of the reads at memory speed")
        return f"{title} ({', '.join(told)})" if told else title

    @property
    def held_back(self) -> bool:
        return bool(HELD_BACK & self.flags.keys())


@dataclass(frozen=True)
class Silent:
    """A stack that the study ran on and that has no number."""

    stack: str
    label: str
    """For people; told apart from stacks with numbers."""
    memory: bool
    runs: int
    failed: int

    @property
    def why(self) -> str:
        """Return ``all 118 runs failed``."""
        if self.failed < self.runs:
            return f"{self.failed} of {words.count(self.runs, 'run')} failed, none has a result"
        return "its only run failed" if self.runs == 1 else f"all {words.count(self.runs, 'run')} failed"


@dataclass(frozen=True)
class _Ran:
    """Runs of one storage and layer."""

    first: int
    """The place of the first of them in the table, whose label counts."""
    label: Any
    memory: bool
    runs: int
    failed: int

    def __add__(self, other: _Ran) -> _Ran:
        first = min(self, other, key=lambda each: each.first)
        return replace(first, runs=self.runs + other.runs, failed=self.failed + other.failed)


#: Letters of a name from outside; real ones are paths at most.
_LETTERS = 320


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which names from outside are one short line each: hostile ones have thousands of
    letters, which no figure and no sentence has room for."""
    names = {column: table[column].map(_line) for column in ("storage_label", "title") if column in table}
    return table.assign(**names)


def _line(text: Any) -> Any:
    return clipped(plain(text), _LETTERS) if isinstance(text, str) else text


class Results:
    """A study's results on a site, and what statistics make of them."""

    def __init__(
        self, study: Study, observations: pd.DataFrame, runs: pd.DataFrame, flags: Mapping[str, FlagText]
    ) -> None:
        observations, runs = _readable(observations), _readable(runs)
        mine = _measuring(runs[runs["study"] == study.study])
        self.study = study
        self.known_flags = flags
        self.runs = current_runs(mine)
        self.superseded = len(mine) - len(self.runs)
        of_study = observations[observations["study"] == study.study]
        kept = set(self.runs["configuration"])
        # Imported numbers have no run of ours: they stay.
        self.observations = of_study[
            of_study["configuration"].isin(kept) | (of_study["origin"] != "measured")
        ]
        self.excluded = sorted(code for code, flag in flags.items() if flag.severity == "invalid")

    @property
    def margin(self) -> float:
        """The ratio up to which two systems are the same."""
        return 1 + self.study.margin

    @classmethod
    def from_folder(cls, folder: Path, study: Study, flags: Mapping[str, FlagText]) -> Results:
        return cls.of_study(study, load_observations(folder), load_runs(folder), flags)

    @classmethod
    def of_study(
        cls, study: Study, observations: pd.DataFrame, runs: pd.DataFrame, flags: Mapping[str, FlagText]
    ) -> Results:
        """Return the results of what the study asks for now: what was taken out of it keeps its raw runs,
        and no rows."""
        asked = {
            (name, workload) for name, each in study.experiments.items()
            for workload in (*each.workloads, *(each.sweep.workloads if each.sweep else ()))
        }  # fmt: skip
        still = [pair in asked for pair in zip(runs["experiment"], runs["workload"], strict=True)]
        kept = pd.Series(still, index=runs.index, dtype=bool) | (runs["origin"] == "imported")
        return cls(study, observations, runs[kept], flags)

    @cached_property
    def numbers(self) -> list[Number]:
        table = records(tables.summary_table(self.observations))
        rows = sorted(table, key=lambda row: (*self.position(row), ORIGINS.index(row["origin"])))
        return [self.number(f"number-{i}", row) for i, row in enumerate(rows, 1)]

    def number(self, anchor: str, row: Record) -> Number:
        """Return a row of a summary as a number of this report."""
        found = row | {"stack": stack_key(row["storage"], row["layer"])}
        return Number(anchor, found, {code: self.flag(code) for code in row["flags"]})

    @cached_property
    def total(self) -> int:
        """Return how many numbers there are, those of samples included."""
        return len(self.numbers)

    @cached_property
    def samples(self) -> dict[str, set[str]]:
        """Return the workloads of designed samples (``sweep:``), by experiment."""
        found = self.study.experiments.items()
        return {name: set(each.sweep.workloads) for name, each in found if each.sweep}

    def named(self) -> Results:
        """Return the results of the workloads that somebody named, without the points of samples.

        A sample has hundreds of points, which say something together: a section does that, no page can show
        them one by one. What counts or names all numbers (total, flags, stacks, memory) still does.
        """
        return self._named

    @cached_property
    def _named(self) -> Results:
        return _Named(self)

    def _sampled(self, row: Mapping[str, Any]) -> bool:
        return row["workload"] in self.samples.get(str(row["experiment"]), ())

    @cached_property
    def named_rows(self) -> pd.DataFrame:
        """Observations without those of samples, whose points are no series of one factor or scale."""
        rows = self.observations
        if not self.samples or rows.empty:
            return rows
        of_named = [
            w not in self.samples.get(str(e), ())
            for e, w in zip(rows["experiment"], rows["workload"], strict=True)
        ]
        return rows[of_named]

    @cached_property
    def stacks(self) -> dict[str, str]:
        """Names of all stacks with numbers, and their names for people; two with one name are told apart."""
        labels = {n.stack: n.label for n in sorted(self.numbers, key=lambda n: str(n.stack))}
        doubled = {label for label in labels.values() if list(labels.values()).count(label) > 1}
        return {key: f"{label} ({key})" if label in doubled else label for key, label in labels.items()}

    def name(self, stack: str) -> str:
        """Return a stack's name for people."""
        if stack not in self.stacks and stack in self.silent:
            return self.silent[stack].label
        return self.stacks.get(stack, stack)

    @cached_property
    def silent(self) -> dict[str, Silent]:
        """Return the stacks of the study's runs that have no number at all, by name."""
        every: dict[tuple[str, str], _Ran] = {}
        for ran in self._ran.values():
            for key, one in ran.items():
                every[key] = every[key] + one if key in every else one
        return {s.stack: s for s in self._silent(every, set(self.stacks))}

    def silent_for(self, experiment: str, workload: str) -> list[Silent]:
        """Return the stacks that ran a workload and have no measured number of it."""
        there = {n.stack for n in self.of_workload(experiment, workload) if n.origin == "measured"}
        return self._silent(self._ran.get((experiment, workload), {}), there)

    @cached_property
    def _ran(self) -> dict[tuple[str, str], dict[tuple[str, str], _Ran]]:
        """Return how many runs there are: by experiment and workload, and of these by storage and layer."""
        names = ("experiment", "workload", "storage", "layer", "storage_label", "medium", "status")
        found: dict[tuple[str, str], dict[tuple[str, str], _Ran]] = {}
        columns = (self.runs[name].to_numpy(dtype=object) for name in names)
        for place, row in enumerate(zip(*columns, strict=True)):
            experiment, workload, storage, layer, label, medium, status = row
            if not (isinstance(storage, str) and isinstance(layer, str)):
                continue
            one = _Ran(place, label, medium == "memory", 1, int(status != "ok"))
            ran = found.setdefault((experiment, workload), {})
            ran[storage, layer] = ran[storage, layer] + one if (storage, layer) in ran else one
        return found

    def _silent(self, ran: Mapping[tuple[str, str], _Ran], numbered: set[str]) -> list[Silent]:
        found = []
        for (storage, layer), each in sorted(ran.items(), key=lambda item: item[0]):
            stack = stack_key(storage, layer)
            if stack in numbered:
                continue
            name = words.stack(str(each.label) if pd.notna(each.label) and each.label else storage, layer)
            if name in self.stacks.values():
                name = f"{name} ({stack})"
            found.append(Silent(stack, name, each.memory, each.runs, each.failed))
        return found

    @cached_property
    def free_bytes(self) -> dict[str, float]:
        """Return the least that was free on each storage while measuring, where anything is known."""
        free = pd.to_numeric(self.runs["free_bytes"], errors="coerce").groupby(self.runs["storage"]).min()
        return {str(storage): float(v) for storage, v in free.items() if pd.notna(v) and math.isfinite(v)}

    @cached_property
    def memory(self) -> set[str]:
        """Return the stacks that are memory: fast, and gone at the next boot."""
        silent = {s.stack for s in self.silent.values() if s.memory}
        return silent | {n.stack for n in self.numbers if n.medium == "memory"}

    @cached_property
    def comparisons(self) -> list[Record]:
        found = tables.comparisons(self.observations, self.excluded, self.margin)
        return sorted(_one_way(with_sides(found), self.memory), key=self.position)

    @cached_property
    def contrasts(self) -> list[Record]:
        return _with_stack(records(contrasts.contrasts(self.named_rows, self.excluded)))

    @cached_property
    def scaling(self) -> list[Record]:
        found = _with_stack(records(contrasts.scaling(self.named_rows, self.excluded)))
        return sorted(found, key=self.position)

    @cached_property
    def floors(self) -> list[Record]:
        found = _with_stack(records(tables.layouts(self.observations, self.excluded)))
        return sorted(found, key=lambda row: (*self.position(row), row["stack"]))

    @cached_property
    def agreement(self) -> list[Record]:
        return _with_stack(records(tables.agreement(self.named_rows, self.excluded, self.margin)))

    @cached_property
    def failed(self) -> list[Record]:
        return records(self.runs[self.runs["status"] != "ok"].sort_values("run"))

    def position(self, row: Record) -> tuple[int, int, str, tuple[bool, int, str]]:
        """Return where a row stands in the order of the study file; sorting by it is stable."""
        experiment, workload = str(row["experiment"]), str(row["workload"])
        operation = words.operation_rank(str(row["operation"]))
        if experiment not in self.study.experiments:
            return len(self.study.experiments), 0, experiment, operation
        first, places = self._places[experiment]
        return first, places.get(workload, len(places)), workload, operation

    def place(self, experiment: str, workload: str) -> tuple[int, int]:
        """Return where a workload stands in the study file."""
        return self.position({"experiment": experiment, "workload": workload, "operation": ""})[:2]

    @cached_property
    def _places(self) -> dict[str, tuple[int, dict[str, int]]]:
        """Return where each experiment stands in the study file, and each workload in it."""
        return {
            name: (i, {workload: k for k, workload in enumerate(experiment.all_workloads())})
            for i, (name, experiment) in enumerate(self.study.experiments.items())
        }

    @property
    def ok(self) -> int:
        """Return how many runs gave numbers that count."""
        return int(((self.runs["status"] == "ok") & ~self._traced).sum())

    @property
    def traced(self) -> int:
        """Return how many traced runs there are; they give no number but those of their section."""
        return int(((self.runs["status"] == "ok") & self._traced).sum())

    @property
    def _traced(self) -> pd.Series[bool]:
        return self.runs["traced"].fillna(False).astype(bool)

    @cached_property
    def flags(self) -> dict[str, list[Number]]:
        """Return every flag in use with the numbers that carry it, the most severe first."""
        order = ["invalid", "caution", "info"]
        used: dict[str, list[Number]] = {}
        for number in self.numbers:
            for code in number.flags:
                used.setdefault(code, []).append(number)
        return dict(
            sorted(used.items(), key=lambda item: (order.index(self.flag(item[0]).severity), item[0]))
        )

    def flag(self, code: str) -> FlagText:
        return self.known_flags.get(code) or UnknownFlag(code)

    def main_engine(self, experiment: str, workload: str) -> str:
        """Return the engine whose numbers stand for a workload: the first of the study's that has some."""
        present = {n.engine: None for n in self.of_workload(experiment, workload)}
        for engine in (*self.study.engines, *present):
            if engine in present:
                return str(engine)
        return ""

    def title(self, experiment: str, workload: str) -> str:
        """Return the workload's title for people."""
        for n in self.of_workload(experiment, workload):
            return str(n.title or n.workload)
        return workload

    def of_workload(self, experiment: str, workload: str) -> Sequence[Number]:
        """Return the numbers of one workload, in the order of :attr:`numbers`."""
        return self._by_workload.get((experiment, workload), ())

    @cached_property
    def _by_workload(self) -> dict[tuple[str, str], list[Number]]:
        found: dict[tuple[str, str], list[Number]] = {}
        for n in self.numbers:
            found.setdefault((n.experiment, n.workload), []).append(n)
        return found

    def experiment_title(self, experiment: str) -> str:
        known = self.study.experiments.get(experiment)
        return (known.title if known else "") or words.capital(experiment)

    def experiments(self) -> list[str]:
        """Return experiments with numbers, in the study's order."""
        present = {n.experiment for n in self.numbers}
        return [e for e in self.study.experiments if e in present] + sorted(
            present - set(self.study.experiments)
        )


class _Named(Results):
    """Results without the points of samples."""

    def __init__(self, everything: Results) -> None:
        self.study, self.known_flags = everything.study, everything.known_flags
        self.runs, self.observations = everything.runs, everything.observations
        self.superseded, self.excluded = everything.superseded, everything.excluded
        # What names or counts all numbers.
        self.total, self.flags, self.stacks = everything.total, everything.flags, everything.stacks
        self.memory, self.silent = everything.memory, everything.silent
        # No sample has these.
        self.contrasts, self.scaling = everything.contrasts, everything.scaling
        self.agreement = everything.agreement
        self.numbers = [n for n in everything.numbers if not self._sampled(n.row)]
        self.comparisons = [row for row in everything.comparisons if not self._sampled(row)]
        self.floors = [row for row in everything.floors if not self._sampled(row)]

    def named(self) -> Results:
        return self


def _measuring(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs that give numbers, or failed: a calibration that went well is neither."""
    if "calibration" not in runs:  # a table of before there were any
        return runs
    return runs[~(runs["calibration"].eq(True).fillna(False).astype(bool) & (runs["status"] == "ok"))]


def stack_key(storage: str, layer: str) -> str:
    return storage if layer == "none" else f"{storage}+{layer}"


def _with_stack(records: list[Record]) -> list[Record]:
    return [row | {"stack": stack_key(row["storage"], row["layer"])} for row in records]


def with_sides(comparisons: pd.DataFrame) -> list[Record]:
    """Return comparisons as rows, with the names of both stacks in stack_a and stack_b."""
    found = records(comparisons)
    for row in found:
        for side in "ab":
            row[f"stack_{side}"] = stack_key(row[f"storage_{side}"], row[f"layer_{side}"])
    return found


def _one_way(rows: list[Record], memory: Collection[str]) -> list[Record]:
    """Return comparisons that have one direction for each pair: memory to storage that keeps files, else the
    faster storage to the slower one."""
    sums: dict[tuple[str, str], float] = {}
    for row in rows:
        pair = row["stack_a"], row["stack_b"]
        if row["ratio"] > 0 and math.isfinite(row["ratio"]):
            sums[pair] = sums.get(pair, 0.0) + math.log(row["ratio"])
    turned = {
        (a, b) for (a, b), total in sums.items()
        if (b in memory if (a in memory) != (b in memory) else total < 0)
    }  # fmt: skip
    return [reverse(row) if (row["stack_a"], row["stack_b"]) in turned else row for row in rows]


def records(table: pd.DataFrame) -> list[Record]:
    """Return rows as dicts of plain values, missing ones as NaN."""
    return [{str(k): v for k, v in row.items()} for row in table.to_dict("records")]


def overall(results: Results) -> list[Record]:
    """Return one comparison for each pair, workload and operation: over all scales, or the only one."""
    return over_scales(results.comparisons)


def over_scales(comparisons: Iterable[Record]) -> list[Record]:
    """Return, of comparisons at each scale and over all, one for each pair, workload and operation."""
    chosen: dict[tuple[str, ...], Record] = {}
    same = ("origin", "experiment", "workload", "operation", "engine", "stack_a", "stack_b")
    for row in comparisons:
        key = tuple(str(row[name]) for name in same)
        if row["scope"] == "all" or key not in chosen:
            chosen[key] = row
    return [row for row in chosen.values() if math.isfinite(row["ratio"])]
