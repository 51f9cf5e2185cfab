"""The way from a program to the media as a chain of stages, each with what it can carry at most.

Source of the stages: paper 004, section IV.B and figure 1, which explains its results with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from tiercel.documents import Document
from tiercel.quantities import Duration, Line, Rate, Size

StageKind = Literal["client", "connection", "gateway", "server", "fabric", "media"]
#: From the client to the media.
STAGES: tuple[StageKind, ...] = get_args(StageKind)
Direction = Literal["read", "write"]
Action = Literal["create", "stat", "read", "rename", "remove"]
Spread = Literal["stripes", "nodes", "processes"]
Carries = Literal["all", "data", "metadata", "reads", "writes"]
#: Figures that a stage has for reads and writes alike, or for each of them (`read_latency`).
FOR_EACH_DIRECTION = ("bandwidth", "operations", "latency", "cache")
#: Of one unit, a thousand times what any does; whatever is more is a mistake. B/s, operations per second, s.
MOST_BANDWIDTH, MOST_OPERATIONS, LONGEST = 1e15, 1e12, 86_400.0
Each = Annotated[float, Field(gt=0, le=MOST_OPERATIONS, allow_inf_nan=False)]
Wait = Annotated[Duration, Field(gt=0, le=LONGEST)]
Kept = Annotated[Size, Field(gt=0)]
#: Units that are not alike, each as a multiple of the figures.
Sizes = Annotated[
    tuple[Each, ...], BeforeValidator(lambda told: told.split(",") if isinstance(told, str) else told)
]
#: How the source of a stage begins that `tiercel site calibrate` measured.
CALIBRATED = "measured here"
#: Nodes of a site, units of a stage. Ten times as many as any machine has; whatever is larger is a mistake.
MOST_UNITS = 1_000_000


class Stage(Document):
    """One stage. Its figures are of one unit; a stage of one node grows with the number of nodes.

    A stage without figures is one that is there and of which nobody says what it carries: a ceiling names it
    as what is missing.
    """

    stage: StageKind = Field(description="its kind")
    label: Line = Field(default="", description="its name in sentences")
    bandwidth: Rate | None = Field(
        default=None,
        gt=0,
        le=MOST_BANDWIDTH,
        allow_inf_nan=False,
        description="of one unit, reads and writes alike",
    )
    read_bandwidth: Rate | None = Field(
        default=None, gt=0, le=MOST_BANDWIDTH, allow_inf_nan=False, description="of one unit, reads"
    )
    write_bandwidth: Rate | None = Field(
        default=None, gt=0, le=MOST_BANDWIDTH, allow_inf_nan=False, description="of one unit, writes"
    )
    operations: Each | None = Field(default=None, description="per second, of one unit")
    read_operations: Each | None = Field(default=None, description="of one unit, reads")
    write_operations: Each | None = Field(default=None, description="of one unit, writes")
    random_operations: Each | None = Field(
        default=None, description="per second in random order, of one unit; without it operations count"
    )
    cache: Kept | None = Field(
        default=None, description="bytes that one unit keeps; reads of them and writes into it go no further"
    )
    read_cache: Kept | None = Field(default=None, description="of what was written or read last")
    write_cache: Kept | None = Field(default=None, description="of what it takes before what is behind it")
    metadata: Each | dict[Action, Each] | None = Field(
        default=None,
        description="creates, stats... of files or folders per second, of one unit; or of each kind",
    )
    latency: Duration | None = Field(
        default=None, gt=0, le=LONGEST, description="what it adds to one operation"
    )
    read_latency: Duration | None = Field(default=None, gt=0, le=LONGEST, description="of a read")
    write_latency: Duration | None = Field(default=None, gt=0, le=LONGEST, description="of a write")
    metadata_latency: Wait | dict[Action, Wait] | None = Field(
        default=None,
        description="what a create, stat... takes its process where it is alone; or of each kind",
    )
    units: int = Field(
        default=1, ge=1, le=MOST_UNITS, description="how many there are (in a node, or in all)"
    )
    sizes: Sizes | None = Field(
        default=None,
        min_length=1,
        description="of units that are not alike: what each can do, as a multiple of the figures",
    )
    per_node: bool = Field(default=False, description="every node has its own")
    carries: Carries = Field(
        default="all",
        description="metadata: a server beside the way of the data; data: the other way about; "
        "reads or writes: data of this direction only",
    )
    absent: bool = Field(default=False, description="there is none on this way, so no figure is missing")
    spread: Spread = Field(
        default="stripes", description="what goes over one unit: stripes of everything, a node, or a process"
    )
    whole: bool = Field(
        default=False, description="its figures were found from end to end: they stand for all stages"
    )
    source: Line = Field(default="", description="where the numbers come from")

    @model_validator(mode="before")
    @classmethod
    def _as_many_as_sizes(cls, content: Any) -> Any:
        sizes = content.get("sizes") if isinstance(content, Mapping) else None
        if isinstance(sizes, str | list | tuple) and content.get("units") is None:
            several = sizes.split(",") if isinstance(sizes, str) else sizes
            return {**content, "units": len(several)}
        return content

    @model_validator(mode="after")
    def _one_of_each(self) -> Stage:
        for figure in FOR_EACH_DIRECTION:
            own = [f"{direction}_{figure}" for direction in ("read", "write")]
            if getattr(self, figure) is not None and any(getattr(self, name) for name in own):
                raise ValueError(f"give {figure}, or {' and '.join(own)}, not both")
        if self.sizes and len(self.sizes) != self.units:
            raise ValueError(f"sizes: of {len(self.sizes)} units, and units says {self.units}")
        if self.per_node and self.spread == "nodes":
            raise ValueError("spread: nodes is for units that nodes share: per_node gives each its own")
        if self.absent and self.figures:
            raise ValueError(f"absent: true, and it has {', '.join(self.figures)}: one of the two")
        return self

    @property
    def figures(self) -> list[str]:
        """The keys that say what it can do."""
        return [name for name in FIGURES if getattr(self, name) is not None]

    @property
    def name(self) -> str:
        return self.label or self.stage

    @property
    def calibrated(self) -> bool:
        """Whether its figures are what this machine once reached, and not what hardware can do at most."""
        return self.source.startswith(CALIBRATED)

    def count(self, nodes: int, processes: int | None = None) -> float:
        """Return how many units `nodes` nodes with so many processes on each (None: many) have the use of,
        each as its size."""
        if self.spread == "nodes":
            return self.first(nodes)
        shares = nodes if self.per_node else 1
        if self.spread == "stripes" or processes is None:
            return self.first(self.units) * shares
        return self.first(processes * nodes // shares) * shares

    def first(self, units: int) -> float:
        """Return the sizes of the first units together; of alike ones how many these are."""
        return min(units, self.units) if self.sizes is None else sum(self.sizes[:units])

    def carries_data(self, direction: Direction) -> bool:
        """Return whether reads, or writes, of data go over it."""
        return not self.absent and self.carries in ("all", "data", f"{direction}s")

    @property
    def carries_metadata(self) -> bool:
        return self.carries in ("all", "metadata")

    def one_carries(self, operation: Direction) -> float | None:
        """Return bytes per second that one unit carries, or None where nobody says."""
        one = self.read_bandwidth if operation == "read" else self.write_bandwidth
        return self.bandwidth if one is None else one

    def begins(self, operation: Direction, random: bool = False) -> float | None:
        """Return reads or writes per second that one unit begins, or None where nobody says.

        `random`: in random order, where a disk has to seek for each.
        """
        if random and self.random_operations is not None:
            return self.random_operations
        one = self.read_operations if operation == "read" else self.write_operations
        return self.operations if one is None else one

    def adds(self, operation: Direction) -> float | None:
        """Return the seconds that the stage adds to one read or write, or None where nobody says."""
        one = self.read_latency if operation == "read" else self.write_latency
        return self.latency if one is None else one

    def keeps(self, operation: Direction) -> int | None:
        """Return the bytes of reads or writes that one unit keeps, or None where nobody says."""
        one = self.read_cache if operation == "read" else self.write_cache
        return self.cache if one is None else one

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


#: The keys of a stage that say what it can do; the others say what it is.
FIGURES = tuple(
    name
    for name in Stage.model_fields
    if name
    not in {"stage", "label", "units", "sizes", "per_node", "carries", "absent", "spread", "whole", "source"}
)


def placed(stages: Sequence[Stage], new: Sequence[Stage]) -> list[Stage]:
    """Return a chain with new stages where they belong on the way to the media."""
    found = list(stages)
    for stage in new:
        rank = STAGES.index(stage.stage)
        before = [n for n, each in enumerate(found) if STAGES.index(each.stage) <= rank]
        found.insert(before[-1] + 1 if before else 0, stage)
    return found


def check_chain(stages: Sequence[Stage]) -> None:
    """Raise ValueError for a way that does not begin with the client, does not end with the media, or has two
    stages of one name: nobody could tell which of them bounds a result."""
    names = [stage.name for stage in stages]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two stages are called {twice[0]}: give each a label of its own")
    kinds = [stage.stage for stage in stages]
    for before, after in pairwise(kinds):
        if after == "client" != before:
            raise ValueError(f"client stands behind {before}: the way goes from the client to the media")
        if before == "media" != after:
            raise ValueError(f"{after} stands behind media: the way goes from the client to the media")
