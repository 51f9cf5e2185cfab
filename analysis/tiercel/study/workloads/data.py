"""Data: reads or writes of file contents.

The features are those of Table I of the PrismIO paper (paper 003) and of the parameters of the VAST
study (paper 004, section V).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from tiercel.quantities import Duration, Size
from tiercel.study.workloads.base import FEW, Workload, workload_kinds

Access = Literal["WO", "WAW", "WAR", "RO", "RAW", "RAR"]

#: Reads: what happened to the file before, in the same run. RO reads data that another program start wrote.
_READS = ("RO", "RAW", "RAR")
_WRITES = ("WO", "WAW", "WAR")


@workload_kinds.register("write", "read")
class DataWorkload(Workload):
    """Reads or writes of file contents."""

    operation: Literal["write", "read"]
    api: Literal["posix", "mpiio", "hdf5"] = Field(
        default="posix", description="calls of POSIX, of MPI-IO, or of HDF5"
    )
    collective: bool = Field(default=False, description="collective calls of MPI-IO or HDF5")
    file_view: bool = Field(default=False, description="a file view says where the data goes")
    preallocate: bool = Field(default=False, description="make room before writing")
    layout: Literal["file-per-process", "shared"] = Field(
        default="file-per-process", description="a file for each process, or one for all"
    )
    unique_directories: bool = Field(default=False, description="a folder for each process")
    pattern: Literal["sequential", "random"] = Field(
        default="sequential", description="order of the accesses"
    )
    transfer_size: Size = Field(default=1024**2, gt=0, description="bytes of one call")
    block_size: Size | None = Field(default=None, gt=0, description="contiguous bytes of one process")
    segments: int | None = Field(default=None, ge=1, description="blocks of each process")
    data_per_process: Size | None = Field(default=None, gt=0, description="bytes of each process")
    data_per_node: Size | None = Field(default=None, gt=0, description="bytes of each node")
    fsync: Literal["none", "phase", "write"] = Field(
        default="none", description="never, once after writing, or after every write"
    )
    direct: bool = Field(default=False, description="bypass the page cache (O_DIRECT)")
    queue_depth: int = Field(default=1, ge=1, le=4096, description="operations in flight (io_uring)")
    access: Access | None = Field(default=None, description="what went before; default WO or RO")
    cold: bool | None = Field(default=None, description="evict before the read; default: yes for RO")
    rest: Duration | None = Field(
        default=None, gt=0, description="of a cold read: nobody touches the data for so long before"
    )
    reorder: Literal["none", "node"] | int = Field(
        default="node", description="a process reads what the process this far away wrote"
    )
    another_client: bool | None = Field(
        default=None,
        description="of a cold read on one node: another node wrote the data, and waits (a job of two nodes)",
    )
    repeats: int = Field(
        default=1, ge=1, le=1000, description="all phases again, in the same program start, on a new file"
    )
    verify: bool = Field(default=False, description="check the data that is read")
    compressibility: float | None = Field(
        default=None, ge=0, le=1, description="share of the data that compression can remove; default: none"
    )
    dedup: float | None = Field(
        default=None, ge=0, le=1, description="share of the blocks of 4 KiB that repeat others; default: none"
    )
    refill: bool | None = Field(
        default=None,
        description="make every byte anew for each write, for storage that stores similar blocks once; takes "
        "processor time",
    )
    stonewall: Duration | None = Field(default=None, gt=0, description="time limit of a phase")
    wear_out: bool = Field(
        default=False, description="after the time limit all processes reach what the fastest did"
    )

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
            raise ValueError("collective needs api: mpiio or hdf5")
        for key in ("file_view", "preallocate"):
            if getattr(self, key) and self.api != "mpiio":
                raise ValueError(f"{key} needs api: mpiio")
        if self.pattern == "random" and (self.collective or self.file_view):
            raise ValueError("pattern: random excludes collective and file_view (as in IOR)")
        if self.repeats > 1 and self.stonewall is not None:
            raise ValueError("repeats above 1 excludes stonewall")
        if self.queue_depth > 1 and self.api != "posix":
            raise ValueError("queue_depth above 1 needs api: posix")
        if self.access and self.access not in (_READS if self.operation == "read" else _WRITES):
            allowed = ", ".join(_READS if self.operation == "read" else _WRITES)
            raise ValueError(f"access: {self.access} is no {self.operation} access (allowed: {allowed})")
        if self.verify and (self.compressibility or self.dedup):
            raise ValueError("verify excludes compressibility and dedup: checked data have neither")
        if self.unique_directories and self.layout == "shared":
            raise ValueError("unique_directories needs layout: file-per-process")
        return self

    @model_validator(mode="after")
    def _cold_reads(self) -> DataWorkload:
        from_storage = self.operation == "read" and (self.cold is not False or self.direct)
        if self.rest is not None and not (from_storage and self.access_type == "RO"):
            raise ValueError("rest is of a cold read of what another program start wrote (access: RO)")
        if self.rest is not None and self.repeats > 1:
            raise ValueError("rest excludes repeats: only the first would read what has rested")
        if self.another_client and not (self.operation == "read" and self.access_type == "RO"):
            raise ValueError("another_client is of a read of what another program start wrote (access: RO)")
        return self

    @property
    def needs_mpi(self) -> bool:
        """Whether forked processes cannot do it: a file of one process is HDF5 without MPI too."""
        return self.api == "mpiio" or (self.api == "hdf5" and (self.collective or self.layout == "shared"))

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

    def amount(self, processes_per_node: int) -> int:
        """Return the blocks of one process."""
        return self.bytes_per_process(processes_per_node) // (self.block_size or self.transfer_size)

    @property
    def size_matters(self) -> bool:
        """Whether a number hangs on the data being larger than the page cache.

        What is synced before the clock stops, evicted before it is read, or never goes through the cache
        means the same at any size.
        """
        if self.direct:
            return False
        return self.fsync == "none" if self.operation == "write" else not self.wants_cold

    def least_amount(self, processes_per_node: int) -> int:
        """Return the least blocks: what the study says where the size is what makes the number honest."""
        written = self.amount(processes_per_node)
        return written if self.size_matters else min(FEW, written)

    def with_amount(self, amount: int, again: float = 0.0) -> DataWorkload:
        """Return the workload with so many blocks for each process."""
        return self.model_copy(update={"segments": amount, "data_per_process": None, "data_per_node": None})

    def waiting_nodes(self, nodes: int) -> int:
        # On several nodes readers are moved away from writers (reorder), and nobody waits.
        return int(bool(self.another_client) and nodes == 1)

    def without_others(self) -> Workload:
        return self.model_copy(update={"another_client": None}) if self.another_client else self

    def node_local(self) -> tuple[Workload | None, str]:
        if self.layout == "shared":
            return None, "left out on several nodes: they share no file there"
        if self.reorder != "none" and self.operation == "read":
            note = "on several nodes every process reads its own file, evicted before (reorder: none)"
            return self.model_copy(update={"reorder": "none"}), note
        return self, ""

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run of this workload occupies at most."""
        return self.bytes_per_process(processes_per_node) * processes_per_node * nodes

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        same = (
            "api", "collective", "file_view", "preallocate", "layout", "unique_directories", "pattern",
            "transfer_size", "fsync", "direct", "queue_depth", "compressibility", "dedup", "refill",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in same},
            "bytes_per_process": self.bytes_per_process(processes_per_node),
        }
