"""Training by epoch: utilisation, and the time of each epoch where a layer keeps what the first one has read.

The latter as figure 5 of the HDF5 Cache VOL paper (002) has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from tiercel.report import style
from tiercel.report.picture import Picture, picture
from tiercel.report.sections.base import Context
from tiercel.units import format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: By stack, of each repetition, the values of its epochs.
Epochs = dict[str, list[list[float]]]


@dataclass(frozen=True)
class _Axis:
    """What a figure over epochs shows."""

    name: str
    words: str
    unit: str
    caption: str
    scale: float = 1.0
    mark: float = float("nan")
    """A dashed line, in the unit."""
    most: float | None = None
    """Where the axis ends, in the unit; None: by what is shown."""


def epoch_pictures(
    context: Context, experiment: str, workload: str, engine: str, rows: pd.DataFrame
) -> Iterator[Picture]:
    """Yield the figures over epochs of one workload, of what has several of them.

    `rows`: of its first epochs, at one scale, of one engine, with ``stack``.
    """
    title = f"{context.results.title(experiment, workload)}, {engine}"
    if (rows["computation_time"].fillna(0) > 0).any():
        goal = float(rows["au_goal"].median())
        axis = _Axis(
            "au", "accelerator utilisation by epoch", "AU, %",
            f"Dots are repetitions, lines medians; the dashed line is the pass mark, {format_share(goal)}. "
            "The first epoch is cold.", 100, 100 * goal, 103,
        )  # fmt: skip
        yield from _figure(context, experiment, workload, title, axis, _found(context, rows, _au_by_epoch))
    if (rows["layer"] != "none").any():
        axis = _Axis(
            "seconds", "time of each epoch", "seconds",
            "Dots are repetitions, lines medians, computation included. The first epoch is cold; in later "
            "ones plain reads may come from the page cache, too, where the dataset fits into it.",
        )  # fmt: skip
        yield from _figure(context, experiment, workload, title, axis, _found(context, rows, _time_by_epoch))


def _found(context: Context, rows: pd.DataFrame, by_epoch: Callable[[Path], list[float]]) -> Epochs:
    return {
        str(stack): [e for run in some["run"] for e in [by_epoch(context.folder / "raw" / str(run))] if e]
        for stack, some in rows.groupby("stack", sort=False)
    }


def _figure(
    context: Context, experiment: str, workload: str, title: str, axis: _Axis, found: Epochs
) -> Iterator[Picture]:
    if not any(len(epochs) > 1 for runs in found.values() for epochs in runs):
        return
    made = picture(
        context.figures, f"dl-{axis.name}-{experiment}-{workload}", f"{title}: {axis.words}", axis.caption,
        (5.2, 2.8), partial(_draw, context, found, axis), experiment,
    )  # fmt: skip
    column = "AU" if axis.name == "au" else "time"
    yield replace(made, data=[
        {"storage": context.results.name(stack), "repetition": i, "epoch": j, column: value}
        for stack, runs in found.items() for i, epochs in enumerate(runs, 1)
        for j, value in enumerate(epochs, 1)
    ])  # fmt: skip


def _by_epoch(folder: Path, name: str) -> list[float]:
    """Return a number of each epoch of training from dlkernel's rows; none of another engine's run."""
    try:
        rows = json.loads((folder / "dlkernel.json").read_text())["rows"]
        return [float(row[name]) for row in rows if row["kind"] == "train"]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _time_by_epoch(folder: Path) -> list[float]:
    return _by_epoch(folder, "seconds")


def _au_by_epoch(folder: Path) -> list[float]:
    """Return the utilisation of each epoch of a run: dlkernel's rows, else DLIO's summary."""
    if found := _by_epoch(folder, "au"):
        return found
    for path in sorted(folder.rglob("summary.json")):
        try:
            metric = json.loads(path.read_text())["metric"]
            return [float(au) / 100 for au in metric["train_au_percentage"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return []


def _draw(context: Context, found: Epochs, axis: _Axis, axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    colours, shapes = style.colours(context.results.stacks), style.shapes(context.results.stacks)
    for stack, runs in found.items():
        colour = colours.get(stack, style.COLOURS[-1])
        most = max((len(epochs) for epochs in runs), default=0)
        columns = [[epochs[n] * axis.scale for epochs in runs if len(epochs) > n] for n in range(most)]
        numbers = list(range(1, most + 1))
        axes.plot(numbers, [float(np.median(c)) for c in columns], "-", color=colour, linewidth=1.4,
                  marker=shapes.get(stack, "o"), markersize=5, label=context.results.name(stack))  # fmt: skip
        for number, column in zip(numbers, columns, strict=True):
            axes.plot([number] * len(column), column, ".", color=colour, alpha=0.45, markersize=4)
    if not np.isnan(axis.mark):
        axes.axhline(axis.mark, linestyle="--", color=style.INK, linewidth=0.8, alpha=0.6)
    axes.set_ylim(0, axis.most)
    axes.set_ylabel(axis.unit)
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    cast("Figure", axes.figure).legend(loc="outside lower left", ncols=3)
