"""The picture of the first screen: how fast each storage is beside the best one that keeps files."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tiercel.report import style, words
from tiercel.report.axes import log_ticks
from tiercel.report.classes import WorkloadClass, against_kept
from tiercel.report.data import Record, Results
from tiercel.report.packing import BARS, first_of
from tiercel.report.picture import Picture, picture
from tiercel.report.style import INK, PAPER
from tiercel.statistics.ranking import Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One shape for each storage, so that colour is not needed to tell them apart.
NAME = "verdict-factors"
_WIDTH, _ROW = 5.0, 0.46
#: Letters in a line of a row's label, how many lines a long one has, and inches from one to the next.
_LETTERS, _LINES, _LINE = 66, 2, 0.14
#: Letters of a storage's name below the axes where there are two columns of them, and where there is one.
_SHORT, _LONG = 22, 56
#: Inches of a line of names, and how many lines have room in a figure without more.
_NAMES, _ROOM = 0.18, 2


def verdict_picture(
    results: Results, folder: Path, found: Sequence[WorkloadClass], shown: Collection[str]
) -> Picture | None:
    """Return the picture of the storages of the stacks `shown`; None where nothing is compared."""
    storages = {stack.partition("+")[0] for stack in shown}
    rows = [(c, [s for s in _points(c) if s.stack.partition("+")[0] in storages]) for c in found]
    every = [(c, points) for c, points in rows if points]
    rows = every[:BARS]
    if not rows:
        return None
    several = len({c.ranking.reference for c, _ in rows}) > 1
    base = f"the best storage{' that keeps files' if against_kept(results, [c for c, _ in rows]) else ''}"
    if len(storages) == 1:  # the same storage, through different layers
        base = "the best of them"
    if not several:
        base = results.name(rows[0][0].ranking.reference)
    most = max(len(points) for _, points in rows)
    labels = _labels([c.name for c, _ in rows])
    points_high = _ROW + 0.05 * max(0, most - 2)
    row_high = points_high + _LINE * (max(map(len, labels)) - 1)
    named = _named(results, rows, several)
    lines = -(-len(named) // _columns(named))
    made = picture(
        folder,
        NAME,
        f"How many times as fast as {base}",
        f"Right of 1× is faster, left is slower. {_bars(rows)} "
        f"Filled: decided; hollow: not decided. Logarithmic axis.{first_of(every)}",
        (_WIDTH, 1.0 + row_high * len(rows) + _NAMES * max(0, lines - _ROOM)),
        lambda axes: _draw(results, axes, rows, named, several, labels, points_high / row_high),
    )
    return replace(made, data=[_record(results, c, s) for c, points in every for s in points])


def _record(results: Results, found: WorkloadClass, standing: Standing) -> Record:
    """Return what a point says."""
    row = standing.rows[0]
    return {
        "workload": found.name,
        "storage": results.name(standing.stack),
        "against": results.name(standing.against),
        "factor": row["ratio"],
        "low": row["low"],
        "high": row["high"],
        "answer": "not decided" if standing.outcome == "undecided" else "decided",
    }


def _bars(rows: Sequence[tuple[WorkloadClass, list[Standing]]]) -> str:
    """Say what bars mean, and why a point has none."""
    single = [c.single(s.stack, s.against) for c, points in rows for s in points]
    known = "Bars: where the true factor lies with 95 % certainty."
    none = "of a single repetition, whose true factor is not known."
    if all(single):
        return f"Points are {none}"
    return f"{known} Points without one are {none}" if any(single) else known


def _points(found: WorkloadClass) -> list[Standing]:
    ranking = found.ranking
    return [s for s in ranking.standings.values() if s.rows and s.against == ranking.reference]


def _labels(names: Sequence[str]) -> list[list[str]]:
    """Return the lines of each label, at most two; cut in the middle, where they are likest, if that is not
    enough."""
    shorter = words.told_apart(names, _LETTERS * _LINES - 24)
    found = [textwrap.wrap(name, _LETTERS) for name in shorter]
    last = _LINES - 1
    return [
        [*lines[:last], *[words.clipped(" ".join(lines[last:]), _LETTERS)] * (len(lines) > last)]
        for lines in found
    ]


def _draw(
    results: Results,
    axes: Axes,
    rows: Sequence[tuple[WorkloadClass, list[Standing]]],
    named: Mapping[str, str],
    several: bool,
    labels: Sequence[Sequence[str]],
    share: float,
) -> None:
    """`share`: of a row's height, what a label of one line and the points below it have."""
    from matplotlib.lines import Line2D

    stacks = list(results.stacks)
    colours = style.colours(stacks)
    shape = style.shapes(stacks)
    edges = [1.0]
    for y, ((found, points), lines) in enumerate(zip(rows, labels, strict=True)):
        if y % 2 == 0:
            axes.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.045, linewidth=0)
        foot = y + 0.5
        middle = foot - 0.34 * share
        axes.text(
            0.012, foot - 0.6 * share, "\n".join(lines), transform=axes.get_yaxis_transform(), va="bottom",
            fontsize=8.5,
        )  # fmt: skip
        axes.plot([1, 1], [foot - 0.54 * share, foot - 0.1 * share], color=INK, linewidth=1.2, zorder=1)
        if several:
            best = found.ranking.reference
            axes.plot(1, middle, shape[best], color=colours[best], markersize=6.5, zorder=4)
        for standing, place in zip(points, _beside(middle, len(points), share), strict=True):
            row, stack = standing.rows[0], standing.stack
            edges += [row["low"], row["high"]]
            decided = standing.outcome != "undecided"
            axes.plot([row["low"], row["high"]], [place] * 2, color=colours[stack], linewidth=1.6)
            axes.plot(
                row["ratio"], place, shape[stack], color=colours[stack], markersize=7,
                markerfacecolor=colours[stack] if decided else PAPER, zorder=3,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(min(min(edges) / 1.2, 0.8), max(max(edges) * 1.2, 1.25))
    log_ticks(axes.xaxis, lambda v: f"{v:g}×")
    axes.set_yticks([])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    handles = [
        Line2D([], [], color=colours[s], marker=shape[s], linestyle="", markersize=6.5, label=name)
        for s, name in named.items()
    ]
    cast("Figure", axes.figure).legend(handles=handles, loc="outside lower left", ncols=_columns(named))


def _beside(middle: float, count: int, share: float) -> list[float]:
    """Return a height for each point of a row, so that none hides another."""
    step = min(0.12, 0.4 / max(count, 1)) * share
    return [middle + (i - (count - 1) / 2) * step for i in range(count)]


def _named(
    results: Results, rows: Sequence[tuple[WorkloadClass, list[Standing]]], several: bool
) -> dict[str, str]:
    """Return the stacks that are drawn, and their names: no longer than they must be to be told apart."""
    drawn = {s.stack for _, points in rows for s in points}
    drawn |= {c.ranking.reference for c, _ in rows} if several else set()
    stacks = [stack for stack in results.stacks if stack in drawn]
    names = words.told_apart([results.name(stack) for stack in stacks], _LONG)
    return {
        stack: f"{name} (memory)" if stack in results.memory and "memory" not in name.lower() else name
        for stack, name in zip(stacks, names, strict=True)
    }


def _columns(named: Mapping[str, str]) -> int:
    return 2 if max(map(len, named.values())) < _SHORT + len(" (memory)") else 1
