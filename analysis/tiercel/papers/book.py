"""The book of answers: what was found for each statement, by which command, when and where.

`tiercel claims --measure` alone writes it, and it is kept with the package: nobody enters a figure by hand.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.documents import Document, parse
from tiercel.errors import UserError

BOOK = Path(__file__).parent / "data" / "answers.json"
#: Sources and what they are built by; results of building lie beside them.
_SOURCES = {".py", ".rs", ".c", ".h", ".toml", ".lock", ".yaml", ".build", ".mk"}
_BUILT = {"target", "build", "__pycache__", ".pytest_cache"}
#: Modules of a subject that show what its others found, by their names: they decide no figure, which a test
#: holds (tests/papers/test_rests_on.py), and so the text of a legend makes none stale.
SHOWING = re.compile(r"(section|findings)(_.*)?\.py|(.*_figure|showing)\.py")


class Found(Document):
    """One figure of ours."""

    ours: float
    low: float | None = None
    """With `high`, the 95 % interval of a figure of repetitions; None for one that carries none."""
    high: float | None = None
    command: str
    date: str
    machine: str
    digest: str
    """Of what the figure rests on, when it was found."""
    reading: str | None = None
    """Of the function that took it out of what was printed; None in books from before it was kept."""


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


def digest_of(parts: Iterable[str], root: Path) -> str | None:
    """Return 12 hexadecimal digits of the sources in files and folders below `root`.

    None where a part is not there: an installed package has no native sources, and cannot tell.
    """
    found = hashlib.sha256()
    for part in parts:
        path = root / part
        if not path.exists():
            return None
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if not file.is_file() or file.suffix not in _SOURCES or SHOWING.fullmatch(file.name):
                continue
            if not _BUILT & set(file.relative_to(root).parts):
                found.update(f"{file.relative_to(root)}\0".encode())
                found.update(file.read_bytes() + b"\0")
    return found.hexdigest()[:12]
