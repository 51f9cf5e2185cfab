"""What a recommendation is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tiercel.placement.copying import Amount, Span, Staging
from tiercel.report.classes import WorkloadClass
from tiercel.statistics.lives import LIFE
from tiercel.statistics.ranking import Advice, Outcome, Standing

if TYPE_CHECKING:
    from tiercel.placement.recommend import Opinion

#: Why memory is no place for writes that are synced one by one: their user needs them after a crash.
SYNCED = "synced writes must survive a restart, and memory does not"
Copying = Literal["unknown", "nothing to copy", "pays", "only if results are not kept", "never pays"]

#: Files of a trace that take less of its time than this decide nothing.
LITTLE = 0.01


@dataclass(frozen=True)
class Judgement:
    """One storage for one class: what was measured, and what the model expects."""

    stack: str
    advice: Advice
    standing: Standing
    opinion: Opinion | None = None
    agreement: str = ""

    @property
    def outcome(self) -> Outcome:
        """The measurement's; the model's where the measurement is open and the model is not."""
        measured = self.standing.outcome
        if measured == "undecided" and self.opinion is not None and self.standing.rows:
            return self.opinion.outcome
        return measured

    @property
    def decided_by(self) -> str:
        """measurement, model, or "" where nothing is decided."""
        if not self.standing.rows or self.outcome == "undecided":
            return ""
        return "measurement" if self.standing.outcome != "undecided" else "model"


@dataclass(frozen=True)
class Recommendation:
    """Where the files of one class belong."""

    of: WorkloadClass
    judgements: Mapping[str, Judgement]
    home: str
    """The best storage that keeps files, by measurement; decided or not (see `decided`)."""
    decided: bool
    """`home` is ahead of every other one that keeps files, or as good; or there is no other."""
    faster: str
    """Memory that is ahead of it, by measurement or else by the model; "" for none."""
    staging: Staging | None
    """Of using `faster`; None as well where the study does not tell what copying costs (see `unknown`)."""
    amount: Amount
    """What is copied for one use of the files."""
    traced: bool
    """`amount` is that of the traced run; else an example of 1 GiB."""
    free: float | None
    """Bytes free on `faster`, or else on `home`."""
    keeps: bool
    """Files on `home` outlive a restart."""
    everywhere: bool
    """Files on `home` are seen by all nodes (or there is one node)."""
    unknown: str = ""
    """Why nothing is said of copying although `faster` is; else empty."""
    reading: Span | None = None
    """What reading the inputs at home took in the workload itself, cold."""

    @property
    def copying(self) -> Copying:
        """Return whether copying files to `faster` and results back saves time."""
        stage = self.staging
        if stage is None:
            return "unknown"
        if self.of.operation == LIFE and not self.amount.bytes_in and not self.amount.bytes_out:
            return "nothing to copy"
        if stage.pays_from is not None:
            return "pays"
        if not all(map(math.isfinite, (stage.seconds_in, stage.seconds_out, stage.saved))):
            return "unknown"
        return "only if results are not kept" if stage.saved > 0 else "never pays"


@dataclass(frozen=True)
class Calls:
    """What a traced run did to a group of files on one storage."""

    seconds: float
    """Time in calls, summed over processes."""
    files: int
    bytes: float
    """Moved: read and written."""


@dataclass(frozen=True)
class GroupAdvice:
    """One group of files of a traced workload."""

    of: WorkloadClass
    group: str
    files: int
    size: float
    seconds: Mapping[str, float]
    """Time in calls on each stack, summed over processes, for as much work as the traced run did at home:
    a phase that ends after a time does more on a faster storage."""
    share: float
    """Of the time in calls of its traced run at home."""
    target: str
    """Where it is best used; the home where nothing else is proven."""
    staging: Staging | None
    fits: bool
    calls: Mapping[str, Calls] = field(default_factory=dict)
    """By stack: what the traced run did, as it was."""
