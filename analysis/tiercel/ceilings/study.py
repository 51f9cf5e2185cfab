"""The ceilings of a study: one for each workload, storage and scale, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tiercel.ceilings.ceiling import Ceiling, ceiling_for, missing
from tiercel.ceilings.demand import Demand, Reuse
from tiercel.ceilings.metadata import metadata_ceiling, phases_of, unknown_servers
from tiercel.site.model import Site
from tiercel.site.topology import Direction
from tiercel.study.expand import Capabilities, expand
from tiercel.study.model import Study
from tiercel.study.plan import Configuration
from tiercel.study.workloads import DataWorkload, MetadataWorkload, Workload


@dataclass(frozen=True)
class Row:
    """What bounds one workload at one scale on one storage."""

    experiment: str
    workload: str
    operation: str
    storage: str
    nodes: int
    processes: int
    """On a node."""
    ceiling: Ceiling | None
    """None: no stage has a figure, or `why`."""
    missing: tuple[str, ...]
    """Stages whose figure is not known: the true ceiling may be lower."""
    why: str = ""
    """Why there can be no ceiling."""
    of_metadata: bool = False
    """Of operations per second, not of bytes."""

    @property
    def key(self) -> tuple[str, str, str, str, int, int]:
        """What it is a ceiling of."""
        return self.experiment, self.workload, self.operation, self.storage, self.nodes, self.processes

    def plain(self) -> dict[str, Any]:
        """Return the row for JSON; ceilings in `unit`."""
        found = self.ceiling
        after = found.next if found else None
        return {
            "experiment": self.experiment,
            "workload": self.workload,
            "operation": self.operation,
            "storage": self.storage,
            "nodes": self.nodes,
            "processes_per_node": self.processes,
            "unit": "1/s" if self.of_metadata else "B/s",
            "ceiling": found.rate if found else None,
            "stage": found.stage.stage if found else None,
            "label": found.stage.name if found else None,
            "figure": found.limits[0].figure if found else None,
            "next_ceiling": after.rate if after else None,
            "next_stage": after.stage.stage if after else None,
            "next_label": after.stage.name if after else None,
            "next_figure": after.figure if after else None,
            "missing": list(self.missing),
            "why": self.why,
        }


def configurations_of(site: Site, study: Study) -> list[Configuration]:
    """Return what a study would run on a site if all that it needs were installed, which nobody asks here.

    UserError for a scale or a storage that the site does not have.
    """
    experiments = {name: e.model_copy(update={"engines": []}) for name, e in study.experiments.items()}
    layers = {choice.layer: "" for choice in study.layer_choices()}
    any_engine = study.model_copy(update={"experiments": experiments})
    return expand(any_engine, site, Capabilities("any", {"any": ""}, layers))[0]


def rows_of(configurations: Iterable[Configuration], site: Site) -> list[Row]:
    """Return a row for each workload, storage of `site` and scale; engines and layers make no difference.

    The storages are those of `site`, also where the configurations were made for another topology.
    """
    found: dict[tuple[str, str, str, str, int, int], Row] = {}
    for c in configurations:
        for row in _rows(c, site):
            found.setdefault(row.key, row)
    return list(found.values())


def demand_of(workload: Workload, nodes: int, processes: int) -> Demand | None:
    """Return what reads or writes with so many processes on each node ask; None for other workloads."""
    if not isinstance(workload, DataWorkload):
        return None
    reuse, random = reuse_of(workload, nodes, processes), workload.pattern == "random"
    if not waits(workload):
        return Demand(workload.operation, nodes, processes=processes, reuse=reuse)
    return waiting(
        workload.operation, nodes, processes, workload.transfer_size, workload.queue_depth, random, reuse
    )


def waiting(
    operation: Direction, nodes: int, processes: int, transfer_size: int, queue_depth: int,
    random: bool = False, reuse: Reuse | None = None,
) -> Demand:  # fmt: skip
    """Return what processes ask that wait for each of their operations."""
    under_way = nodes * processes * queue_depth
    return Demand(operation, nodes, transfer_size, under_way, processes, random, reuse)


def reuse_of(workload: DataWorkload, nodes: int, processes: int) -> Reuse:
    """Return what of a workload's bytes caches may serve or take."""
    each = workload.bytes_per_process(processes) * processes
    random = workload.pattern == "random"
    if workload.operation == "write":
        return Reuse(each * workload.repeats, random, not workload.direct and workload.fsync == "none")
    own = nodes == 1 or workload.reorder in ("none", 0)
    return Reuse(each, random, own and not workload.direct and not workload.wants_cold)


def waits(workload: DataWorkload) -> bool:
    """Return whether a process waits for each of its operations, and each reaches the storage by itself.

    Else the page cache reads ahead, writes later, and makes few operations of many.
    """
    return are_waited_for(workload.operation, workload.direct, workload.fsync, workload.pattern)


def are_waited_for(operation: str, direct: bool, fsync: str, pattern: str) -> bool:
    """Return whether operations of this kind are waited for, one by one.

    Nothing of use is read ahead in random order.
    """
    return direct or (fsync == "write" if operation == "write" else pattern == "random")


def _rows(c: Configuration, site: Site) -> Iterator[Row]:
    storage, scale = site.storages[c.stack.name], (c.nodes, c.processes_per_node)
    w = c.workload
    if isinstance(w, MetadataWorkload):
        for kind, action in phases_of(w):
            ceiling = metadata_ceiling(w, kind, action, storage, *scale)
            lacking = unknown_servers(storage, action)
            yield Row(c.experiment, c.name, f"{kind}-{action}", c.stack.name, *scale, ceiling, lacking,
                      of_metadata=True)  # fmt: skip
        return
    demand = demand_of(w, *scale)
    if demand is None:
        why = f"{w.operation}: only reads, writes and metadata have a ceiling"
        yield Row(c.experiment, c.name, w.operation, c.stack.name, *scale, None, (), why)
        return
    yield Row(c.experiment, c.name, w.operation, c.stack.name, *scale, ceiling_for(storage, demand),
              missing(storage, demand))  # fmt: skip
