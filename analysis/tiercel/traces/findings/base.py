"""What a rule is, what it gives, and how all of them are asked.

A rule is a function from a trace to findings, in a file by theme, under ``@rules.register``. It fires on a
named threshold whose reason stands beside it, and its evidence is the table that its sentence was read from.
What a trace cannot know (how fast the medium is, how wide a stripe) comes from the caller as `Storage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pandas as pd

from tiercel.registry import Registry

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: problem: costs time or makes a number wrong; hint: likely does; note: worth knowing.
Severity = Literal["problem", "hint", "note"]
SEVERITIES: tuple[Severity, ...] = ("problem", "hint", "note")
#: Seconds in calls (the sum over ranks) below which a share of the time is not worth a finding.
WORTH = 0.01


@dataclass(frozen=True)
class Storage:
    """What is known of the storage under the traced files.

    `read_bandwidth` is the most that it delivers to this job, in bytes a second (a measured ceiling; None:
    not known).
    `stripe` is the unit in which it spreads and locks files: 1 MiB is Lustre's default stripe and a
    common GPFS block.
    """

    read_bandwidth: float | None = None
    stripe: int = 1 << 20


@dataclass(frozen=True)
class Finding:
    """One sentence with numbers, the table that it rests on, and what to try."""

    rule: str
    severity: Severity
    sentence: str
    advice: str
    evidence: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)
    #: What the pattern costs at most: seconds in calls, summed over the processes; None: not known.
    seconds: float | None = None
    #: The same as a share of what all processes had (run time times ranks).
    share: float | None = None


@dataclass(frozen=True)
class Case:
    """What a rule looks at: a trace, the layer whose calls count, and the storage below."""

    frame: IOFrame
    layer: str
    storage: Storage


Rule = Callable[[Case], Iterable[Finding]]
rules: Registry[Rule] = Registry("finding rule")


def findings_table(findings: Iterable[Finding]) -> pd.DataFrame:
    """Return findings as rows: severity, rule, sentence, advice."""
    columns = ["severity", "rule", "sentence", "advice"]
    return pd.DataFrame([[getattr(finding, c) for c in columns] for finding in findings], columns=columns)


def percent(share: float) -> str:
    """Return a share as a reader likes it: ``38 %``, ``4.2 %``."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"
