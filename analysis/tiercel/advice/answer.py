"""The advice: what was measured for each placement, and which one to take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, Literal

from tiercel.advice.bench import HOME, Candidate, Trial
from tiercel.advice.judge import Difference, Sample, differ
from tiercel.advice.workset import Folder
from tiercel.site.model import Site


@dataclass
class Result:
    """One placement: its measured runs (the first, discarded one is not among them)."""

    candidate: Candidate
    trials: list[Trial] = field(default_factory=list)
    copies_in: list[float] = field(default_factory=list)
    copies_out: list[float] = field(default_factory=list)
    why_not: str = ""
    """Why it was not tried, or not to the end."""
    at_least: float | None = None
    """It took at least so many times as long as at home, and was given up."""
    differs: tuple[str, ...] = ()
    """Files that the program wrote otherwise than at home, where all runs at home agree."""

    @property
    def seconds(self) -> list[float]:
        return [t.seconds for t in self.trials]

    @property
    def copy_in(self) -> float:
        return median(self.copies_in) if self.copies_in else math.nan

    @property
    def copy_out(self) -> float:
        return median(self.copies_out) if self.copies_out else math.nan

    def sample(self, sharing: float | None = None, script: float = 0.0) -> Sample:
        """Return its runs; `sharing`: with copying, in once for so many runs, and with the `script` that
        does it."""
        copying = 0.0 if sharing is None else (self.copy_in + script) / sharing + self.copy_out
        return Sample(self.seconds, copying)


@dataclass(frozen=True)
class Judged:
    """A placement against home. `run`: copying not counted; `total`: with copying in and out."""

    result: Result
    run: Difference
    total: Difference

    @property
    def name(self) -> str:
        return self.result.candidate.name


@dataclass(frozen=True)
class Estimate:
    """An answer without trials: what a replay of the traced I/O took on each storage, in seconds."""

    seconds: Mapping[str, Sequence[float]]
    blind: tuple[str, ...]
    """What the program did that a replay cannot repeat."""
    why: str


@dataclass(frozen=True)
class Advice:
    """The answer for one program. `tiercel advise` prints it; `tc.advise` returns it."""

    site: Site
    program: tuple[str, ...]
    cwd: str
    folders: tuple[Folder, ...] = ()
    results: dict[str, Result] = field(default_factory=dict)
    runs_sharing: float = 1.0
    """How many runs use what is copied in once."""
    script_runs: list[float] = field(default_factory=list)
    """Seconds of the staging script in addition to copying, once per round."""
    cold: bool = False
    program_runs: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    method: Literal["trials", "replay", "nothing"] = "trials"

    @property
    def script(self) -> float:
        return median(self.script_runs) if self.script_runs else 0.0

    @property
    def home(self) -> str:
        """The storage that most of the bytes lie on."""
        sizes: dict[str, int] = {}
        for folder in self.folders:
            sizes[folder.home] = sizes.get(folder.home, 0) + folder.size + 1
        return max(sizes, key=lambda s: sizes[s], default="")

    @cached_property
    def judged(self) -> list[Judged]:
        """The placements that were measured, the fastest with copying first."""
        home = self.results.get(HOME)
        if home is None or not home.trials:
            return []
        others = [r for n, r in self.results.items() if n != HOME and r.trials and r.copies_out]
        found = [
            Judged(
                result,
                differ(home.sample(), result.sample(), len(others)),
                differ(home.sample(), result.sample(self.runs_sharing, self.script), len(others)),
            )
            for result in others
        ]
        return sorted(found, key=lambda j: -j.total.ratio.median)

    @cached_property
    def advised(self) -> Judged | None:
        """The placement to take; None: leave the files where they are."""
        return next((j for j in self.judged if j.total.outcome == "faster"), None)

    @property
    def decided(self) -> bool:
        """Whether more runs would change nothing: one placement is surely faster, or surely none is."""
        if self.advised is not None:
            return True
        return bool(self.judged) and all(j.total.outcome in ("slower", "same") for j in self.judged)

    @cached_property
    def lives(self) -> Judged | None:
        """The fastest storage that keeps files, copying not counted: for files that can move for good."""
        memory = {n for n, s in self.site.storages.items() if s.medium == "memory"}
        lasting = [
            j
            for j in self.judged
            if j.run.outcome == "faster" and not memory & set(j.result.candidate.storages)
        ]
        return max(lasting, key=lambda j: j.run.ratio.median, default=None)

    def copying(self, result: Result) -> float:
        """Return the seconds that copying in and out, and the script that does it, add to each run."""
        return (result.copy_in + self.script) / self.runs_sharing + result.copy_out

    def pays_from(self, judged: Judged) -> int | None:
        """Return how many runs must share what is copied in so that it pays; None: no number does."""
        at_home = median(self.results[HOME].seconds)
        each = at_home - median(judged.result.seconds) - judged.result.copy_out
        first = (judged.result.copy_in + self.script) * 1.25
        return max(1, math.ceil(first / each)) if each > 0 else None

    @property
    def document(self) -> dict[str, Any]:
        """Everything as plain values, as ``advice.json`` has it."""
        from tiercel.advice.document import document  # noqa: PLC0415 -- it needs this class

        return document(self)

    def __repr__(self) -> str:
        return "\n".join(self.document["answer"])

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415

        return "".join(f"<p>{escape(sentence)}</p>" for sentence in self.document["answer"])
