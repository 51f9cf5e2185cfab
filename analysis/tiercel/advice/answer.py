"""What is known of a program in the end: the advice, as documents, pages and the terminal show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tiercel.advice.capture import Capture
from tiercel.advice.hints import Hint
from tiercel.advice.judge import Verdict, WayResult
from tiercel.advice.units import Unit
from tiercel.placement.recipe import Recipe
from tiercel.site.model import Site
from tiercel.traces.findings import Finding


@dataclass(frozen=True)
class IoCost:
    """What a program's I/O costs it at home, in seconds, as replayed. `calls`: summed over all processes;
    `waited`: of these, what lengthens the run: on storage that takes no time it would be so much shorter."""

    run: float
    calls: float
    waited: float
    by_kind: dict[str, float]
    bytes_read: int
    bytes_written: int
    operations: int

    @property
    def hidden(self) -> float:
        return max(0.0, self.calls - self.waited)

    @property
    def share(self) -> float:
        return self.waited / self.run if self.run > 0 else 0.0


@dataclass(frozen=True)
class Advice:
    """All that is known. `verdict` is None where nothing could be replayed; `notes` say why."""

    site: Site
    capture: Capture | None
    trace: Path
    home: str = ""
    storages: tuple[str, ...] = ()
    recipe: Recipe = field(default_factory=Recipe)
    units: tuple[Unit, ...] = ()
    ways: tuple[WayResult, ...] = ()
    verdict: Verdict | None = None
    io: IoCost | None = None
    unit_io: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Seconds in calls: a row for each unit, a column for each storage that was tried."""
    mode: str = ""
    """replayed: runs are measured with their thinking; reckoned: the I/O is measured, the runs are
    reckoned."""
    warm: bool | None = None
    """Whether inputs were in the page cache when the program read them; None where it read none."""
    fidelity: float = 1.0
    """I/O time that the trace measured at home over the replay's."""
    refused: str = ""
    """Why no placement is advised though ways were measured: the replay does not repeat the trace."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Storages and ways that were not tried, or not to the end, with the reason."""
    findings: tuple[Finding, ...] = ()
    hints: tuple[Hint, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """What measuring took."""
