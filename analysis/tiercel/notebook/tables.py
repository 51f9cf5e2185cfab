"""Tables as users of pandas expect them: tidy, with units, and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import pandas as pd


def table(rows: Iterable[Mapping[str, Any]], units: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a table whose ``attrs["units"]`` has a unit for each column that has one."""
    return with_units(pd.DataFrame(list(rows)), units)


def with_units(frame: pd.DataFrame, units: Mapping[str, str]) -> pd.DataFrame:
    """Return the table with the units of its columns; `1` is of ratios and shares."""
    found = frame.copy()
    found.attrs["units"] = {str(c): units[str(c)] for c in found.columns if units.get(str(c))}
    return found


def html(title: str, sentences: Iterable[str], shown: pd.DataFrame, note: str = "") -> str:
    """Return a title, sentences and a table as HTML; everything is escaped."""
    said = "".join(f"<li>{escape(each)}</li>" for each in sentences)
    parts = [f"<h3>{escape(title)}</h3>", f"<ul>{said}</ul>" if said else ""]
    if len(shown):
        parts.append(shown.to_html(index=False, escape=True, border=0))
    if note:
        parts.append(f"<p><small>{escape(note)}</small></p>")
    return "".join(parts)
