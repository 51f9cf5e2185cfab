"""Workload classes: what a study's workloads stand for in plain words, and how storage systems serve each.

One class is one named workload of the study (of a training, its cold first epoch; of a metadata workload,
the whole life of a file), by the study's main engine, of one origin. The first screen, the terminal's verdict
and the recommendations are made of these, so they cannot disagree.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tiercel.report import words
from tiercel.report.data import ORIGINS, Number, Record, Results, Silent, over_scales, records, with_sides
from tiercel.statistics import tables
from tiercel.statistics.lives import LIFE, lives
from tiercel.statistics.ranking import Ranking, both, rank, toward
from tiercel.units import format_whole

#: Experiment, workload, operation, origin.
Key = tuple[str, str, str, str]
#: Transfers smaller than this are called small.
_SMALL = 64 * 1024
#: What a process moves in all, below which its files are small.
_SMALL_FILE = 1024**2
#: Of a training only its first epoch counts: later ones may come from memory.
_TRAINING = ("train-later", "evaluate", "generate")


@dataclass(frozen=True)
class WorkloadClass:
    """One row of the verdict."""

    experiment: str
    workload: str
    operation: str
    origin: str
    name: str
    """In plain words, different from that of every other class of the results."""
    detail: str
    """More of a training: what its files are."""
    ranking: Ranking
    numbers: Mapping[str, Number]
    """By stack: its number at the largest scale."""
    configuration: Mapping[str, Any]
    """An observation of the class: the workload's features."""
    silent: Sequence[Silent]
    """Stacks that ran it and have no number of it; of what only memory ran, all storages that keep files."""
    repeated: Mapping[str, int]
    """By stack: the least repetitions that any of its numbers rests on."""
    scales: Sequence[Record]
    """Comparisons at each scale, where there are several; the largest scale last."""

    def single(self, *stacks: str) -> bool:
        """Return whether a number of these stacks rests on one repetition, which has no interval."""
        return any(self.repeated.get(stack, 1) < 2 for stack in stacks)

    def at_largest(self, stack: str, against: str) -> Record | None:
        """Return the comparison at the largest scale that both stacks have; None for a single scale."""
        rows = [row for row in self.scales if both(row) == {stack, against}]
        return toward(rows[-1], stack) if len(rows) > 1 else None

    def lost(self, memory: Iterable[str]) -> list[str]:
        """Return names of places that keep files and have no number of this class."""
        return [s.label for s in self.silent if s.stack not in memory]

    def delivered(self, stack: str) -> str:
        """Return what a stack gave at the largest scale: ``1.4 GiB/s``, ``53 600 files/s``."""
        number = self.numbers[stack]
        noun = {LIFE: "files/s", "train": "samples/s"}.get(self.operation)
        return f"{format_whole(number.median)} {noun}" if noun else number.value

    @property
    def key(self) -> Key:
        return self.experiment, self.workload, self.operation, self.origin


def classes(results: Results) -> list[WorkloadClass]:
    """Return the classes of `results` in the order of the study; measured ones come first."""
    whole_lives = lives(results.named_rows)
    rows, numbers = _rows(results, whole_lives), _numbers(results, whole_lives)
    compared: dict[Key, list[Record]] = {}
    for row in over_scales(rows):
        compared.setdefault(_key(row), []).append(row)
    scales: dict[Key, list[Record]] = {}
    single = [row for row in rows if row["scope"] == "scale" and math.isfinite(row["ratio"])]
    for row in sorted(single, key=lambda row: (row["nodes"] * row["processes_per_node"], row["nodes"])):
        scales.setdefault(_key(row), []).append(row)
    by_class: dict[Key, list[Number]] = {}
    for n in numbers:
        by_class.setdefault(_key(n.row), []).append(n)
    first = _first_rows(results)
    made = []
    for key, some in by_class.items():
        silent = results.silent_for(*key[:2]) if key[3] == "measured" else []
        present = dict.fromkeys(n.stack for n in some)
        if not silent and present.keys() <= results.memory:  # a study may measure it in memory only
            silent = [
                Silent(stack, name, False, 0, 0)
                for stack, name in results.stacks.items()
                if stack not in results.memory and "+" not in stack
            ]
        ranking = rank(compared.get(key, []), results.memory, present, {s.stack for s in silent})
        if ranking is None:
            continue
        at: dict[str, Number] = {}
        for n in sorted(some, key=lambda n: (n.processes, n.nodes)):
            at[n.stack] = n
        seen = first[some[0].configuration, key[2]]
        repeated = {stack: min(n.n for n in some if n.stack == stack) for stack in present}
        at_scales = scales.get(key, [])
        made.append(WorkloadClass(*key, "", "", ranking, at, seen, silent, repeated, at_scales))
    names = _names(results, [(c.key, c.configuration) for c in made])
    return [replace(c, name=name, detail=detail) for c, (name, detail) in zip(made, names, strict=True)]


def purpose(operation: str, features: Mapping[str, Any], title: str) -> str:
    """Return what a workload stands for, in words that need no knowledge of I/O; its title where none fit."""
    pattern, fsync = _text(features.get("pattern")), _text(features.get("fsync"))
    transfer = features.get("transfer_size")
    small = pd.notna(transfer) and float(transfer) < _SMALL
    each = features.get("bytes_per_process")
    synced = operation == "write" and fsync == "write"
    if operation in ("read", "write") and pd.notna(each) and float(each) < _SMALL_FILE and not synced:
        return title  # no large file is read, and no checkpoint written, in so little
    if operation == "write":
        if fsync == "write":
            return "Databases and logs (synced writes)"
        scattered = pattern == "random" or small
        return "Small or scattered writes" if scattered else "Simulations writing checkpoints"
    if operation == "read":
        if pattern == "random":
            return "Random reads from large files"
        return "Reading in small pieces" if small else "Analyses reading large files"
    if operation == LIFE:
        return "Many small files"
    if operation == "train":
        return f"Training: {in_sentence(title.partition(' (')[0])}"
    return f"{title}: {words.operation(operation)}"


def _names(results: Results, made: list[tuple[Key, Mapping[str, Any]]]) -> list[tuple[str, str]]:
    """Return (name, detail) of each class; those with one name take their title or their experiment's."""
    found = []
    for (experiment, workload, operation, origin), features in made:
        title = results.title(experiment, workload)
        found.append(
            [purpose(operation, features, title), title, results.experiment_title(experiment), origin]
        )
    for position in (1, 2):
        plain = [(name, origin) for name, _, _, origin in found]
        count = Counter(plain)
        for each, own in zip(found, plain, strict=True):
            if count[own] > 1 and each[position] not in each[0]:
                each[0] = f"{each[0]}: {in_sentence(each[position])}"
    return [
        (
            name + ("" if origin == "measured" else f" ({origin})"),
            _detail(title) if name.startswith("Training") else "",
        )
        for name, title, _, origin in found
    ]


def _detail(title: str) -> str:
    """Return what stands in brackets at the end of a title."""
    return title.partition(" (")[2].removesuffix(")")


def in_sentence(title: str) -> str:
    """Return a title as it goes on within a sentence: ``Empty`` as ``empty``, ``ResNet-50`` as it is.

    And so is a name of several words, as ``Cosmic Tagger``.
    """
    first, second, *_ = [*title.split(" "), "", ""]
    name = first.isalpha() and second[:1].isupper() and second[1:2].islower()
    return title[:1].lower() + title[1:] if len(first) > 1 and first[1:].islower() and not name else title


def _key(row: Mapping[str, Any]) -> Key:
    return row["experiment"], row["workload"], row["operation"], row["origin"]


def _rows(results: Results, whole_lives: pd.DataFrame) -> list[Record]:
    """Return the comparisons of all classes, at each scale and over all: the study's own, and those of lives
    in place of their phases."""
    life = with_sides(tables.comparisons(whole_lives, results.excluded, margin=results.margin))
    found = [row for row in results.comparisons if _counts(results, row)]
    return [row for row in (*found, *life) if _main(results, row)]


def _numbers(results: Results, whole_lives: pd.DataFrame) -> list[Number]:
    life = records(tables.summary_table(whole_lives))
    made = [results.number(_anchor(results, row), row) for row in life]
    found = [n for n in results.numbers if _counts(results, n.row)]
    both = [n for n in (*found, *made) if _main(results, n.row)]
    return sorted(both, key=lambda n: (*results.position(n.row), ORIGINS.index(n.origin)))


def _first_rows(results: Results) -> dict[tuple[str, str], Record]:
    """Return the first observation of each configuration and operation; for a life, that of a phase."""
    rows = records(results.named_rows.drop_duplicates(["configuration", "operation"]))
    found = {(row["configuration"], str(row["operation"])): row for row in rows}
    return {(row["configuration"], LIFE): row for row in rows} | found


def _anchor(results: Results, life: Record) -> str:
    """Return the place in the page of the first phase of a life."""
    phases = results.of_workload(life["experiment"], life["workload"])
    return next((n.anchor for n in phases if n.configuration == life["configuration"]), "")


def _counts(results: Results, row: Mapping[str, Any]) -> bool:
    """Return whether a row stands for its class: not where another operation of the workload does."""
    operation = str(row["operation"])
    others = {n.operation for n in results.of_workload(row["experiment"], row["workload"])}
    if operation in _TRAINING or operation.startswith("checkpoint-"):
        return "train" not in others and operation != "generate"
    if operation.startswith(("file-", "directory-")):
        return len([o for o in others if o.startswith("file-")]) < 2
    return not operation.startswith("job-")


def _main(results: Results, row: Mapping[str, Any]) -> bool:
    return bool(row["engine"] == results.main_engine(row["experiment"], row["workload"]))


def _text(value: Any) -> str:
    return "" if value is None or pd.isna(value) else str(value)


def undecided(found: Iterable[WorkloadClass]) -> list[WorkloadClass]:
    """Return the classes for which no storage system can be named."""
    return [c for c in found if "undecided" in c.ranking.advice.values()]


def against_kept(results: Results, found: Iterable[WorkloadClass]) -> bool:
    """Return whether anything that others are held against keeps files: of memory alone nothing does."""
    return any(c.ranking.reference not in results.memory for c in found)
