"""What a section of a page is made of, and how its template is filled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from tiercel.pages.cells import cell
from tiercel.pages.tables import Table, table
from tiercel.pages.words import name


@dataclass(frozen=True)
class Drawing:
    """A chart: what it shows, its markup (our own, see charts.py), and how to read it."""

    title: str
    markup: str
    caption: str = ""
    wide: bool = False


@dataclass(frozen=True)
class Part:
    """A section of the page. All texts are plain: the page escapes them."""

    anchor: str
    heading: str
    sentences: tuple[str, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[Table, ...] = ()
    folded: tuple[tuple[str, Table], ...] = ()
    notes: tuple[str, ...] = ()
    inner: str = ""
    """A page of its own, shown in a frame when the reader opens it (the template escapes it)."""


def frame_table(caption: str, rows: pd.DataFrame, columns: Sequence[str] | None = None) -> Table:
    """Return a table of a frame's rows, each cell shown by what its column's name says."""
    chosen = [str(column) for column in (rows.columns if columns is None else columns)]
    records = rows[chosen].astype(object).to_dict("records") if len(rows) else []
    texts = {c for c in chosen if any(isinstance(r[c], str | list) for r in records)}
    body = [[_short(cell(c, r[c])) for c in chosen] for r in records]
    words = {c: c.replace("_", " ") for c in chosen}
    return table(caption, list(words.values()), body, [words[c] for c in chosen if c not in texts])


def _short(value: object) -> object:
    return name(value) if isinstance(value, str) else value
