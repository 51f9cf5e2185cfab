"""HDF5 programs with phases of computation: checkpoints and repeated reads (paper 002, section IV.A)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from tiercel.quantities import Duration, Size
from tiercel.study.workloads.base import Workload, workload_kinds

_NO_FILE = "left out on several nodes: they share no file there"


@workload_kinds.register("hdf5-checkpoint")
class CheckpointWorkload(Workload):
    """Datasets written to an HDF5 file, step by step, with computation between the steps.

    Each process has a file of its own, or all share one, in whose datasets each has a part. VPIC-IO is
    `datasets: 8, steps: 20, layout: shared`.
    """

    operation: Literal["hdf5-checkpoint"]
    layout: Literal["file-per-process", "shared"] = Field(
        default="file-per-process", description="a file for each process, or one for all (needs MPI)"
    )
    collective: bool = Field(default=False, description="all processes write a dataset together (shared)")
    steps: int = Field(default=4, ge=1, le=10_000, description="checkpoints written, one after the other")
    datasets: int = Field(default=8, ge=1, le=1000, description="written in each step, in a group of its own")
    dataset_size: Size = Field(
        default=4 * 1024**2, ge=4, multiple_of=4, description="bytes of each process in a dataset"
    )
    compute: Duration = Field(default=0.0, ge=0, description="computation of all steps together")

    @model_validator(mode="after")
    def _together(self) -> CheckpointWorkload:
        if self.collective and self.layout != "shared":
            raise ValueError("collective needs layout: shared")
        return self

    @property
    def needs_mpi(self) -> bool:
        """Whether forked processes cannot do it."""
        return self.layout == "shared"

    def node_local(self) -> tuple[Workload | None, str]:
        return (None, _NO_FILE) if self.layout == "shared" else (self, "")

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: data, and 1 MiB a process for HDF5's own."""
        return (self.steps * self.datasets * self.dataset_size + 1024**2) * nodes * processes_per_node

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": self.layout,
            "collective": self.collective,
            "pattern": "sequential",
            "transfer_size": self.dataset_size,
            "bytes_per_process": self.steps * self.datasets * self.dataset_size,
            "computation_time": self.compute / self.steps,
        }


@workload_kinds.register("hdf5-stream")
class StreamWorkload(Workload):
    """All samples of one HDF5 file read once an epoch, batch by batch: by each process, or by all together.

    Together and in order, each process reads the same part in every epoch; shuffled, another one in each
    (paper 002, section IV.A.2).
    """

    operation: Literal["hdf5-stream"]
    samples: int = Field(default=1024, ge=1, description="in the file")
    sample_size: Size = Field(default=128 * 1024, ge=1, description="bytes of a sample")
    batch: int = Field(default=16, ge=1, description="samples of one read")
    epochs: int = Field(default=4, ge=2, le=1000, description="how often all samples are read")
    divided: bool = Field(
        default=False,
        description="all processes together read all samples once an epoch (needs MPI); else each does",
    )
    pattern: Literal["sequential", "random"] = Field(default="sequential", description="order of the batches")
    compute: Duration = Field(default=0.0, ge=0, description="computation after each batch")

    @property
    def needs_mpi(self) -> bool:
        """Whether forked processes cannot do it."""
        return self.divided

    @property
    def batches(self) -> int:
        return -(-self.samples // self.batch)

    def too_small(self, nodes: int, processes_per_node: int) -> str | None:
        processes = nodes * processes_per_node
        if self.divided and self.batches < processes:
            return f"{self.batches} batches are fewer than {processes} processes"
        return None

    def node_local(self) -> tuple[Workload | None, str]:
        return (None, _NO_FILE) if self.divided else (self, "")

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: one file, and 1 MiB for HDF5's own."""
        return self.samples * self.sample_size + 1024**2

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": "shared",
            "pattern": self.pattern,
            "transfer_size": self.batch * self.sample_size,
            "bytes_per_process": self.samples
            * self.sample_size
            // (nodes * processes_per_node if self.divided else 1),
            "batch_size": self.batch,
            "format": "hdf5",
            "computation_time": self.compute,
        }
