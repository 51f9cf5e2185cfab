"""What became of each statement: what a figure of ours says of it, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from tiercel.papers.book import Found
from tiercel.papers.model import Answer, Paper, Statement
from tiercel.papers.published import worked_out

Verdict = Literal[
    "holds", "better than the paper", "differs", "input", "cannot", "unanswered",
    "paper agrees with itself", "paper disagrees with itself",
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


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
    below = answer.at_least is not None and ours < answer.at_least
    above = answer.at_most is not None and ours > answer.at_most
    if answer.formula:
        return "paper disagrees with itself" if below or above else "paper agrees with itself"
    if (below and answer.better == "lower") or (above and answer.better == "higher"):
        return "better than the paper"
    return "differs" if below or above else "holds"


def decided(answer: Answer, low: float, high: float) -> bool:
    """Return whether all figures between `low` and `high` get one verdict."""
    bounds = (answer.at_least, answer.at_most)
    return not any(bound is not None and low < bound < high for bound in bounds)


def row(paper: Paper, statement: Statement, book: Mapping[str, Found]) -> dict[str, Any]:
    """Return all that is known of a statement, as one mapping."""
    answer = statement.answer
    found = book.get(statement.id) if answer.command else None
    if found is not None and found.command != answer.commands:
        found = None  # another command's figure answers something else
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
        "version": found.version if found else None,
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


def counts_of(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Return how many statements have each verdict."""
    return {v: sum(r["verdict"] == v for r in rows) for v in VERDICTS}
