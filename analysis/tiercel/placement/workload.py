"""Replay: a traced program's I/O again, on another system and without the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from tiercel.quantities import Size
from tiercel.study.workloads.base import Workload, workload_kinds


@workload_kinds.register("replay")
class ReplayWorkload(Workload):
    """The reads, writes, opens, syncs... of a trace, in its order, sizes, offsets and concurrency."""

    operation: Literal["replay"]
    trace: str = Field(min_length=1, description="file or folder; a relative one starts at the project")
    think_time: Literal["none", "recorded"] = Field(
        default="none", description="computation between the calls: left out, or as long as recorded"
    )
    largest: Size = Field(default=1024**3, gt=0, description="refuse traces whose files need more than this")

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        return self.largest

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {}
