"""What became of each statement: holds, fails, was input, cannot be answered, is not yet; or is stale."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from tiercel.papers.book import Found, digest_of
from tiercel.papers.model import Answer, Paper, Statement
from tiercel.papers.published import worked_out
from tiercel.papers.readings import digest_of_reading

Verdict = Literal["holds", "fails", "input", "cannot", "unanswered"]
VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "input", "cannot", "unanswered")


def figure_of(answer: Answer, found: Found | None) -> float | None:
    """Return our figure: worked out from the paper's own, or what its commands gave; None without one."""
    if answer.formula:
        return worked_out(answer.formula, answer.figures)
    return found.ours if answer.command and found else None


def verdict_of(answer: Answer, found: Found | None) -> Verdict:
    """Return what follows from a figure of ours and the bounds of the answer."""
    if answer.input:
        return "input"
    if answer.how == "none":
        return "cannot"
    ours = figure_of(answer, found)
    if ours is None:
        return "unanswered"
    return "holds" if _within(answer, ours) else "fails"


def _within(answer: Answer, figure: float) -> bool:
    low = answer.at_least is None or figure >= answer.at_least
    return low and (answer.at_most is None or figure <= answer.at_most)


def decided(answer: Answer, low: float, high: float) -> bool:
    """Return whether all figures between `low` and `high` hold, or all of them fail."""
    bounds = (answer.at_least, answer.at_most)
    return not any(bound is not None and low < bound < high for bound in bounds)


def is_stale(answer: Answer, found: Found | None, root: Path, reading: str | None = None) -> bool | None:
    """Return whether what a figure rests on, its command or its `reading` has changed; None for cannot tell.

    `reading` is the digest of what takes the figure out of what is printed now.
    """
    if found is None:
        return False
    now = digest_of(answer.rests_on, root)
    if answer.commands != found.command or (found.reading is not None and found.reading != reading):
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
        "ours": figure_of(answer, found),
        "low": found.low if found else None,
        "high": found.high if found else None,
        "at_least": answer.at_least,
        "at_most": answer.at_most,
        "bounds": answer.bounds,
        "why": why,
        "first": answer.first,
        "command": answer.command,
        "figures": answer.figures,
        "formula": answer.formula,
        "date": found.date if found else None,
        "machine": found.machine if found else None,
        "stale": is_stale(answer, found, root, digest_of_reading(statement.id)),
    }


def told(value: str | float | None, unit: str) -> str:
    """Return a figure with its unit for people: nothing where there is none (the file's word is "none").

    What the paper's figure was worked out from stands in brackets, and has units of its own.
    """
    if value in (None, "none"):
        return ""
    text = value if isinstance(value, str) else f"{value:.4g}"
    if unit in ("none", "name"):
        return text
    figure, bracket, source = text.partition(" (")
    return f"{figure} {unit}{bracket}{source}"


def told_ours(r: Mapping[str, Any]) -> str:
    """Return our figure of a row for people, with its interval where it has one."""
    interval = "" if r["low"] is None else f" ({r['low']:.3g}–{r['high']:.3g})"
    return told(r["ours"], r["unit"]) + interval


def counts_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many statements have each verdict, hold or fail in which way, and are stale."""
    counted: dict[str, Any] = {v: sum(r["verdict"] == v for r in rows) for v in VERDICTS}
    counted["by_how"] = {
        verdict: _by_how([r for r in rows if r["verdict"] == verdict]) for verdict in ("holds", "fails")
    }
    counted["stale"] = sum(r["stale"] is True for r in rows)
    return counted


def _by_how(rows: list[dict[str, Any]]) -> dict[str, int]:
    return {how: sum(r["how"] == how for r in rows) for how in sorted({r["how"] for r in rows})}
