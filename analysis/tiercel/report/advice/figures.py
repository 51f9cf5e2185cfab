"""The picture of advice: what a run takes by each way, split into what it does and what it waits for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tiercel.advice.answer import Advice
from tiercel.advice.judge import WayResult
from tiercel.advice.words import way_title
from tiercel.report import style
from tiercel.report.picture import Picture, picture
from tiercel.units import format_latency

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(advice: Advice, folder: Path) -> list[Picture]:
    """Draw the ways into `folder`; nothing where there are none."""
    if advice.io is None or not advice.ways:
        return []
    ways = list(advice.ways)
    measured = (
        "replays of the whole run" if advice.mode == "replayed" else "replays of its I/O, runs reckoned"
    )
    caption = (
        f"Each bar is the time of one run by one way of placing its files: what it computes or "
        f"waits for other than "
        f"I/O, what it waits for I/O, and copying in and out. Medians of {ways[0].n} {measured}; "
        f"the line is the "
        "95 % interval of the run without copying."
    )
    size = (7.4, 1.7 + 0.42 * len(ways))
    return [picture(folder, "ways", "Time of one run", caption, size, lambda a: _bars(a, advice, ways))]


def _bars(axes: Axes, advice: Advice, ways: list[WayResult]) -> None:
    io = advice.io
    assert io is not None
    other = io.run - io.waited
    rows = list(range(len(ways)))[::-1]
    waits = [max(0.0, w.run.median - other) for w in ways]
    does = [w.run.median - wait for w, wait in zip(ways, waits, strict=True)]
    copies = [w.copies for w in ways]
    axes.barh(rows, does, color="0.72", label="computes", height=0.62)
    axes.barh(rows, waits, left=does, color=style.COLOURS[0], label="waits for I/O", height=0.62)
    ends = [w.run.median for w in ways]
    axes.barh(
        rows, copies, left=ends, color=style.PAPER, edgecolor=style.COLOURS[1], hatch="////", label="copying",
        height=0.62, linewidth=0.8,
    )  # fmt: skip
    errors = [
        [max(0.0, w.run.median - w.run.low) for w in ways],
        [max(0.0, w.run.high - w.run.median) for w in ways],
    ]
    axes.errorbar(ends, rows, xerr=errors, fmt="none", ecolor=style.INK, elinewidth=1.1, capsize=2.5)
    longest = max(e + c for e, c in zip(ends, copies, strict=True))
    advised = advice.verdict.way.name if advice.verdict and not advice.refused else ""
    for row, way in zip(rows, ways, strict=True):
        text = format_latency(way.run.median + way.copies)
        axes.text(
            way.run.median + way.copies + 0.015 * longest, row, text, va="center", fontsize=8.5,
            fontweight="bold" if way.name == advised else "normal",
        )  # fmt: skip
    names = [way_title(advice, w) + (" ◀ advised" if w.name == advised else "") for w in ways]
    axes.set_yticks(rows, names)
    axes.set_xlim(0, longest * 1.16)
    axes.set_xlabel("seconds")
    axes.grid(visible=False, axis="y")
    axes.figure.legend(loc="outside lower center", ncols=3)
