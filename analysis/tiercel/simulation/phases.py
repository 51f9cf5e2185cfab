"""What a workload asks of a topology, phase by phase, and how long that takes.

The model, and what it leaves out: docs/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tiercel.ceilings.ceiling import Figure, missing, on_the_way, words_of
from tiercel.ceilings.demand import reaching
from tiercel.ceilings.metadata import Kind, content, phases_of, unknown_servers
from tiercel.ceilings.study import demand_of, waits
from tiercel.simulation.events import Course, Work, simulate
from tiercel.simulation.fair import Flows
from tiercel.simulation.layout import Group, Layout, layout
from tiercel.site.model import Storage
from tiercel.site.topology import Action, Direction, Stage
from tiercel.study.workloads import DataWorkload, MetadataWorkload, Workload

#: What bounds a process that is alone: what it waits for each operation, or what moving its bytes takes.
_WAITS: tuple[str, Figure] = ("what each process waits for one operation", "latency")
_MOVES: tuple[str, Figure] = ("one operation at a time of each process", "bandwidth")


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
    figure: Figure
    """Which of its figures that is."""


def simulated(workload: Workload) -> str | None:
    """Return why a workload cannot be simulated on any topology, or None when it can."""
    if isinstance(workload, DataWorkload | MetadataWorkload):
        return None
    return f"{workload.operation} is not simulated: only data and metadata are"


def lacking(storage: Storage, workload: Workload, nodes: int, processes_per_node: int) -> tuple[str, ...]:
    """Return the figures without which nothing is known of a workload, by the words of the site file.

    Something that all nodes share must say what it carries: with the links of the nodes alone a storage
    would grow with them for ever. On node-local storage, and of what each node's own memory serves or takes,
    anything will do. What the page cache may serve needs a figure of that.
    """
    if isinstance(workload, MetadataWorkload):
        shared = [stage for stage in storage.topology if _shared(stage, storage) and stage.carries_metadata]
        actions = [a for a in workload.phases if not any(stage.does(a) for stage in shared)]
        return tuple(f"metadata operations per second ({action})" for action in actions)
    demand = demand_of(workload, nodes, processes_per_node)
    assert demand is not None and demand.reuse is not None
    stages = on_the_way(storage, demand.operation)
    # Files in memory lie in the page cache, and nowhere else.
    remembered = storage.medium == "memory" or any(
        s.stage == "client" and s.keeps("read") is not None for s in stages
    )
    if demand.operation == "read" and demand.reuse.memory and not remembered:
        return ("cache of client (the page cache may serve these reads)",)
    parts = reaching(stages, demand)
    carry = [(stage, part) for stage, part in zip(stages, parts, strict=False)
             if part > 0 and stage.one_carries(demand.operation) is not None]  # fmt: skip
    on_the_node = parts[-1] <= 0 and not any(
        part > 0 and _shared(stage, storage) for stage, part in zip(stages, parts, strict=False)
    )
    if any(on_the_node or _shared(stage, storage) for stage, _ in carry):
        return ()
    found = missing(storage, demand)
    return tuple(f"bandwidth of {name}" for name in found) or ("bandwidth of media",)


def _shared(stage: Stage, storage: Storage) -> bool:
    return storage.medium != "network" or not stage.per_node


def unknown(storage: Storage, workload: Workload, nodes: int, processes_per_node: int) -> tuple[str, ...]:
    """Return the stages that nobody gives a figure of, so that what comes out is a bound and no number.

    Where each operation is waited for, somebody must say how long: a process alone would else do as many as
    the servers can.
    """
    if isinstance(workload, MetadataWorkload):
        found = [name for action in workload.phases for name in unknown_servers(storage, action)]
        quick = [a for a in workload.phases if not any(stage.takes(a) for stage in storage.topology)]
        return (*dict.fromkeys(found), *(f"latency ({action})" for action in quick))
    demand = demand_of(workload, nodes, processes_per_node)
    if demand is None:
        return ()
    way, under_way = on_the_way(storage, demand.operation), demand.outstanding
    waited_for = any(stage.adds(demand.operation) for stage in way)
    # Fewer operations under way than units keep some of these idle, for as long as an operation takes.
    idle = [
        f"latency of {words_of(stage)}" for stage in way
        if under_way and under_way < stage.count(nodes, processes_per_node)
        and stage.begins(demand.operation, demand.random) and not stage.adds(demand.operation)
    ]  # fmt: skip
    lacks = ["latency"] if under_way and not waited_for else idle
    return (*missing(storage, demand), *lacks)


def phases(workload: Workload, storage: Storage, nodes: int, processes_per_node: int) -> list[Phase]:
    """Return the measured phases of a workload; ValueError for what `simulated` or `lacking` refuses."""
    if why := simulated(workload):
        raise ValueError(why)
    if lacks := lacking(storage, workload, nodes, processes_per_node):
        raise ValueError(f"not known: {', '.join(lacks)}")
    over = _Ways(storage, layout(storage.topology, nodes, processes_per_node))
    if isinstance(workload, MetadataWorkload):
        return list(_all_metadata(workload, over))
    assert isinstance(workload, DataWorkload)
    return [_data(workload, over, nodes, processes_per_node)]


@dataclass(frozen=True)
class _Ways:
    """A storage's stages as resources, for the classes of processes that go over them."""

    storage: Storage
    layout: Layout

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


def _data(w: DataWorkload, over: _Ways, nodes: int, processes_per_node: int) -> Phase:
    demand = demand_of(w, nodes, processes_per_node)
    assert demand is not None
    amount = w.bytes_per_process(processes_per_node)
    ways = on_the_way(over.storage, w.operation)
    #: By place in the topology: the stages that bytes reach, and which part of them.
    reached = {
        n: (stage, part)
        for n, stage in enumerate(over.storage.topology)
        for way, part in zip(ways, reaching(ways, demand), strict=False)
        if way is stage and part > 0
    }
    carried = over.capacities({n: (s.one_carries(w.operation), "bandwidth") for n, (s, _) in reached.items()})
    begun: dict[str, float] = {}
    wait, waited_for = sum((s.adds(w.operation) or 0.0) * part for s, part in reached.values()), waits(w)
    # No more operations of a process are under way than it has.
    under_way = min(w.queue_depth, amount / w.transfer_size)
    if waited_for:
        begun = over.capacities(
            {n: (s.begins(w.operation, demand.random), "operations") for n, (s, _) in reached.items()}
        )
    works, alone = [], _WAITS
    for group in over.layout.groups:
        limit = math.inf
        if waited_for:
            passes = w.transfer_size / _alone(group, reached, over.layout, w.operation)
            limit = under_way * w.transfer_size / one if (one := wait + passes) > 0 else math.inf
            alone = _WAITS if wait >= passes else _MOVES
        uses: dict[str, float] = {}
        for n, (_, part) in reached.items():
            uses |= dict.fromkeys(_way(group.units, n, "bandwidth", carried), part)
            uses |= dict.fromkeys(_way(group.units, n, "operations", begun), part / w.transfer_size)
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
    # Who does not wait for each operation waits once.
    seconds = course.end + (0.0 if waited_for else wait)
    each = course.end * processes * under_way / (moved / w.transfer_size) if moved else 0.0
    return Phase(
        w.operation, moved * w.repeats, amount * processes * w.repeats, seconds * w.repeats, each,
        *_bound(course, over, alone),
    )  # fmt: skip


def _alone(
    group: Group, reached: Mapping[int, tuple[Stage, float]], of: Layout, direction: Direction
) -> float:
    """Return bytes per second of one process of a group that has all that it may go over to itself."""
    return min(
        (
            one * of.each[n, group.units[n]] / part
            for n, (stage, part) in reached.items()
            if (one := stage.one_carries(direction)) is not None
        ),
        default=math.inf,
    )


def _all_metadata(w: MetadataWorkload, over: _Ways) -> Iterator[Phase]:
    there: dict[Kind, list[float]] = {}
    for kind, action in phases_of(w):
        items = there.get(kind, [float(w.items_per_process)] * len(over.layout.groups))
        phase, done = _metadata(w, over, kind, action, items)
        if action == "create":  # a time limit leaves fewer for the phases after it
            there[kind] = done
        yield phase


def _metadata(
    w: MetadataWorkload, over: _Ways, kind: Kind, action: Action, items: Sequence[float]
) -> tuple[Phase, list[float]]:
    """Return a phase, and what each process of a group did; `items`: what there is for it."""
    stages = dict(enumerate(over.storage.topology))
    on_it = {n: stage for n, stage in stages.items() if stage.carries_metadata}
    done_each = over.capacities({n: (s.does(action), "metadata") for n, s in on_it.items()})
    size, direction = content(w, kind, action)
    of_data = {n: stage for n, stage in stages.items() if size and stage.carries_data(direction)}
    carried = over.capacities({n: (s.one_carries(direction), "bandwidth") for n, s in of_data.items()})
    one = sum(stage.takes(action) or 0.0 for stage in on_it.values())
    limit = 1 / one if one else math.inf
    works = []
    for group, each in zip(over.layout.groups, items, strict=True):
        uses: dict[str, float] = {}
        for n in stages:
            uses |= dict.fromkeys(_way(group.units, n, "metadata", done_each), 1.0)
            uses |= dict.fromkeys(_way(group.units, n, "bandwidth", carried), float(size))
        works.append(Work(Flows(group.count, uses, limit), each))
    until = w.stonewall if w.stonewall is not None and action == "create" else math.inf
    course = simulate(works, {**done_each, **carried}, until)
    counts = [group.count for group in over.layout.groups]
    moved = sum(n * done.moved for n, done in zip(counts, course.done, strict=True))
    waited = course.end * sum(counts) / moved if moved else 0.0
    asked = sum(n * each for n, each in zip(counts, items, strict=True))
    phase = Phase(
        f"{kind}-{action}", moved, asked, course.end, waited,
        *_bound(course, over, _WAITS),
    )  # fmt: skip
    return phase, [done.moved for done in course.done]


def _way(units: Mapping[int, int], stage: int, word: str, capacities: Mapping[str, float]) -> list[str]:
    """Return the resource of a stage that processes go over which use these units, where it is one."""
    name = f"{stage}.{units[stage]}.{word}"
    return [name] if name in capacities else []


def _bound(course: Course, over: _Ways, otherwise: tuple[str, Figure]) -> tuple[str, Figure]:
    """Return what was full for the longest time, and which figure that is."""
    name, seconds = max(course.filled.items(), key=lambda item: item[1], default=("", 0.0))
    if not seconds:
        return otherwise
    figure: Figure = name.rpartition(".")[2]  # type: ignore[assignment]
    return over.name(name), figure
