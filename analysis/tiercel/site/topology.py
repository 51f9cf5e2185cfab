"""The way from a program to the media as a chain of stages, each with what it can carry at most.

Source of the stages: paper 004, section IV.B and figure 1, which explains its results with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Rate

StageKind = Literal["client", "connection", "gateway", "server", "fabric", "media"]
Direction = Literal["read", "write"]
Action = Literal["create", "stat", "read", "rename", "remove"]
Spread = Literal["stripes", "nodes", "processes"]
#: Figures that a stage has for reads and writes alike, or for each of them (`read_latency`).
FOR_EACH_DIRECTION = ("bandwidth", "operations", "latency")
Each = Annotated[float, Field(gt=0)]
Wait = Annotated[Duration, Field(gt=0)]


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
    operations: Each | None = Field(default=None, description="per second, of one unit")
    read_operations: Each | None = Field(default=None, description="of one unit, reads")
    write_operations: Each | None = Field(default=None, description="of one unit, writes")
    metadata: Each | dict[Action, Each] | None = Field(
        default=None,
        description="creates, stats... of files or folders per second, of one unit; or of each kind",
    )
    latency: Duration | None = Field(default=None, gt=0, description="what it adds to one operation")
    read_latency: Duration | None = Field(default=None, gt=0, description="of a read")
    write_latency: Duration | None = Field(default=None, gt=0, description="of a write")
    metadata_latency: Wait | dict[Action, Wait] | None = Field(
        default=None,
        description="what a create, stat... takes its process where it is alone; or of each kind",
    )
    units: int = Field(default=1, ge=1, description="how many there are (in a node, or in all)")
    per_node: bool = Field(default=False, description="every node has its own")
    spread: Spread = Field(
        default="stripes", description="what goes over one unit: stripes of everything, a node, or a process"
    )
    whole: bool = Field(
        default=False, description="its figures were found from end to end: they stand for all stages"
    )
    source: str = Field(default="", description="where the numbers come from")

    @model_validator(mode="after")
    def _one_of_each(self) -> Stage:
        for figure in FOR_EACH_DIRECTION:
            own = [f"{direction}_{figure}" for direction in ("read", "write")]
            if getattr(self, figure) is not None and any(getattr(self, name) for name in own):
                raise ValueError(f"give {figure}, or {' and '.join(own)}, not both")
        if self.per_node and self.spread == "nodes":
            raise ValueError("spread: nodes is for units that nodes share: per_node gives each its own")
        return self

    @property
    def name(self) -> str:
        return self.label or self.stage

    def count(self, nodes: int) -> int:
        """Return how many units `nodes` nodes have the use of."""
        if self.per_node:
            return self.units * nodes
        return min(self.units, nodes) if self.spread == "nodes" else self.units

    def carries(self, operation: Direction, nodes: int) -> float | None:
        """Return bytes per second that the stage carries for `nodes` nodes, or None where nobody says."""
        one = self.one_carries(operation)
        return None if one is None else one * self.count(nodes)

    def one_carries(self, operation: Direction) -> float | None:
        """Return bytes per second that one unit carries, or None where nobody says."""
        one = self.read_bandwidth if operation == "read" else self.write_bandwidth
        return self.bandwidth if one is None else one

    def begins(self, operation: Direction) -> float | None:
        """Return reads or writes per second that one unit begins, or None where nobody says."""
        one = self.read_operations if operation == "read" else self.write_operations
        return self.operations if one is None else one

    def adds(self, operation: Direction) -> float | None:
        """Return the seconds that the stage adds to one read or write, or None where nobody says."""
        one = self.read_latency if operation == "read" else self.write_latency
        return self.latency if one is None else one

    def does(self, action: Action) -> float | None:
        """Return how many metadata operations of a kind one unit does per second, None where nobody says.

        Where only operations are given, these are operations like others.
        """
        told = self.metadata.get(action) if isinstance(self.metadata, Mapping) else self.metadata
        return self.operations if told is None else told

    def takes(self, action: Action) -> float | None:
        """Return the seconds that one metadata operation of a kind takes, or None where nobody says.

        Where only a latency is given, each of them waits for that.
        """
        found = self.metadata_latency
        told = found.get(action) if isinstance(found, Mapping) else found
        return self.latency if told is None else told
