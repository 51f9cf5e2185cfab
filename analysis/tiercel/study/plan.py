"""The plan of a study on a site: one row for each run, in the order in which they go.

Source of the method: design.md of the project, "What a number must carry": repetitions are
interleaved in random order over the stacks that are compared, so that no system gets the quiet hour.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from tiercel.errors import UserError
from tiercel.site.model import Site, Stack
from tiercel.study.looks import Look
from tiercel.study.model import Study
from tiercel.study.workloads import Workload

#: Part of every run's identity. Raise it when the meaning of a recorded number changes.
FORMAT = 1

Twin = Literal["a", "b"]


@dataclass(frozen=True)
class Amount:
    """How much each process does, found by a calibration: the same in all runs of a configuration."""

    amount: int
    """Blocks of data, or items."""
    written: int
    """What the study says: the amount of a storage at which nobody looked."""
    bound: str
    """What decided: phase_time, or what kept it from that (least, storage, budget, failure)."""
    why: str
    """The same as a sentence."""
    phase_time: float
    """Seconds that the measured phases aim at."""
    calibration: str
    """The run that found it."""
    again: float = 0.0
    """Seconds for which what leaves things as they were (stat, read, rename) is done over and over."""


@dataclass(frozen=True)
class Configuration:
    """Everything that determines a run but its repetition. `engine_version` comes from the installation.

    With a `phase_time` the workload is as the study says it, and a calibration finds how much of it is done.
    """

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
    phase_time: float | None = None
    """Seconds that a measured phase aims at; None: the workload goes as it is."""
    simulated: bool = False
    """Whether its site is. The site's name is part of the identity, so this is not."""

    @property
    def least(self) -> Workload:
        """The workload with the least that it may be given."""
        if self.phase_time is None:
            return self.workload
        return self.workload.with_amount(self.workload.least_amount(self.processes_per_node))

    @property
    def repeatable(self) -> bool:
        """Whether an operation done again finds things as they were the first time.

        On storage behind a network a node keeps what it looked at; and on several nodes it is the point that
        another one made it.
        """
        return self.nodes == 1 and self.stack.storage.medium != "network"

    @property
    def processes(self) -> int:
        return self.nodes * self.processes_per_node

    @property
    def job_nodes(self) -> int:
        """The nodes of its job: those that are measured, and one that waits meanwhile (another_client)."""
        return self.nodes + self.workload.waiting_nodes(self.nodes)

    def identity(self) -> dict[str, Any]:
        """Return what the hash covers. The scratch folder is not in it: it names a place, not a system."""
        storage = self.stack.storage
        # Only where there is one: what was measured before there were any keeps its name.
        aim = {} if self.phase_time is None else {"phase_time": self.phase_time}
        return {
            **aim,
            "format": FORMAT,
            "site": self.site,
            "study": self.study,
            "experiment": self.experiment,
            "name": self.name,
            "workload": self.workload.model_dump(exclude={"title", *_newer(self.workload)}),
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
    calibration: bool = False
    """Finds the amount of its configuration, and of those that `leaders` puts under it; gives no number."""
    amount: Amount | None = None
    """Of a configuration with a phase_time: how much is done, known when the run begins; not in its name."""

    @property
    def workload(self) -> Workload:
        """The workload as it is run."""
        workload = self.configuration.workload
        found = self.amount
        return workload if found is None else workload.with_amount(found.amount, found.again)

    @cached_property
    def id(self) -> str:
        """Readable words and the hash: ``scaling.write.ext4-root.iokernel.1x2.r0-5f0c...``."""
        c = self.configuration
        suffix = ("b" if self.twin == "b" else "") + "t" * self.traced + "c" * self.calibration
        scale = f"{c.nodes}x{c.processes_per_node}.r{self.repetition}{suffix}"
        stack = "+".join([c.stack.name, *(choice.layer for choice in c.stack.layers)])
        words = ".".join([c.experiment, c.name, stack, c.engine, scale])
        determines: dict[str, Any] = {
            "key": c.key,
            "repetition": self.repetition,
            "twin": self.twin,
            "traced": self.traced,
        }
        if self.calibration:
            determines["calibration"] = True
        return f"{words}-{digest(determines)}"

    @property
    def seed(self) -> int:
        """The engine's random seed: another order in each repetition, the same for all stacks and twins."""
        return (self.configuration.seed * 1_000_003 + self.repetition * 7919) % 2**31

    def row(self) -> dict[str, Any]:
        """Return the plain row that is stored with the results (``run.json``)."""
        c = self.configuration
        storage = c.stack.storage.model_dump()
        if not storage["allocate"]:  # as in rows from before there was this key
            del storage["allocate"]
        return {
            **c.identity(),
            "workload": self.workload.model_dump(),
            "storage": {**storage, "name": c.stack.name},
            "configuration": c.key,
            "run": self.id,
            "repetition": self.repetition,
            "twin": self.twin,
            "look": self.look,
            "traced": self.traced,
            "run_seed": self.seed,
            "origin": "simulated" if c.simulated else "measured",
            "calibration": self.calibration,
            "amount": asdict(self.amount) if self.amount else None,
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
class RunPlan:
    """All runs that a study may need on a site; later rounds may prove unnecessary (adaptive repetition)."""

    site: Site
    study: Study
    configurations: tuple[Configuration, ...]
    batches: tuple[Batch, ...]
    looks: tuple[Look, ...] = ()

    @property
    def runs(self) -> list[Run]:
        return [run for batch in self.batches for run in batch.runs]

    def batch(self, name: str) -> Batch | None:
        return next((b for b in self.batches if b.name == name), None)

    @cached_property
    def calibrations(self) -> dict[str, Run]:
        """The run that finds the amount of a configuration, by the configuration's key."""
        return {key: Run(leader, calibration=True) for key, leader in leaders(self.configurations).items()}


def _newer(workload: Workload) -> set[str]:
    """Return the keys that a workload does not use and that were not there when others were measured: those
    keep their names."""
    later = ("again", "data_folder", "rest", "another_client", "compressibility", "dedup", "refill")
    return {name for name in later if getattr(workload, name, None) is None}


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
) -> RunPlan:
    """Return the plan: round after round, each a random order over all configurations.

    Round r holds repetition r of every configuration; a study's A/A pairs add a twin for one scale of each
    workload on each stack (`paired_scales`), in the minimum rounds. Calibrations go before all of them, as a
    round of their own. The traced runs come next, and last the rounds of further looks. Where the study was
    given more rounds since, its own end where the first look began: what is measured from there on was chosen
    by what had been seen. UserError where the study asks for more than these at least.
    Of a study with time to decide (`decide:`), what is compared has its minimum alone: its further
    repetitions are those of looks, which go where they decide something.
    Rounds are cut where the number of nodes changes, and into parts of `part_size` runs (a
    number, or a function of the number of nodes).
    """
    configurations, looks = tuple(configurations), tuple(looks)
    largest, paired = largest_scales(configurations), paired_scales(configurations)
    batches: list[Batch] = []
    calibrations = [Run(c, calibration=True) for c in dict.fromkeys(leaders(configurations).values())]
    random.Random(f"{study.study}:{study.seed}:calibration").shuffle(calibrations)
    batches += _cut(calibrations, 0, part_size)
    first = int(bool(calibrations))
    all_bounds = [study.repetitions_of(c.experiment) for c in configurations]
    rounds = max((bounds.maximum for bounds in all_bounds), default=0)
    undecided = compared(configurations) if study.decide is not None else set()
    if looks:
        least = max((bounds.minimum for bounds in all_bounds), default=0)
        if looks[0].first < least:
            raise UserError(
                f"study {study.study}: needs at least {least} repetitions, but its follow-up rounds began "
                f"after {looks[0].first}: remove looks/{study.study}.*.json from the results. Their runs "
                "are kept and are no longer planned"
            )
        rounds = min(rounds, looks[0].first)
    for number in range(rounds):
        runs: list[Run] = []
        for c in configurations:
            bounds = study.repetitions_of(c.experiment)
            if number < (bounds.minimum if c.key in undecided else bounds.maximum):
                runs.append(Run(c, number))
            if study.twinned(c.experiment) and c.key in paired and number < bounds.minimum:
                runs.append(Run(c, number, twin="b"))
        # The shuffle hangs on the study's seed and the round, not on what else is planned before it.
        random.Random(f"{study.study}:{study.seed}:{number}").shuffle(runs)
        batches += _cut(runs, first + number, part_size)
    traced = [Run(c, traced=True) for c in configurations if c.key in largest and study.traced(c.experiment)]
    batches += _cut(traced, first + rounds, part_size)
    after = first + rounds + 1
    for look in looks:
        for number in range(look.first, look.end):
            some = [c for c in configurations if look.repetitions.get(c.key, 0) > number - look.first]
            more = [Run(c, number, look=look.number) for c in some]
            random.Random(f"{study.study}:{study.seed}:{number}").shuffle(more)
            batches += _cut(more, after, part_size)
            after += 1
    return RunPlan(site, study, configurations, tuple(batches), looks)


def leaders(configurations: Iterable[Configuration]) -> dict[str, Configuration]:
    """Return whose calibration finds a configuration's amount, by key: the first engine's on the same stack,
    workload and scale, so that all engines are given the same. Those without a phase_time are left out."""
    first: dict[tuple[object, ...], Configuration] = {}
    found = {}
    for c in configurations:
        if c.phase_time is not None:
            group = (c.experiment, c.name, c.stack.name, c.stack.layer, c.nodes, c.processes_per_node)
            found[c.key] = first.setdefault(group, c)
    return found


def compared(configurations: Iterable[Configuration]) -> set[str]:
    """Return the keys of the configurations that are held against another storage, or another layer on the
    same storage (as statistics.tables compares them)."""
    groups: dict[tuple[object, ...], list[Configuration]] = {}
    for c in configurations:
        same = (c.experiment, c.name, c.engine, c.nodes, c.processes_per_node)
        groups.setdefault(same, []).append(c)
    return {
        one.key
        for group in groups.values()
        for one in group
        if any(
            (one.stack.name == other.stack.name) != (one.stack.layer == other.stack.layer) for other in group
        )
    }


def largest_scales(configurations: Iterable[Configuration]) -> set[str]:
    """Return the keys of the configurations with the most processes of their workload, stack and engine."""
    best: dict[tuple[str, ...], Configuration] = {}
    for c in configurations:
        group = (c.experiment, c.name, c.stack.name, c.stack.layer, c.engine)
        if group not in best or c.processes > best[group].processes:
            best[group] = c
    return {c.key for c in best.values()}


def paired_scales(configurations: Iterable[Configuration]) -> set[str]:
    """Return the keys of the configurations that run twice over, as A/A pairs: one scale of each workload on
    each stack, all scales in turn.

    A comparison is over all scales, so the pairs must be, too: placements differ more at some of them (fewer
    files, so less averages out). Pairs at the largest alone gave false claims in one study of six where
    placements at a smaller one differ twice as much, and these in one of a hundred.
    """
    groups: dict[tuple[str, str, str, str], dict[str, list[Configuration]]] = {}
    stacks: dict[tuple[str, str], int] = {}
    for c in configurations:
        stacks.setdefault((c.stack.name, c.stack.layer), len(stacks))
        group = groups.setdefault((c.experiment, c.name, c.stack.name, c.stack.layer), {})
        group.setdefault(c.engine, []).append(c)
    workloads = {name: place for place, name in enumerate(dict.fromkeys(group[:2] for group in groups))}
    chosen = set()
    for (experiment, name, *stack), engines in groups.items():
        turn = workloads[experiment, name] + stacks[stack[0], stack[1]]
        for scales in engines.values():
            ordered = sorted(scales, key=lambda c: (c.processes, c.nodes))
            chosen.add(ordered[turn % len(ordered)].key)
    return chosen


def _cut(runs: list[Run], number: int, part_size: int | Callable[[int], int]) -> list[Batch]:
    by_nodes: dict[int, list[Run]] = {}
    for run in runs:
        by_nodes.setdefault(run.configuration.job_nodes, []).append(run)
    batches = []
    for nodes, group in sorted(by_nodes.items()):
        size = part_size if isinstance(part_size, int) else part_size(nodes)
        for part, start in enumerate(range(0, len(group), size)):
            batches.append(Batch(number, nodes, part, tuple(group[start : start + size])))
    return batches
