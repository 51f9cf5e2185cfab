"""The figure of the section on ceilings: what was measured, and how far the topology lets it go."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiercel.report.axes import log_ticks
from tiercel.report.picture import Picture, picture
from tiercel.units import format_bandwidth, format_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BELOW, _ABOVE = "#0072b2", "#d55e00"
#: More rows than these nobody reads: the table has all of them.
MOST = 24


@dataclass(frozen=True)
class Mark:
    """One row. Bytes, or metadata operations, per second of all nodes together."""

    label: str
    measured: float
    ceiling: float
    stage: str


def ceilings_figure(folder: Path, marks: Sequence[Mark], *, of_metadata: bool = False) -> Picture:
    """Return the figure of those `marks` that are nearest to their ceilings, MOST of them at most."""
    nearest = sorted(marks, key=lambda mark: mark.measured / mark.ceiling, reverse=True)[:MOST]
    shown = [mark for mark in marks if mark in nearest]
    left_out = len(marks) - len(shown)

    def draw(axes: Axes) -> None:
        for y, mark in enumerate(shown):
            colour = _ABOVE if mark.measured > mark.ceiling else _BELOW
            axes.plot([mark.measured, mark.ceiling], [y, y], color="#7f7f7f", linewidth=0.8, zorder=1)
            axes.plot(mark.ceiling, y, "|", color="black", markersize=13, markeredgewidth=1.6)
            axes.plot(mark.measured, y, "o", color=colour, markersize=5.5)
        axes.set_xscale("log")
        ends = [n for mark in shown for n in (mark.measured, mark.ceiling)]
        axes.set_xlim(min(ends) / 1.5, max(ends) * 1.5)
        # Labels and stages have the rest of the width.
        if of_metadata:
            log_ticks(axes.xaxis, format_rate, part=0.5)
        else:
            log_ticks(axes.xaxis, format_bandwidth, base=2, part=0.5)
        axes.set_yticks(range(len(shown)), [mark.label for mark in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        # The stages' names stand at the right edge, where the layout makes room for them.
        stages = axes.twinx()
        stages.set_ylim(axes.get_ylim())
        stages.set_yticks(range(len(shown)), [textwrap.fill(mark.stage, 28) for mark in shown], fontsize=7.5)
        stages.tick_params(length=0)
        stages.grid(visible=False)

    above = sum(mark.measured > mark.ceiling for mark in shown)
    caption = (
        "Dot: the median nearest to its ceiling. Bar: ceiling; the stage that sets it stands at the right."
    )
    caption += f" Orange: above its ceiling ({above})." if above else ""
    caption += f" {left_out} more, further from their ceilings, stand in the table." if left_out else ""
    size = (7.6, 1.3 + 0.3 * len(shown))
    name, title = "ceilings", "Measured against ceilings"
    if of_metadata:
        name, title = f"{name}-metadata", f"{title}: metadata"
    return picture(folder, name, title, caption, size, draw)
