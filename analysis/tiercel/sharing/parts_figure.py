"""Draws a policy's tree of parts: a row for each level, as wide as what each is entitled to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiercel.pages.colours import COLOURS
from tiercel.sharing.parts import Part
from tiercel.units import format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A box narrower than this holds its words upright, one narrower than the second none.
_UPRIGHT, _BARE = 0.085, 0.018


def draw_parts(ax: Axes, tops: Sequence[Part], most: int = 7) -> None:
    """Draw the tree on `ax`; words are left out where a box is too narrow for them.

    Where something was measured, each box says what was got of what was promised, and its bar is as long.
    """
    levels = 1 + max(depth for top in tops for depth, _ in top.walk())
    left = 0.0
    for number, top in enumerate(tops):
        _draw(ax, top, left, 0, COLOURS[number % len(COLOURS)], most)
        left += top.entitled
    ax.set_xlim(0, 1)
    ax.set_ylim(levels, 0)
    names, below = [], list(tops[:1])
    while below:
        names.append(below[0].level)
        below = list(below[0].below[:1])
    rows = [*(f"by {name}" if name in ("size", "priority") else f"{name}s" for name in names[:-1]), "jobs"]
    ax.set_yticks([n + 0.5 for n in range(levels)], rows, fontsize=most + 1)
    ticks = (0, 0.25, 0.5, 0.75, 1)
    ax.set_xticks(ticks, [format_share(x) for x in ticks], fontsize=most + 1)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    for side in ax.spines.values():
        side.set_visible(False)


def _draw(ax: Axes, part: Part, left: float, row: int, colour: str, most: int) -> None:
    from matplotlib.patches import Rectangle

    height = 0.94
    ax.add_patch(
        Rectangle((left, row), part.entitled, height, facecolor=colour, alpha=0.22, edgecolor="none")
    )
    ax.add_patch(Rectangle((left, row), part.entitled, height, fill=False, edgecolor=colour, linewidth=0.8))
    measured = not math.isnan(part.measured)
    if measured:
        long = min(part.measured, part.entitled)
        ax.add_patch(Rectangle((left, row + height - 0.08), long, 0.08, facecolor=colour, edgecolor="none"))
    if part.entitled >= _BARE:
        upright = part.entitled < _UPRIGHT + (0.05 if measured else 0)
        ax.text(
            left + part.entitled / 2, row + height / 2 - 0.03, _words(part, upright),
            ha="center", va="center", fontsize=most, rotation=90 if upright else 0, clip_on=True,
            linespacing=1.25,
        )  # fmt: skip
    for child in part.below:
        _draw(ax, child, left, row + 1, colour, most)
        left += child.entitled


def _words(part: Part, short: bool) -> str:
    """Return what stands in a box; without signs of per cent where there is little room."""
    label = f"{part.level} {part.name}" if part.below else part.name
    if math.isnan(part.measured):
        return f"{label}\n{format_share(part.entitled, 1)}"
    if short:
        return f"{label}\n{100 * part.measured:.1f} of {100 * part.entitled:.1f}"
    return f"{label}\n{format_share(part.measured, 1)} of {format_share(part.entitled, 1)}"
