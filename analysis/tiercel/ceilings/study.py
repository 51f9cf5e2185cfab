"""The ceilings of a study: one for each workload, storage and scale, before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tiercel.ceilings.ceiling import Ceiling, Demand, ceiling_for, missing
from tiercel.site.model import Site, Storage
from tiercel.study.plan import Configuration
from tiercel.study.workloads import Workload
from tiercel.study.workloads.data import DataWorkload


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
    """Stages whose bandwidth is not known: the true ceiling may be lower."""
    why: str = ""
    """Why there can be no ceiling."""

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What it is a ceiling of."""
        return self.experiment, self.workload, self.storage, self.nodes, self.processes

    def plain(self) -> dict[str, Any]:
        """Return the row for JSON; bandwidths in bytes per second."""
        found = self.ceiling
        after = found.next if found else None
        return {
            "experiment": self.experiment,
            "workload": self.workload,
            "operation": self.operation,
            "storage": self.storage,
            "nodes": self.nodes,
            "processes_per_node": self.processes,
            "ceiling": found.bandwidth if found else None,
            "stage": found.stage.stage if found else None,
            "label": found.stage.name if found else None,
            "figure": found.limits[0].figure if found else None,
            "next_ceiling": after.bandwidth if after else None,
            "next_stage": after.stage.stage if after else None,
            "next_label": after.stage.name if after else None,
            "missing": list(self.missing),
            "why": self.why,
        }


def rows_of(configurations: Iterable[Configuration], site: Site) -> list[Row]:
    """Return a row for each workload, storage of `site` and scale; engines and layers make no difference.

    The storages are those of `site`, also where the configurations were made for another topology.
    """
    found: dict[tuple[str, str, str, int, int], Row] = {}
    for c in configurations:
        row = _row(c, site.storages[c.stack.name])
        found.setdefault(row.key, row)
    return list(found.values())


def demand_of(workload: Workload, nodes: int, processes: int) -> Demand | None:
    """Return what reads or writes with so many processes on each node ask; None for other workloads."""
    if not isinstance(workload, DataWorkload):
        return None
    if not waits(workload):
        return Demand(workload.operation, nodes)
    return Demand(workload.operation, nodes, workload.transfer_size, nodes * processes * workload.queue_depth)


def waits(workload: DataWorkload) -> bool:
    """Return whether a process waits for each of its operations, and each reaches the storage by itself.

    Else the page cache reads ahead, writes later, and makes few operations of many.
    """
    return workload.direct or (workload.operation == "write" and workload.fsync == "write")


def _row(c: Configuration, storage: Storage) -> Row:
    demand = demand_of(c.workload, c.nodes, c.processes_per_node)
    ceiling = ceiling_for(storage, demand) if demand else None
    lacking = missing(storage, demand.operation) if demand else ()
    why = "" if demand else f"{c.workload.operation}: only reads and writes have a ceiling"
    return Row(
        c.experiment, c.name, c.workload.operation, c.stack.name, c.nodes, c.processes_per_node,
        ceiling, lacking, why,
    )  # fmt: skip
