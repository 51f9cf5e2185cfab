"""The plan of a study on a site: one row for each run, in the order in which they go.

Source of the method: design.md of the project, "What a number must carry": repetitions are
interleaved in random order over the stacks that are compared, so that no system gets the quiet hour.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from tiercel.site.model import Site, Stack
from tiercel.study.looks import Look
from tiercel.study.model import Study
from tiercel.study.workloads import Workload

#: Part of every run's identity. Raise it when the meaning of a recorded number changes.
FORMAT = 1

Twin = Literal["a", "b"]


@dataclass(frozen=True)
class Configuration:
    """Everything that determines a run but its repetition. `engine_version` comes from the installation."""

    site: str
    study: str
    experiment: str
    name: str
    workload: Workload = field(hash=False)
    stack: Stack = field(hash=False)
    engine: str
    engine_version: str
    launcher: str
    nodes: int
    processes_per_node: int
    seed: int

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node

    def identity(self) -> dict[str, Any]:
        """Return what the hash covers. The scratch folder is not in it: it names a place, not a system."""
        storage = self.stack.storage
        return {
            "format": FORMAT,
            "site": self.site,
            "study": self.study,
            "experiment": self.experiment,
            "name": self.name,
            "workload": self.workload.model_dump(exclude={"title"}),
            "storage": {
                "name": self.stack.name,
                "type": storage.type,
                "mount": storage.mount,
                "source": storage.source,
            },
            "layers": self.stack.layer_rows(),
            "engine": self.engine,
            "engine_version": self.engine_version,
            "launcher": self.launcher,
            "nodes": self.nodes,
            "processes_per_node": self.processes_per_node,
            "seed": self.seed,
        }

    @cached_property
    def key(self) -> str:
        """A hash that repetitions and twins share."""
        return digest(self.identity())


@dataclass(frozen=True)
class Run:
    """One execution, named by a hash of everything that determines it."""

    configuration: Configuration
    repetition: int = 0
    twin: Twin = "a"
    traced: bool = False
    look: int = 0
    """0: planned by the study; 1, 2, ...: measured further (study.looks)."""

    @cached_property
    def id(self) -> str:
        """Readable words and the hash: ``scaling.write.ext4-root.iokernel.1x2.r0-5f0c...``."""
        c = self.configuration
        suffix = ("b" if self.twin == "b" else "") + ("t" if self.traced else "")
        scale = f"{c.nodes}x{c.processes_per_node}.r{self.repetition}{suffix}"
        stack = "+".join([c.stack.name, *(choice.layer for choice in c.stack.layers)])
        words = ".".join([c.experiment, c.name, stack, c.engine, scale])
        determines = {
            "key": c.key,
            "repetition": self.repetition,
            "twin": self.twin,
            "traced": self.traced,
        }
        return f"{words}-{digest(determines)}"

    @property
    def seed(self) -> int:
        """The engine's random seed: another order in each repetition, the same for all stacks and twins."""
        return (self.configuration.seed * 1_000_003 + self.repetition * 7919) % 2**31

    def row(self) -> dict[str, Any]:
        """Return the plain row that is stored with the results (``run.json``)."""
        c = self.configuration
        return {
            **c.identity(),
            "workload": c.workload.model_dump(),
            "storage": {**c.stack.storage.model_dump(), "name": c.stack.name},
            "configuration": c.key,
            "run": self.id,
            "repetition": self.repetition,
            "twin": self.twin,
            "look": self.look,
            "traced": self.traced,
            "run_seed": self.seed,
        }


@dataclass(frozen=True)
class Batch:
    """Runs that go in one job, in this order. All have the same number of nodes."""

    round: int
    nodes: int
    part: int
    runs: tuple[Run, ...]

    @cached_property
    def name(self) -> str:
        """A pure function of the content, so that a changed study gives other job names."""
        return f"round-{self.round}.nodes-{self.nodes}.part-{self.part}.{digest([r.id for r in self.runs])}"


@dataclass(frozen=True)
class Plan:
    """All runs that a study may need on a site; later rounds may prove unnecessary (adaptive repetition)."""

    site: Site
    study: Study
    configurations: tuple[Configuration, ...]
    batches: tuple[Batch, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for batch in self.batches for run in batch.runs]

    def batch(self, name: str) -> Batch | None:
        return next((b for b in self.batches if b.name == name), None)


def digest(content: Any) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of the canonical JSON of `content`."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def order_runs(
    site: Site,
    study: Study,
    configurations: Iterable[Configuration],
    part_size: int | Callable[[int], int],
    looks: Iterable[Look] = (),
) -> Plan:
    """Return the plan: round after round, each a random order over all configurations.

    Round r holds repetition r of every configuration; a study's A/A pairs add a twin for the
    largest scale of each workload on each stack, in the minimum rounds. The traced runs come next, and last
    the rounds of further looks.
    Rounds are cut where the number of nodes changes, and into parts of `part_size` runs (a
    number, or a function of the number of nodes).
    """
    configurations = tuple(configurations)
    largest = largest_scales(configurations)
    batches: list[Batch] = []
    rounds = max((study.repetitions_of(c.experiment).maximum for c in configurations), default=0)
    for number in range(rounds):
        runs: list[Run] = []
        for c in configurations:
            bounds = study.repetitions_of(c.experiment)
            if number < bounds.maximum:
                runs.append(Run(c, number))
            if study.twinned(c.experiment) and c.key in largest and number < bounds.minimum:
                runs.append(Run(c, number, twin="b"))
        # The shuffle hangs on the study's seed and the round, not on what else is planned before it.
        random.Random(f"{study.study}:{study.seed}:{number}").shuffle(runs)
        batches += _cut(runs, number, part_size)
    traced = [Run(c, traced=True) for c in configurations if c.key in largest and study.traced(c.experiment)]
    batches += _cut(traced, rounds, part_size)
    after = rounds + 1
    for look in looks:
        for number in range(look.first, look.end):
            some = [c for c in configurations if look.repetitions.get(c.key, 0) > number - look.first]
            more = [Run(c, number, look=look.number) for c in some]
            random.Random(f"{study.study}:{study.seed}:{number}").shuffle(more)
            batches += _cut(more, after, part_size)
            after += 1
    return Plan(site, study, configurations, tuple(batches))


def largest_scales(configurations: Iterable[Configuration]) -> set[str]:
    """Return the keys of the configurations with the most processes of their workload, stack and engine."""
    best: dict[tuple[str, ...], Configuration] = {}
    for c in configurations:
        group = (c.experiment, c.name, c.stack.name, c.stack.layer, c.engine)
        if group not in best or c.processes > best[group].processes:
            best[group] = c
    return {c.key for c in best.values()}


def _cut(runs: list[Run], number: int, part_size: int | Callable[[int], int]) -> list[Batch]:
    by_nodes: dict[int, list[Run]] = {}
    for run in runs:
        by_nodes.setdefault(run.configuration.nodes, []).append(run)
    batches = []
    for nodes, group in sorted(by_nodes.items()):
        size = part_size if isinstance(part_size, int) else part_size(nodes)
        for part, start in enumerate(range(0, len(group), size)):
            batches.append(Batch(number, nodes, part, tuple(group[start : start + size])))
    return batches
