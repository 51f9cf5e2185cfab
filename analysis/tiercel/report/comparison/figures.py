"""The picture of a comparison: one panel for each storage, ratios with intervals over the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.compare.answer import Answer, Pair
from tiercel.compare.judging import Row
from tiercel.report import style
from tiercel.report.comparison.sentences import SIGNS, stack_of, title_of
from tiercel.report.data import Record
from tiercel.report.figures import draw_ratios
from tiercel.report.picture import Picture, picture

#: Most rows of one panel, and most panels of a page.
_ROWS, _PANELS = 24, 16
_SHAPES = {"measured": "dots", "imported": "squares", "simulated": "diamonds"}
_MIXED = "P"


@dataclass(frozen=True)
class _Panel:
    name: str
    pair: Pair
    origin: str
    stack: str
    rows: list[Row]


def draw(answer: Answer, folder: Path) -> list[Picture]:
    """Draw each pair's panels into `folder`; numbers of different origins never share one."""
    return [_panel(folder, p.name, p.pair, p.origin, p.stack, p.rows) for p in _panels(answer)]


def figure_names(answer: Answer) -> list[str]:
    """Return the names of the figures that `draw` makes."""
    return [p.name for p in _panels(answer)]


def _panels(answer: Answer) -> list[_Panel]:
    found: list[_Panel] = []
    for number, pair in enumerate(answer.pairs, 1):
        panels: dict[tuple[str, str], list[Row]] = {}
        for origin in pair.origins:
            for row in pair.rows:
                if row.origin == origin and math.isfinite(row.comparison.ratio):
                    panels.setdefault((origin, stack_of(row)), []).append(row)
        for place, ((origin, stack), rows) in enumerate(panels.items(), 1):
            found.append(_Panel(f"ratio-{number}-{place}", pair, origin, stack, rows))
    return found[:_PANELS]


def _panel(folder: Path, name: str, pair: Pair, origin: str, stack: str, rows: Sequence[Row]) -> Picture:
    shown = sorted(rows, key=lambda r: -abs(math.log(r.comparison.ratio)))[:_ROWS]
    shown = [row for row in rows if row in shown]
    names = _names(shown)
    title = f"{stack}: {pair.other.name} over {pair.base.name}"
    shapes = _SHAPES.get(origin, "crosses")
    caption = (
        f"Ratio of {pair.other.name} to {pair.base.name}, over all scales that both have: left of 1 it is "
        f"slower, right of 1 faster. Bars are 95 % intervals, the grey bands the ratios of two layout "
        f"sessions; filled {shapes} ({SIGNS['slower']} slower, {SIGNS['faster']} faster) are "
        "proven, hollow ones are not. Logarithmic axis."
    )
    if len(shown) < len(rows):
        caption += f" The {len(shown)} of {len(rows)} that differ most."
    if origin != "measured":
        title += f" ({origin})"
        caption += f" The numbers are {origin}."
    marker = style.MARKERS.get(origin, _MIXED)
    records = [_record(row) for row in shown]
    return picture(
        folder, name, title, caption, (6.2, 1.25 + 0.3 * len(shown)),
        lambda axes: draw_ratios(axes, records, names, marker),
    )  # fmt: skip


def _record(row: Row) -> Record:
    return row.comparison.columns()


def _names(rows: Sequence[Row]) -> list[str]:
    """Return the names of a panel's rows; with a sign where beyond noise."""
    titles = [title_of(row.match.base) for row in rows]
    names = []
    for row, title in zip(rows, titles, strict=True):
        sign = f" {SIGNS[row.outcome]}" if row.outcome != "undecided" else ""
        more = f" ({row.match.base['experiment']})" if titles.count(title) > 1 else ""
        name = title + more
        names.append((name if len(name) <= 40 else f"{name[:39].rstrip()}…") + sign)
    return names
