"""What a workload asks of a topology, phase by phase, and how long that takes.

The model, and what it leaves out: docs/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tiercel.ceilings.ceiling import missing
from tiercel.ceilings.study import waits
from tiercel.simulation.events import Course, Work, simulate
from tiercel.simulation.fair import Flows
from tiercel.simulation.layout import Layout, layout
from tiercel.site.model import Storage
from tiercel.site.topology import Action, Direction
from tiercel.study.workloads import DataWorkload, MetadataWorkload, Workload

Kind = Literal["file", "directory"]


@dataclass(frozen=True)
class Phase:
    """What became of one phase. Units: bytes, seconds; `moved` counts items in a phase of metadata."""

    operation: str
    moved: float
    """By all processes."""
    asked: float
    seconds: float
    """From the first open to the last close."""
    waited: float
    """Mean time of one operation, as its process sees it."""
    bound_by: str
    """What was full for the longest time, or the limit of the processes themselves."""


def simulated(workload: Workload) -> str | None:
    """Return why a workload cannot be simulated on any topology, or None when it can."""
    if isinstance(workload, MetadataWorkload):
        return None
    if not isinstance(workload, DataWorkload):
        return f"{workload.operation} is not simulated: only data and metadata are"
    if workload.operation == "read" and not workload.direct and not workload.wants_cold:
        return "reads that the page cache may serve are not simulated: a topology has no figure of it"
    return None


def lacking(storage: Storage, workload: Workload) -> tuple[str, ...]:
    """Return the figures without which nothing is known of a workload, by the words of the site file.

    Something that all nodes share must say what it carries: with the links of the nodes alone a storage
    would grow with them for ever. On node-local storage anything will do.
    """
    shared = [stage for stage in storage.topology if storage.medium != "network" or not stage.per_node]
    if isinstance(workload, MetadataWorkload):
        actions = [a for a in workload.phases if not any(stage.does(a) for stage in shared)]
        return tuple(f"metadata operations per second ({action})" for action in actions)
    assert isinstance(workload, DataWorkload)
    if any(stage.one_carries(workload.operation) is not None for stage in shared):
        return ()
    found = missing(storage, workload.operation)
    return tuple(f"bandwidth of {name}" for name in found) or ("bandwidth of media",)


def unknown(storage: Storage, workload: Workload) -> tuple[str, ...]:
    """Return the stages that nobody gives a figure of, so that what comes out is a bound and no number.

    Of metadata these are servers: they are what carries it out, and a link has no figure of it.
    """
    if isinstance(workload, DataWorkload):
        return missing(storage, workload.operation)
    if not isinstance(workload, MetadataWorkload) or any(stage.whole for stage in storage.topology):
        return ()
    servers = [stage for stage in storage.topology if stage.stage == "server"]
    return tuple(s.name for s in servers if any(s.does(action) is None for action in workload.phases))


def phases(workload: Workload, storage: Storage, nodes: int, processes_per_node: int) -> list[Phase]:
    """Return the measured phases of a workload; ValueError for what `simulated` or `lacking` refuses."""
    if why := simulated(workload):
        raise ValueError(why)
    if lacks := lacking(storage, workload):
        raise ValueError(f"not known: {', '.join(lacks)}")
    over = _Ways(storage, layout(storage.topology, nodes, processes_per_node))
    if isinstance(workload, MetadataWorkload):
        return list(_all_metadata(workload, over))
    assert isinstance(workload, DataWorkload)
    return [_data(workload, over, processes_per_node)]


def _kinds(workload: MetadataWorkload, action: Action) -> Iterator[Kind]:
    if workload.directories and action != "read":
        yield "directory"
    if workload.files:
        yield "file"


@dataclass(frozen=True)
class _Ways:
    """A storage's stages as resources, for the classes of processes that go over them."""

    storage: Storage
    layout: Layout

    def latency(self, direction: Direction) -> float:
        """Return what all stages add to one read or write, in seconds."""
        return sum(stage.adds(direction) or 0.0 for stage in self.storage.topology)

    def capacities(self, of: Mapping[int, tuple[float | None, str]]) -> dict[str, float]:
        """Return the capacity of each class of units; `of`: by stage what one unit does, and what that is."""
        return {
            f"{stage}.{units}.{word}": each * size
            for (stage, units), size in self.layout.sizes.items()
            for each, word in [of.get(stage, (None, ""))]
            if each is not None
        }

    def name(self, resource: str) -> str:
        """Return the words for a resource: its stage, and which figure it is where not the bandwidth."""
        stage, _, word = resource.split(".")
        name = self.storage.topology[int(stage)].name
        return name if word == "bandwidth" else f"{name} ({word})"

    def alone(self, direction: Direction) -> float:
        """Return bytes per second of one process that has all that it may go over to itself."""
        return min(
            (
                one * (stage.units if stage.spread == "stripes" else 1)
                for stage in self.storage.topology
                if (one := stage.one_carries(direction)) is not None
            ),
            default=math.inf,
        )


def _data(w: DataWorkload, over: _Ways, processes_per_node: int) -> Phase:
    stages = over.storage.topology
    amount = w.bytes_per_process(processes_per_node)
    carried = over.capacities({n: (s.one_carries(w.operation), "bandwidth") for n, s in enumerate(stages)})
    # Nothing of use is read ahead in random order.
    alone = waits(w) or (w.operation == "read" and w.pattern == "random")
    begun = (
        over.capacities({n: (s.begins(w.operation), "operations") for n, s in enumerate(stages)})
        if alone
        else {}
    )
    wait = over.latency(w.operation)
    one = wait + w.transfer_size / over.alone(w.operation)
    limit = w.queue_depth * w.transfer_size / one if alone and one > 0 else math.inf
    works = []
    for group in over.layout.groups:
        uses = {r: 1.0 for r in carried if _goes_over(group.units, r)}
        uses |= {r: 1.0 / w.transfer_size for r in begun if _goes_over(group.units, r)}
        works.append(Work(Flows(group.count, uses, limit), amount))
    until = math.inf if w.stonewall is None else w.stonewall
    course = simulate(works, {**carried, **begun}, until)
    counts = [group.count for group in over.layout.groups]
    moved = sum(n * done.moved for n, done in zip(counts, course.done, strict=True))
    if w.stonewall is not None and w.wear_out:  # all go on to what the quickest had done by then
        most = max(done.moved for done in course.done)
        course = simulate([Work(work.flows, most) for work in works], {**carried, **begun})
        moved = most * sum(counts)
    processes = sum(counts)
    seconds = course.end + wait
    each = course.end * processes * w.queue_depth / (moved / w.transfer_size) if moved else 0.0
    return Phase(
        w.operation, moved * w.repeats, amount * processes * w.repeats, seconds * w.repeats, each,
        _bound(course, over, "what each process waits for one operation"),
    )  # fmt: skip


def _all_metadata(w: MetadataWorkload, over: _Ways) -> Iterator[Phase]:
    there: dict[Kind, list[float]] = {}
    for action in w.phases:
        for kind in _kinds(w, action):
            items = there.get(kind, [float(w.items_per_process)] * len(over.layout.groups))
            phase, done = _metadata(w, over, kind, action, items)
            if action == "create":  # a time limit leaves fewer for the phases after it
                there[kind] = done
            yield phase


def _metadata(
    w: MetadataWorkload, over: _Ways, kind: Kind, action: Action, items: Sequence[float]
) -> tuple[Phase, list[float]]:
    """Return a phase, and what each process of a group did; `items`: what there is for it."""
    stages = over.storage.topology
    done_each = over.capacities({n: (s.does(action), "metadata") for n, s in enumerate(stages)})
    size, direction = _content(w, kind, action)
    carried = (
        over.capacities({n: (s.one_carries(direction), "bandwidth") for n, s in enumerate(stages)})
        if size
        else {}
    )
    one = sum(stage.takes(action) or 0.0 for stage in stages)
    limit = 1 / one if one else math.inf
    works = []
    for group, each in zip(over.layout.groups, items, strict=True):
        uses = {r: 1.0 for r in done_each if _goes_over(group.units, r)}
        uses |= {r: float(size) for r in carried if _goes_over(group.units, r)}
        works.append(Work(Flows(group.count, uses, limit), each))
    until = w.stonewall if w.stonewall is not None and action == "create" else math.inf
    course = simulate(works, {**done_each, **carried}, until)
    counts = [group.count for group in over.layout.groups]
    moved = sum(n * done.moved for n, done in zip(counts, course.done, strict=True))
    waited = course.end * sum(counts) / moved if moved else 0.0
    asked = sum(n * each for n, each in zip(counts, items, strict=True))
    phase = Phase(
        f"{kind}-{action}", moved, asked, course.end, waited,
        _bound(course, over, "what each process waits for one operation"),
    )  # fmt: skip
    return phase, [done.moved for done in course.done]


def _content(w: MetadataWorkload, kind: Kind, action: Action) -> tuple[int, Direction]:
    if kind == "file" and action == "create":
        return w.write_bytes, "write"
    return (w.read_bytes if kind == "file" and action == "read" else 0), "read"


def _goes_over(units: Mapping[int, int], resource: str) -> bool:
    stage, unit, _ = resource.split(".")
    return units.get(int(stage)) == int(unit)


def _bound(course: Course, over: _Ways, otherwise: str) -> str:
    name, seconds = max(course.filled.items(), key=lambda item: item[1], default=("", 0.0))
    return over.name(name) if seconds > 0 else otherwise
