"""The picture of advice: what a run takes by each placement, with copying."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tiercel.advice.answer import Advice, Result
from tiercel.advice.bench import HOME
from tiercel.advice.words import title
from tiercel.report import style
from tiercel.report.picture import Picture, picture
from tiercel.units import format_latency

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(advice: Advice, folder: Path) -> list[Picture]:
    """Draw the placements into `folder`; nothing where fewer than two were measured."""
    judged = [advice.results[HOME], *(j.result for j in advice.judged)] if advice.judged else []
    if not judged:
        return []
    caption = (
        "Each bar is the median run time of the program, then copying in and out. Each dot is one run. "
        "Runs alternated "
        "between the placements."
    )
    size = (7.4, 1.7 + 0.42 * len(judged))
    return [
        picture(folder, "placements", "Time of one run", caption, size, lambda a: _bars(a, advice, judged))
    ]


def _bars(axes: Axes, advice: Advice, results: list[Result]) -> None:
    rows = list(range(len(results)))[::-1]
    runs = [median(r.seconds) for r in results]
    copies = [0.0 if r.candidate.name == HOME else advice.copying(r) for r in results]
    axes.barh(rows, runs, color=style.COLOURS[0], label="run", height=0.62)
    axes.barh(
        rows,
        copies,
        left=runs,
        color=style.PAPER,
        edgecolor=style.COLOURS[1],
        hatch="////",
        label="copying in and out",
        height=0.62,
        linewidth=0.8,
    )
    for row, result in zip(rows, results, strict=True):
        axes.plot(result.seconds, [row] * len(result.seconds), ".", color=style.INK, markersize=4)
    longest = max(
        *(second for r in results for second in r.seconds),
        *(a + b for a, b in zip(runs, copies, strict=True)),
    )
    best = advice.advised.name if advice.advised else HOME
    for row, result, run, copying in zip(rows, results, runs, copies, strict=True):
        axes.text(
            max(run + copying, *result.seconds, 0) + 0.015 * longest,
            row,
            format_latency(run + copying),
            va="center",
            fontsize=8.5,
            fontweight="bold" if result.candidate.name == best else "normal",
        )
    names = [title(advice, r) + (" ◀ advised" if r.candidate.name == best else "") for r in results]
    axes.set_yticks(rows, [n if len(n) < 60 else f"…{n[-58:]}" for n in names])
    axes.set_xlim(0, longest * 1.16)
    axes.set_xlabel("seconds")
    axes.grid(visible=False, axis="y")
    axes.figure.legend(loc="outside lower center", ncols=2)
