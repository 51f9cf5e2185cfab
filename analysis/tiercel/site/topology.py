"""The way from a program to the media as a chain of stages, each with what it can carry at most.

Source of the stages: paper 004, section IV.B and figure 1, which explains its results with them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Rate

StageKind = Literal["client", "gateway", "server", "fabric", "media"]


class Stage(Document):
    """One stage. `bandwidth` is of one unit; a stage of one node grows with the number of nodes."""

    stage: StageKind
    label: str = ""
    bandwidth: Rate | None = Field(default=None, gt=0, description="of one unit, reads and writes alike")
    read_bandwidth: Rate | None = Field(default=None, gt=0)
    write_bandwidth: Rate | None = Field(default=None, gt=0)
    units: int = Field(default=1, ge=1, description="how many there are (in a node, or in all)")
    per_node: bool = Field(default=False, description="every node has its own")
    source: str = Field(default="", description="where the number comes from")

    @model_validator(mode="after")
    def _some_number(self) -> Stage:
        if self.bandwidth is not None and (self.read_bandwidth or self.write_bandwidth):
            raise ValueError("give bandwidth, or read_bandwidth and write_bandwidth, not both")
        if self.bandwidth is None and self.read_bandwidth is None and self.write_bandwidth is None:
            raise ValueError("bandwidth (or read_bandwidth, write_bandwidth) is required: leave out a stage "
                             "whose bandwidth nobody knows")  # fmt: skip
        return self

    @property
    def name(self) -> str:
        return self.label or self.stage

    def carries(self, operation: Literal["read", "write"], nodes: int) -> float | None:
        """Return bytes per second that the stage carries for `nodes` nodes, or None where nobody says."""
        one = self.read_bandwidth if operation == "read" else self.write_bandwidth
        one = self.bandwidth if one is None else one
        if one is None:
            return None
        return one * self.units * (nodes if self.per_node else 1)
