"""Workloads: what I/O looks like, in words that every engine adapter understands.

The features are those of Table I of the PrismIO paper (paper 003) and of the parameters of the VAST
study (paper 004, section V). Nothing here knows an engine's options.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from tiercel.documents import Document
from tiercel.units import Duration, Size

Access = Literal["WO", "WAW", "WAR", "RO", "RAW", "RAR"]
MetadataPhase = Literal["create", "stat", "read", "rename", "remove"]

#: Reads: what happened to the file before, in the same run. RO reads data that another program start wrote.
_READS = ("RO", "RAW", "RAR")
_WRITES = ("WO", "WAW", "WAR")


class DataWorkload(Document):
    """Reads or writes of file contents."""

    operation: Literal["write", "read"]
    title: str = ""
    api: Literal["posix", "mpiio"] = "posix"
    collective: bool = False
    file_view: bool = False
    preallocate: bool = False
    layout: Literal["file-per-process", "shared"] = "file-per-process"
    unique_directories: bool = False
    pattern: Literal["sequential", "random"] = "sequential"
    transfer_size: Size = Field(default=1024**2, gt=0)
    block_size: Size | None = Field(default=None, gt=0, description="contiguous bytes of one process")
    segments: int | None = Field(default=None, ge=1)
    data_per_process: Size | None = Field(default=None, gt=0)
    data_per_node: Size | None = Field(default=None, gt=0)
    fsync: Literal["none", "phase", "write"] = "none"
    direct: bool = Field(default=False, description="bypass the page cache (O_DIRECT)")
    queue_depth: int = Field(default=1, ge=1, le=4096)
    access: Access | None = Field(default=None, description="what went before; default WO or RO")
    cold: bool | None = Field(default=None, description="evict before the read; default: yes for RO")
    reorder: Literal["none", "node"] | int = Field(
        default="node", description="a process reads what the process this far away wrote"
    )
    verify: bool = False
    stonewall: Duration | None = Field(default=None, gt=0)
    wear_out: bool = False

    @field_validator("reorder")
    @classmethod
    def _not_negative(cls, value: str | int) -> str | int:
        if isinstance(value, int) and value < 0:
            raise ValueError("must be none, node, or a number of processes of zero or more")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> DataWorkload:
        sizes = [k for k in ("segments", "data_per_process", "data_per_node") if getattr(self, k) is not None]
        if len(sizes) != 1:
            raise ValueError(
                "exactly one of segments, data_per_process, data_per_node says how much data "
                f"(given: {', '.join(sizes) or 'none'})"
            )
        block = self.block_size or self.transfer_size
        if block % self.transfer_size:
            raise ValueError("block_size must be a multiple of transfer_size")
        if self.collective and self.api == "posix":
            raise ValueError("collective needs api: mpiio")
        if self.file_view and self.api == "posix":
            raise ValueError("file_view needs api: mpiio")
        if self.preallocate and self.api == "posix":
            raise ValueError("preallocate needs api: mpiio")
        if self.pattern == "random" and (self.collective or self.file_view):
            raise ValueError("pattern: random excludes collective and file_view (as in IOR)")
        if self.queue_depth > 1 and self.api != "posix":
            raise ValueError("queue_depth above 1 needs api: posix")
        if self.access and self.access not in (_READS if self.operation == "read" else _WRITES):
            allowed = ", ".join(_READS if self.operation == "read" else _WRITES)
            raise ValueError(f"access: {self.access} is no {self.operation} access (allowed: {allowed})")
        if self.unique_directories and self.layout == "shared":
            raise ValueError("unique_directories needs layout: file-per-process")
        return self

    @property
    def access_type(self) -> Access:
        return self.access or ("WO" if self.operation == "write" else "RO")

    @property
    def wants_cold(self) -> bool:
        """Whether the page cache must be empty of the data before the measured read."""
        if self.operation == "write":
            return False
        return self.access_type == "RO" if self.cold is None else self.cold

    def bytes_per_process(self, processes_per_node: int) -> int:
        """Return what one process moves: whole blocks, one at least."""
        block = self.block_size or self.transfer_size
        if self.segments is not None:
            return self.segments * block
        wanted = self.data_per_process or (self.data_per_node or 0) // processes_per_node
        return max(1, wanted // block) * block

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run of this workload occupies at most."""
        return self.bytes_per_process(processes_per_node) * processes_per_node * nodes


class MetadataWorkload(Document):
    """Creates, stats, reads, renames and removes of many files and folders."""

    operation: Literal["metadata"]
    title: str = ""
    items_per_process: int = Field(default=1000, ge=1)
    directories: bool = True
    files: bool = True
    unique_directories: bool = False
    write_bytes: Size = 0
    read_bytes: Size = 0
    fsync: bool = False
    phases: list[MetadataPhase] = ["create", "stat", "read", "remove"]
    reorder: Literal["none", "node"] | int = "node"
    stonewall: Duration | None = Field(
        default=None, gt=0, description="stop creating after this; the other phases take what there is"
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

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: contents, and a generous 8 KiB for each inode."""
        kinds = int(self.directories) + int(self.files)
        items = self.items_per_process * nodes * processes_per_node
        return items * (kinds * 8192 + -(-self.write_bytes // 4096) * 4096)


def _kind(content: Any) -> str:
    operation = content.get("operation") if isinstance(content, dict) else getattr(content, "operation", "")
    return "[metadata]" if operation == "metadata" else "[data]"


Workload = Annotated[
    Annotated[DataWorkload, Tag("[data]")] | Annotated[MetadataWorkload, Tag("[metadata]")],
    Discriminator(_kind),
]
