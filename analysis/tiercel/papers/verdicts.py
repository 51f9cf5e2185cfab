"""What became of each statement: holds, fails, was input, or is not answered; and whether it is stale."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tiercel.papers.book import Found, digest_of
from tiercel.papers.model import Answer, Paper, Statement

Verdict = Literal["holds", "fails", "input", "unanswered"]
VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "input", "unanswered")


def verdict_of(answer: Answer, found: Found | None) -> Verdict:
    """Return what follows from a figure of ours and the bounds of the answer."""
    if answer.input:
        return "input"
    if answer.command is None or found is None:
        return "unanswered"
    low = answer.at_least is None or found.ours >= answer.at_least
    high = answer.at_most is None or found.ours <= answer.at_most
    return "holds" if low and high else "fails"


def is_stale(answer: Answer, found: Found | None, root: Path) -> bool | None:
    """Return whether what a figure rests on, or its command, has changed; None where that cannot be told."""
    if found is None:
        return False
    now = digest_of(answer.rests_on, root)
    if answer.command != found.command:
        return True
    return None if now is None else now != found.digest


def row(paper: Paper, statement: Statement, book: Mapping[str, Found], root: Path) -> dict[str, Any]:
    """Return all that is known of a statement, as one mapping."""
    answer = statement.answer
    found = book.get(statement.id) if answer.command else None
    why = answer.why
    if answer.command and found is None:
        why = f"not measured yet: tiercel claims --measure {statement.id}"
    return {
        "id": statement.id,
        "paper": paper.paper,
        "where": statement.where,
        "items": statement.items,
        "says": statement.says,
        "quantity": statement.quantity,
        "value": statement.value,
        "unit": statement.unit,
        "verdict": verdict_of(answer, found),
        "how": answer.how,
        "ours": found.ours if found else None,
        "at_least": answer.at_least,
        "at_most": answer.at_most,
        "bounds": answer.bounds,
        "why": why,
        "command": answer.command,
        "date": found.date if found else None,
        "machine": found.machine if found else None,
        "stale": is_stale(answer, found, root),
    }
