"""The figures of node-local caching: what paper 002 has in tables II and III and in figure 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from tiercel.caching.engine_answers import answers_of
from tiercel.errors import RunFailed
from tiercel.report import style
from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.base import Context

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Of a stack, the bandwidths in MiB/s at each place of the axis.
Lines = dict[str, dict[float, list[float]]]
_MIB = 1024.0**2
_COUNTED = ("epoch", "nodes", "processes")


def caching_pictures(context: Context, rows: pd.DataFrame) -> Iterator[Picture]:
    """Yield checkpoints over the computation beside them and over nodes, and repeated reads by epoch.

    `rows`: measured rows of HDF5 checkpoints and streams, with ``stack``.
    """
    writes = rows[rows["operation"] == "hdf5-write"]
    for (experiment, processes), some in writes.groupby(["experiment", "processes"], sort=False):
        if some["compute_time"].nunique() > 1:
            yield _picture(
                context, str(experiment), f"caching-compute-{experiment}-{processes}",
                f"{_named(context, experiment)}: observed bandwidth over computation",
                "Bytes over the time from creating to closing the file, without the emulated computation "
                "(HDF5 Cache VOL, table II).",
                [("", _over(some, "compute_time"))], "computation of all steps, s",
            )  # fmt: skip
    for experiment, some in writes.groupby("experiment", sort=False):
        over = "nodes" if some["nodes"].nunique() > 1 else "processes"
        panels = [
            (context.results.title(str(experiment), str(workload)), _over(part, over))
            for workload, part in some.groupby("workload", sort=False)
            if part[over].nunique() > 1
        ]
        if panels:
            yield _picture(
                context, str(experiment), f"caching-{over}-{experiment!s}",
                f"{_named(context, experiment)}: observed bandwidth over {over}",
                "Bytes of all processes over the time from creating to closing the file, without the "
                "emulated computation (HDF5 Cache VOL, figure 4).",
                panels, over,
            )  # fmt: skip
    reads = rows[rows["operation"] == "hdf5-read-first"]
    for (experiment, processes), some in reads.groupby(["experiment", "processes"], sort=False):
        panels = [
            (context.results.title(str(experiment), str(workload)), _by_epoch(context, part))
            for workload, part in some.groupby("workload", sort=False)
        ]
        if shown := [(title, lines) for title, lines in panels if any(len(p) > 1 for p in lines.values())]:
            yield _picture(
                context, str(experiment), f"caching-epochs-{experiment}-{processes}",
                f"{_named(context, experiment)}: read bandwidth by epoch",
                "The first epoch is cold; later ones of plain HDF5 may come from the page cache, where the "
                "file fits into it (HDF5 Cache VOL, table III).",
                shown, "epoch",
            )  # fmt: skip


def _named(context: Context, experiment: object) -> str:
    return context.results.experiment_title(str(experiment))


def _over(rows: pd.DataFrame, column: str) -> Lines:
    found: Lines = {}
    for key, part in rows.groupby(["stack", column]):
        stack, place = cast(tuple[str, float], key)
        found.setdefault(str(stack), {})[float(place)] = [float(b) / _MIB for b in part["bandwidth"]]
    return found


def _by_epoch(context: Context, rows: pd.DataFrame) -> Lines:
    found: Lines = {}
    for stack, run in zip(rows["stack"], rows["run"], strict=True):
        for number, bandwidth in enumerate(epochs_of(context.folder / "raw" / str(run)), 1):
            found.setdefault(str(stack), {}).setdefault(float(number), []).append(bandwidth / _MIB)
    return found


def epochs_of(folder: Path) -> list[float]:
    """Return the bandwidth of each epoch of a run, as long as its slowest process, in bytes a second."""
    try:
        answers, _ = answers_of(folder)
        return [
            sum(r["bytes"] for r in runs) / max(r["seconds"] for r in runs)
            for runs in zip(*answers, strict=True)
        ]
    except (RunFailed, ValueError, KeyError, TypeError, ZeroDivisionError):
        return []


def _picture(
    context: Context, experiment: str, name: str, title: str, caption: str,
    panels: Sequence[tuple[str, Lines]], over: str,
) -> Picture:  # fmt: skip
    made = picture_of(
        context.figures, name, title, f"Dots are repetitions, lines medians. {caption}",
        (5.4 if len(panels) == 1 else 3.6 * len(panels) + 0.6, 3.0),
        partial(_draw, context, panels, over), experiment,
    )  # fmt: skip
    return replace(made, data=[
        {**({"workload": panel} if panel else {}), "storage": context.results.name(stack), over: place,
         "repetition": number, "bandwidth": _MIB * value}
        for panel, lines in panels for stack, places in lines.items()
        for place, values in sorted(places.items()) for number, value in enumerate(values, 1)
    ])  # fmt: skip


def _draw(context: Context, panels: Sequence[tuple[str, Lines]], over: str, figure: Figure) -> None:
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, lines) in zip(row, panels, strict=True):
        _panel(context, axes, lines, whole=over in _COUNTED)
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel(over)
    row[0].set_ylabel("MiB/s")
    handles = {str(line.get_label()): line for axes in row for line in axes.get_lines() if _told(line)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)


def _told(line: Any) -> bool:
    return not str(line.get_label()).startswith("_")


def _panel(context: Context, axes: Axes, lines: Lines, whole: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    colours, shapes = style.colours(context.results.stacks), style.shapes(context.results.stacks)
    for stack, places in sorted(lines.items(), key=lambda line: list(colours).index(line[0])):
        x, colour = sorted(places), colours[stack]
        axes.plot(x, [float(np.median(places[p])) for p in x], color=colour, linewidth=1.4, markersize=5,
                  marker=shapes[stack], label=context.results.name(stack))  # fmt: skip
        for place in x:
            axes.plot(
                [place] * len(places[place]), places[place], ".", color=colour, alpha=0.45, markersize=4
            )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(cast(Any, MaxNLocator(integer=whole, nbins=8)))
