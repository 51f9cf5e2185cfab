"""Columns of tables: name, type, unit, meaning; and lists of them to which each subject adds its own."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Columns in the order in which modules declare them."""

    def __init__(self, what: str, core: tuple[Column, ...] = ()) -> None:
        self._what = what
        self._columns = {column.name: column for column in core}

    def declare(self, *columns: Column) -> None:
        """Add columns. ValueError for a name that is there with another meaning."""
        for column in columns:
            there = self._columns.setdefault(column.name, column)
            if there != column:
                raise ValueError(f"{self._what} {column.name!r} is declared twice: {there} and {column}")

    def __iter__(self) -> Iterator[Column]:
        return iter(self._columns.values())

    def __contains__(self, name: object) -> bool:
        return name in self._columns
