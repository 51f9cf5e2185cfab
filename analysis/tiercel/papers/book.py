"""The book of answers: what was found for each statement, by which command, when and where.

`tiercel claims --measure` alone writes it, and it is kept with the package: nobody enters a figure by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.documents import Document, parse
from tiercel.errors import UserError

BOOK = Path(__file__).parent / "data" / "answers.json"


class Found(Document):
    """One figure of ours."""

    ours: float
    low: float | None = None
    """With `high`, the 95 % interval of a figure of repetitions; None for one that carries none."""
    high: float | None = None
    command: str
    date: str
    machine: str
    version: str
    """Of the tiercel that found it."""


def read_book(path: Path = BOOK) -> dict[str, Found]:
    """Return the answers found so far, by statement; UserError where the file is damaged."""
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a mapping of statements to answers")
    return {name: parse(Found, answer, f"{path.name}: {name}") for name, answer in content.items()}


def write_book(answers: dict[str, Found], path: Path = BOOK) -> None:
    """Replace the book, by rename."""
    content = {name: answers[name].model_dump(exclude_none=True) for name in sorted(answers)}
    try:
        write_text(path, json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
