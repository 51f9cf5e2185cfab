from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from tiercel.columns import COUNT, Column
from tiercel.study.workloads.base import Workload, workload_kinds
from tiercel.study.workloads.features import features

features.declare(Column("chain", COUNT, "", "symbolic links that a name leads through"))


@workload_kinds.register("links")
class LinksWorkload(Workload):
    """Files opened by names that lead through a chain of symbolic links."""

    operation: Literal["links"]
    chain: int = Field(default=8, ge=1, le=40)
    names: int = Field(default=64, ge=1)

    def footprint(self, nodes: int, processes_per_node: int) -> int:
        return (self.chain + 1) * self.names * 4096

    def features(self, nodes: int, processes_per_node: int) -> Mapping[str, Any]:
        return {"chain": self.chain}
