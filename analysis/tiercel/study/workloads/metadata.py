"""Metadata: creates, stats, reads, renames and removes of many files and folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tiercel.columns import COUNT, Column
from tiercel.quantities import Duration, Size
from tiercel.study.workloads.base import FEW, Workload, workload_kinds
from tiercel.study.workloads.features import features

MetadataPhase = Literal["create", "stat", "read", "rename", "remove"]


features.declare(
    Column("items_per_process", COUNT, "", "files (or folders) of one process in metadata experiments"),
    Column("write_bytes", COUNT, "B", "bytes written to each file in metadata experiments"),
)


@workload_kinds.register("metadata")
class MetadataWorkload(Workload):
    """Creates, stats, reads, renames and removes of many files and folders."""

    operation: Literal["metadata"]
    items_per_process: int = Field(default=1000, ge=1, description="files, or folders, of each process")
    directories: bool = Field(default=True, description="work on folders")
    files: bool = Field(default=True, description="work on files")
    unique_directories: bool = Field(default=False, description="a folder for each process")
    write_bytes: Size = Field(default=0, description="written to each file")
    read_bytes: Size = Field(default=0, description="read from each file")
    fsync: bool = Field(default=False, description="sync each file")
    phases: list[MetadataPhase] = Field(
        default=["create", "stat", "read", "remove"], description="in this order"
    )
    reorder: Literal["none", "node"] | int = Field(
        default="node", description="a process works on the items of the one this far away"
    )
    stonewall: Duration | None = Field(
        default=None, gt=0, description="stop creating after this; the other phases take what there is"
    )

    again: Duration | None = Field(
        default=None,
        gt=0,
        description="stat, read and rename go over the items again until they lasted so long (iokernel)",
    )

    @model_validator(mode="after")
    def _consistent(self) -> MetadataWorkload:
        if not (self.directories or self.files):
            raise ValueError("at least one of directories and files must be true")
        if "create" not in self.phases:
            raise ValueError("phases: create is required, the others work on what it made")
        if self.read_bytes > self.write_bytes:
            raise ValueError("read_bytes must not exceed write_bytes")
        return self

    def amount(self, processes_per_node: int) -> int:
        """Return the items of one process."""
        return self.items_per_process

    def least_amount(self, processes_per_node: int) -> int:
        return min(FEW, self.items_per_process)

    def with_amount(self, amount: int, again: float = 0.0) -> MetadataWorkload:
        """Return the workload with so many items for each process."""
        longer = {"again": max(again, self.again or 0.0)} if again else {}
        return self.model_copy(update={"items_per_process": amount, **longer})

    def node_local(self) -> tuple[Workload | None, str]:
        return None, "left out on several nodes: its processes work in one tree, which no two nodes share"

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: contents, and a generous 8 KiB for each inode."""
        kinds = int(self.directories) + int(self.files)
        items = self.items_per_process * nodes * processes_per_node
        return items * (kinds * 8192 + -(-self.write_bytes // 4096) * 4096)

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            name: getattr(self, name) for name in ("unique_directories", "items_per_process", "write_bytes")
        }
