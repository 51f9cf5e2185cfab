"""``tc.compare``: two or more evaluations side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from tiercel.compare.answer import Answer
from tiercel.compare.ask import compared, sides_of
from tiercel.notebook.tables import html, table
from tiercel.project import project_root
from tiercel.report.comparison.records import document, matches


@dataclass(frozen=True, repr=False)
class Comparison:
    """What a comparison says; the first side is the baseline. `compare` makes it."""

    answer: Answer

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row for each match: the ratio of the other side to the baseline, its interval, the outcome."""
        found = [
            {"baseline": pair.base.name, "other": pair.other.name, **row}
            for pair in self.answer.pairs
            for row in matches(pair)
        ]
        return table(found, {"ratio": "1", "low": "1", "high": "1"})

    @property
    def summary(self) -> list[str]:
        """The comparison in sentences."""
        return list(self._document["summary"])

    @property
    def circumstances(self) -> pd.DataFrame:
        """What else differs between the sides, which may be the cause."""
        return pd.DataFrame(self._document["circumstances"])

    @cached_property
    def _document(self) -> dict[str, Any]:
        return document(self.answer)

    def __repr__(self) -> str:
        return (
            f"<Comparison of {' and '.join(side.name for side in self.answer.sides)}: {len(self.rows)} rows>"
        )

    def _repr_html_(self) -> str:
        shown = self.rows
        kept = ["other", "experiment", "workload", "operation", "ratio", "low", "high", "outcome"]
        shown = shown[shown["kind"] == "verdict"][[c for c in kept if c in shown]] if len(shown) else shown
        base, *others = (side.name for side in self.answer.sides)  # as its ratios and sentences have it
        return html(f"{' and '.join(others)} against {base}", self.summary, shown)


def compare(
    *sides: str,
    study: str | None = None,
    layer: list[str] | None = None,
    storage: list[str] | None = None,
    storage_map: Mapping[str, str] | None = None,
    margin: float = 0.0,
) -> Comparison:
    """Compare the sides with the first one, as `tiercel compare` does; no page is written.

    A side is a site, a folder with results or an archive of one, with @DATE, +LAYER, :storage=NAME where it
    is narrowed. `margin`: ratios up to this from 1 are noise. UserError for what cannot be compared.
    """
    root = project_root()
    spellings = sides_of(sides, root, study, layer or [], storage or [])
    return Comparison(compared(spellings, root, storage_map or {}, margin))
