"""What is wrong, first on the page: each finding with what it costs, what to do, and its evidence folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiercel.pages.tables import Table
from tiercel.pages.words import capital, count, plain, portion
from tiercel.traces.findings import Finding
from tiercel.traces.page.part import frame_table

#: Rows of evidence on the page; in print the style sheet shows five.
ROWS = 10
#: Severities: their style, as findings of the evaluation's report have it.
KINDS = {"problem": "failure", "hint": "hint", "note": "fact"}


@dataclass(frozen=True)
class Shown:
    """A finding as the page shows it."""

    severity: str
    kind: str
    rule: str
    sentence: str
    cost: str
    advice: str
    evidence: Table | None
    more: str


def shown(findings: Sequence[Finding]) -> list[Shown]:
    """Return findings for the page, in the order in which they are given: the gravest first (`explain`)."""
    return [_shown(f) for f in findings]


def _shown(finding: Finding) -> Shown:
    rows = finding.evidence
    if len(rows) and any(name is not None for name in rows.index.names):
        rows = rows.reset_index()
    evidence = frame_table(f"What rule {finding.rule} saw.", rows.head(ROWS)) if len(rows) else None
    more = f"{count(len(rows) - ROWS, 'more row')}: tiercel trace explain --json" if len(rows) > ROWS else ""
    return Shown(
        finding.severity, KINDS[finding.severity], capital(finding.rule.replace("-", " ")),
        plain(finding.sentence), cost(finding), finding.advice, evidence, more,
    )  # fmt: skip


def cost(finding: Finding) -> str:
    """Return the share of the processes' time that a finding costs at most; empty where it is not known.

    How long that is stands in the sentence."""
    return portion(finding.share) if finding.share else ""
