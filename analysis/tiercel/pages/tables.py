"""A table of a page as plain cells: what is shown, what it is sorted by, how it is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cell:
    """One cell of a table: what is shown, and what it is sorted by."""

    text: str
    sort: float | str = ""
    kind: str = ""
    href: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page. `numeric` columns are set right."""

    caption: str
    """``Title. One line of explanation``."""
    columns: tuple[str, ...]
    numeric: frozenset[str]
    rows: list[tuple[str, list[Cell]]]
    """(anchor, cells) for each row."""

    @property
    def title(self) -> str:
        """Return what the table shows: the first sentence of its caption."""
        return self.caption.partition(". ")[0].rstrip(".")

    @property
    def explanation(self) -> str:
        """Return the rest of the caption; empty where the title is all of it."""
        return self.caption.partition(". ")[2].rstrip(".")


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[str] = ()
) -> Table:
    """Return a table of plain values. A cell may be a value, or (text, value to sort by)."""

    def cell(value: Any) -> Cell:
        if isinstance(value, tuple):
            return Cell(str(value[0]), value[1])
        return Cell("" if value is None else str(value), value if isinstance(value, int | float) else "")

    return Table(caption, tuple(columns), frozenset(numeric), [("", [cell(v) for v in r]) for r in rows])
