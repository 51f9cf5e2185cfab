"""HDF5 programs with phases of computation: checkpoints and repeated reads (paper 002, section IV.A)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from tiercel.quantities import Duration, Size
from tiercel.study.workloads.base import Workload, workload_kinds


@workload_kinds.register("hdf5-checkpoint")
class CheckpointWorkload(Workload):
    """Datasets written to an HDF5 file of each process, step by step, with computation between the steps.

    VPIC-IO is `datasets: 8, steps: 20`.
    """

    operation: Literal["hdf5-checkpoint"]
    steps: int = Field(default=4, ge=1, le=10_000, description="checkpoints written, one after the other")
    datasets: int = Field(default=8, ge=1, le=1000, description="written in each step, in a group of its own")
    dataset_size: Size = Field(default=4 * 1024**2, ge=4, multiple_of=4, description="bytes of a dataset")
    compute: Duration = Field(default=0.0, ge=0, description="computation of all steps together")

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: data, and 1 MiB a process for HDF5's own."""
        return (self.steps * self.datasets * self.dataset_size + 1024**2) * nodes * processes_per_node

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": "file-per-process",
            "pattern": "sequential",
            "transfer_size": self.dataset_size,
            "bytes_per_process": self.steps * self.datasets * self.dataset_size,
            "computation_time": self.compute / self.steps,
        }


@workload_kinds.register("hdf5-stream")
class StreamWorkload(Workload):
    """All samples of one shared HDF5 file read once an epoch by each process, batch by batch."""

    operation: Literal["hdf5-stream"]
    samples: int = Field(default=1024, ge=1, description="in the file")
    sample_size: Size = Field(default=128 * 1024, ge=1, description="bytes of a sample")
    batch: int = Field(default=16, ge=1, description="samples of one read")
    epochs: int = Field(default=4, ge=2, le=1000, description="how often all samples are read")
    pattern: Literal["sequential", "random"] = Field(default="sequential", description="order of the batches")
    compute: Duration = Field(default=0.0, ge=0, description="computation after each batch")

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        """Return the bytes that a run occupies at most: one file, and 1 MiB for HDF5's own."""
        return self.samples * self.sample_size + 1024**2

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {
            "layout": "shared",
            "pattern": self.pattern,
            "transfer_size": self.batch * self.sample_size,
            "bytes_per_process": self.samples * self.sample_size,
            "batch_size": self.batch,
            "format": "hdf5",
            "computation_time": self.compute,
        }
