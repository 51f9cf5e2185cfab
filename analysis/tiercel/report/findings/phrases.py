"""Parts of sentences, and of their evidence, that several rules need."""

from __future__ import annotations

from tiercel.report import words
from tiercel.report.data import Number, Record, Results
from tiercel.report.findings.finding import Evidence
from tiercel.statistics.verdict import Verdict


def is_hint(row: Record) -> bool:
    """Return whether nothing is decided although the interval of the ratio does not contain 1."""
    v = Verdict.of(row)
    return not v.outcome.decided and (v.low > 1 or v.high < 1)


def unconfirmed(row: Record) -> str:
    """Return ``Not yet confirmed: 3 of 4 repetitions; run 1 more repetition of each side.``"""
    v = Verdict.of(row)
    return words.capital("; ".join(part for part in (v.confidence(), v.action()) if part)) + "."


def of_origin(origin: str) -> str:
    """Return the word that every number which was not measured here carries."""
    return "" if origin == "measured" else f" ({origin})"


def number_evidence(n: Number) -> Evidence:
    return Evidence(n.anchor.replace("number-", "no. "), n.anchor, tuple(n.runs))


def row_evidence(results: Results, row: Record, names: tuple[str, str]) -> tuple[Evidence, ...]:
    """Return the rows of the table of numbers that a comparison was made from."""
    stacks = {row[k] for k in ("stack", "stack_a", "stack_b") if k in row}
    wanted = set(row["runs"])
    return tuple(
        number_evidence(n)
        for n in results.of_workload(row[names[0]], row[names[1]])
        if n.stack in stacks and n.operation == row["operation"] and wanted & set(n.runs)
    )
