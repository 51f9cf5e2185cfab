"""What a workload is to the rest of the project: what I/O looks like, in words that adapters understand.

There are several kinds (data, metadata, ...), told apart by their key `operation`. To add one, write a file
with a class under ``@workload_kinds.register("operation", ...)`` in this folder, or name it in
a subject (`tiercel.subjects`). Nothing here knows an engine's options.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import Field

from tiercel.documents import Document
from tiercel.subjects import fill


class Workload(Document):
    """Base of the kinds. A kind adds its own keys, and narrows `operation` to its operations."""

    operation: str
    title: str = Field(default="", description="for figures and tables; default: the name")

    @abstractmethod
    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run of this workload occupies at most on the storage under test."""

    @abstractmethod
    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        """Return the workload's columns in the tables (names: ``results.schema.FEATURES``)."""

    def waiting_nodes(self, nodes: int) -> int:
        """Return how many nodes of a job wait while so many do the measured work."""
        return 0

    def without_others(self) -> Workload:
        """Return the workload as it is done where no other node can take part."""
        return self

    def node_local(self) -> tuple[Workload | None, str]:
        """Return the workload as it goes on several nodes that each have a storage of their own (None: not at
        all), and what differs, in words.

        Paper 004 (section V) measured node-local NVMe by copying the data to the reading nodes first. Here
        every process reads what it wrote itself, after its node evicted it from the page cache: as cold,
        without the copy.
        """
        return self, ""

    def existing_data(self) -> str | None:
        """Return the folder on the storage with data that is there already; None: each run makes its own."""
        return None

    def too_small(self, nodes: int, processes_per_node: int) -> str | None:
        """Return why there is nothing to do for each of the processes that share the work, or None."""
        return None

    def amount(self, processes_per_node: int) -> int | None:
        """Return how much one process does (blocks, items), where that may follow the storage's speed.

        None: how much there is to do is part of what the workload is.
        """
        return None

    def least_amount(self, processes_per_node: int) -> int:
        """Return the amount below which a number would mean something else, or next to nothing."""
        raise NotImplementedError(f"{type(self).__name__} has no amount")

    def with_amount(self, amount: int, again: float = 0.0) -> Workload:
        """Return the same workload with another amount for each process.

        `again`: seconds for which operations that leave things as they were are done over and over.
        """
        raise NotImplementedError(f"{type(self).__name__} has no amount")


#: Blocks or items of a process, fewer of which are no workload (unless the study asks for fewer).
FEW = 8

W = TypeVar("W", bound=type[Workload])


class WorkloadKinds:
    """The kinds, by the operations that a study file names."""

    def __init__(self) -> None:
        self._kinds: dict[str, type[Workload]] = {}
        self._filled = False

    def fill(self) -> None:
        """Import the kinds that subjects bring; of itself, when the kinds are first asked for."""
        if not self._filled:
            self._filled = True
            fill("workloads", __name__)

    def register(self, *operations: str) -> Callable[[W], W]:
        """Return a decorator that files a kind under its operations."""

        def file(kind: W) -> W:
            for operation in operations:
                if operation in self._kinds:
                    raise ValueError(f"operation {operation} belongs to two workload kinds")
                self._kinds[operation] = kind
            return kind

        return file

    def of(self, operation: object) -> type[Workload] | None:
        """Return the kind that does an operation, None where there is none."""
        self.fill()
        return self._kinds.get(operation) if isinstance(operation, str) else None

    def operations(self) -> list[str]:
        self.fill()
        return list(self._kinds)

    def __iter__(self) -> Iterator[type[Workload]]:
        self.fill()
        return iter(dict.fromkeys(self._kinds.values()))


workload_kinds = WorkloadKinds()
