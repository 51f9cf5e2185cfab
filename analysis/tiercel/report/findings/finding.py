"""What a finding is: a sentence for one audience, with the numbers that support it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from tiercel.report.data import Results

Audience = Literal["user", "engineer", "researcher"]
Severity = Literal["claim", "hint", "open", "fact", "caution", "failure"]

AUDIENCES: dict[Audience, tuple[str, str]] = {
    "user": ("For application users", "Where do I put my files, and what do I gain?"),
    "engineer": ("For storage engineers", "Does the system deliver, and what bounds it?"),
    "researcher": ("For I/O researchers", "How sure are these numbers, and can I repeat them?"),
}


@dataclass(frozen=True)
class Evidence:
    """What a sentence rests on: words, the place in the page, and the runs."""

    text: str
    anchor: str = ""
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    audience: Audience
    severity: Severity
    sentence: str
    evidence: tuple[Evidence, ...] = ()


Rule = Callable[[Results], Iterable[Finding]]
