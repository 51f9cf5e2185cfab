"""The way from a program to the media as a chain of stages, each with what it can carry at most.

Source of the stages: paper 004, section IV.B and figure 1, which explains its results with them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Rate

StageKind = Literal["client", "connection", "gateway", "server", "fabric", "media"]
Direction = Literal["read", "write"]


class Stage(Document):
    """One stage. Its figures are of one unit; a stage of one node grows with the number of nodes.

    A stage without figures is one that is there and of which nobody says what it carries: a ceiling names it
    as what is missing.
    """

    stage: StageKind = Field(description="its kind")
    label: str = Field(default="", description="its name in sentences")
    bandwidth: Rate | None = Field(default=None, gt=0, description="of one unit, reads and writes alike")
    read_bandwidth: Rate | None = Field(default=None, gt=0, description="of one unit, reads")
    write_bandwidth: Rate | None = Field(default=None, gt=0, description="of one unit, writes")
    operations: float | None = Field(default=None, gt=0, description="per second, of one unit")
    latency: Duration | None = Field(default=None, gt=0, description="what it adds to one operation")
    units: int = Field(default=1, ge=1, description="how many there are (in a node, or in all)")
    per_node: bool = Field(default=False, description="every node has its own")
    source: str = Field(default="", description="where the numbers come from")

    @model_validator(mode="after")
    def _one_bandwidth(self) -> Stage:
        if self.bandwidth is not None and (self.read_bandwidth or self.write_bandwidth):
            raise ValueError("give bandwidth, or read_bandwidth and write_bandwidth, not both")
        return self

    @property
    def name(self) -> str:
        return self.label or self.stage

    def count(self, nodes: int) -> int:
        """Return how many units `nodes` nodes share."""
        return self.units * (nodes if self.per_node else 1)

    def carries(self, operation: Direction, nodes: int) -> float | None:
        """Return bytes per second that the stage carries for `nodes` nodes, or None where nobody says."""
        one = self.read_bandwidth if operation == "read" else self.write_bandwidth
        one = self.bandwidth if one is None else one
        return None if one is None else one * self.count(nodes)
