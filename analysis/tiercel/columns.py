"""Columns of tables: name, type, unit, meaning; and lists of them to which each subject adds its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column. `kind` is a pandas dtype; `unit` is empty for words and counts."""

    name: str
    kind: str
    unit: str
    meaning: str
    #: Of a column of kind ROWS, which holds a list of rows: their columns.
    columns: tuple[Column, ...] = ()


WORD, COUNT, NUMBER, FLAG, WORDS, ROWS = "string", "Int64", "float64", "boolean", "list", "rows"


class Declared:
    """Columns in the order in which modules declare them.

    `fill` is called before they are first looked at: it imports what declares them.
    """

    def __init__(self, what: str, fill: Callable[[], object], core: tuple[Column, ...] = ()) -> None:
        self._what, self._fill = what, fill
        self._columns = {column.name: column for column in core}

    def declare(self, *columns: Column) -> None:
        """Add columns. ValueError for a name that is there with another meaning."""
        for column in columns:
            there = self._columns.setdefault(column.name, column)
            if there != column:
                raise ValueError(f"{self._what} {column.name!r} is declared twice: {there} and {column}")

    def __iter__(self) -> Iterator[Column]:
        self._fill()
        return iter(tuple(self._columns.values()))
