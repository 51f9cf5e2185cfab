"""Training over nodes or processes: I/O that computation hides and that it does not, and the two throughputs.

As figures 4 to 6 of the VAST study (paper 004) have them. Where nothing is computed, all I/O is felt, and
both throughputs are one: drawn is the time of the epoch beside it, as figures 14 and 15 of DLIO (paper 000).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from tiercel.report import style
from tiercel.report.axes import WIDE, log_ticks
from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.base import Context
from tiercel.report.words import unit as unit_of
from tiercel.report.words import value as value_of
from tiercel.statistics.summary import Summary, summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Wall-clock time of the job in I/O: what part, and its shade.
_IO = (("nonoverlapped_io", "I/O, not hidden", 1.0), ("overlapped_io", "I/O behind computation", 0.45))
#: Inches that a column of the page has room for: wider figures are drawn smaller there.
_WIDTH = 5.2
#: Of a training without computation: seconds, and bytes a second.
_EPOCH = (("total_time", "time of the epoch"), ("bandwidth", "throughput"))
_SPEEDS = (("app_throughput", "application throughput"), ("system_throughput", "system throughput"))


@dataclass(frozen=True)
class Scale:
    """So many processes on so many nodes."""

    nodes: int
    processes: int


def scales_of(rows: pd.DataFrame) -> list[Scale]:
    """Return the scales of training's rows, the smallest first."""
    found = {(int(n), int(p)) for n, p in zip(rows["nodes"], rows["processes"], strict=True)}
    return [
        Scale(nodes, processes) for nodes, processes in sorted(found, key=lambda pair: (pair[1], pair[0]))
    ]


def scale_words(scales: Sequence[Scale]) -> tuple[str, list[str]]:
    """Return what scales are counted in, and each one's word: nodes where only they vary."""
    if len({s.processes / s.nodes for s in scales}) == 1 and len({s.nodes for s in scales}) > 1:
        return "nodes", [str(s.nodes) for s in scales]
    if len({s.nodes for s in scales}) == 1:
        return "processes", [str(s.processes) for s in scales]
    return "processes (nodes)", [f"{s.processes} ({s.nodes})" for s in scales]


def scaling_pictures(
    context: Context, experiment: str, workload: str, rows: pd.DataFrame
) -> Iterator[Picture]:
    """Yield the figures of one workload that ran at several scales.

    `rows`: of its first epochs, of one engine, with ``stack``. Times in s, throughputs in B/s.
    """
    scales = scales_of(rows)
    if len(scales) < 2:
        return
    over, labels = scale_words(scales)
    title = context.results.title(experiment, workload)
    stacks = [stack for stack in context.results.stacks if stack in set(rows["stack"])]
    if not (rows["computation_time"].fillna(0) > 0).any():
        yield from _epoch_picture(context, experiment, workload, rows, scales)
        return
    if (rows["computation_time"].fillna(0) > 0).all():
        times = _cells(rows, [name for name, _, _ in _IO])
        if times:
            made = picture_of(
                context.figures, f"dl-io-{experiment}-{workload}", f"{title}: I/O time over {over}",
                "Wall-clock time of the first epoch's I/O, medians. Only what computation does not hide "
                "delays training.",
                (max(_WIDTH, 1.6 + 0.32 * len(stacks) * len(scales) + 0.3 * len(scales)), 2.9),
                partial(_draw_times, context, times, stacks, scales, (over, labels)), experiment,
            )  # fmt: skip
            yield replace(
                made, data=_data(context, times, stacks, scales, {n: f"{label}, time" for n, label, _ in _IO})
            )
    named = [(name, words) for name, words in _SPEEDS if name in rows and rows[name].notna().any()]
    speeds = _cells(rows, [name for name, _ in named])
    if speeds:
        made = picture_of(
            context.figures, f"dl-throughput-{experiment}-{workload}", f"{title}: throughput over {over}",
            "Application: bytes over the I/O time that computation does not hide; system: over all of it. "
            "Medians of the first epoch with their 95 % interval (of fewer than six repetitions, the range).",
            (max(_WIDTH, 0.6 + 2.4 * len(named)), 2.9),
            partial(_draw_speeds, context, speeds, stacks, scales, (over, labels), named), experiment,
        )  # fmt: skip
        yield replace(made, data=_data(context, speeds, stacks, scales, dict(named)))


def _epoch_picture(
    context: Context, experiment: str, workload: str, rows: pd.DataFrame, scales: Sequence[Scale]
) -> Iterator[Picture]:
    """Yield time and throughput of the first epoch, of a training that computes nothing."""
    over, labels = scale_words(scales)
    stacks = [stack for stack in context.results.stacks if stack in set(rows["stack"])]
    named = [pair for pair in _EPOCH if pair[0] in rows and rows[pair[0]].notna().any()]
    cells = _cells(rows, [name for name, _ in named])
    if not cells:
        return
    made = picture_of(
        context.figures, f"dl-epoch-{experiment}-{workload}",
        f"{context.results.title(experiment, workload)}: first epoch over {over}",
        "Nothing is computed: an epoch is its I/O. Dotted: the time at the smallest scale, divided by how "
        "many times as many processes there are. Medians with their 95 % interval (of fewer than six "
        "repetitions, the range). (DLIO, Figures 14 and 15)",
        (_WIDTH, 2.9), partial(_draw_epoch, context, cells, stacks, scales, (over, labels), named),
        experiment,
    )  # fmt: skip
    yield replace(made, data=_data(context, cells, stacks, scales, dict(named)))


Cells = dict[tuple[str, Scale, str], Summary]


def _cells(rows: pd.DataFrame, names: Sequence[str]) -> Cells:
    found: Cells = {}
    for key, some in rows.groupby(["stack", "nodes", "processes"], sort=False):
        stack, nodes, processes = cast(tuple[Any, Any, Any], key)
        for name in names:
            summary = summarize(some[name]) if name in some else None
            if summary and summary.n:
                found[str(stack), Scale(int(nodes), int(processes)), name] = summary
    return found


def _data(
    context: Context, cells: Cells, stacks: Sequence[str], scales: Sequence[Scale], named: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return a row for each storage and scale, with median and interval of what is `named`."""
    found = []
    for stack in stacks:
        for scale in scales:
            row: dict[str, Any] = {
                "storage": context.results.name(stack), "nodes": scale.nodes, "processes": scale.processes,
            }  # fmt: skip
            seen = {name: cells[stack, scale, name] for name in named if (stack, scale, name) in cells}
            for name, words in named.items():
                summary = seen.get(name)
                row[words] = summary and summary.median
                row[f"{words}, low"], row[f"{words}, high"] = (
                    summary and summary.low,
                    summary and summary.high,
                )
            if seen:
                found.append({**row, "repetitions": max(summary.n for summary in seen.values())})
    return found


def _draw_times(
    context: Context, cells: Cells, stacks: Sequence[str], scales: Sequence[Scale],
    words: tuple[str, list[str]], figure: Figure,
) -> None:  # fmt: skip
    from matplotlib.patches import Patch

    axes = figure.add_subplot()
    colours = style.colours(context.results.stacks)
    width = 0.8 / len(stacks)
    for i, stack in enumerate(stacks):
        for x, scale in enumerate(scales):
            bottom = 0.0
            for name, _, shade in _IO:
                found = cells.get((stack, scale, name))
                if found:
                    axes.bar(
                        x + (i - (len(stacks) - 1) / 2) * width, found.median, width * 0.92, bottom=bottom,
                        color=colours[stack], alpha=shade, edgecolor=style.INK, linewidth=0.5,
                    )  # fmt: skip
                    bottom += found.median
    _scale_axis(axes, words)
    axes.set_ylabel("seconds")
    handles = [Patch(facecolor=colours[stack], label=context.results.name(stack)) for stack in stacks]
    handles += [
        Patch(facecolor=style.COLOURS[-1], alpha=shade, edgecolor=style.INK, linewidth=0.5, label=label)
        for _, label, shade in _IO
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=2)


def _draw_speeds(
    context: Context, cells: Cells, stacks: Sequence[str], scales: Sequence[Scale],
    words: tuple[str, list[str]], named: Sequence[tuple[str, str]], figure: Figure,
) -> None:  # fmt: skip
    medians = {name: [found.median for (_, _, of), found in cells.items() if of == name] for name, _ in named}
    every = [median for some in medians.values() for median in some]
    # One kind of axis in all panels: a system would look near in one and far away in the other.
    log = min(every) > 0 and any(max(some) > WIDE * min(some) for some in medians.values() if some)
    divisor, unit = (1.0, "") if log else unit_of("bandwidth", max(every))
    for axes, (name, label) in zip(figure.subplots(1, len(named), squeeze=False).flat, named, strict=True):
        _stack_points(context, axes, cells, stacks, scales, name, divisor)
        _scale_axis(axes, words)
        if log:
            axes.set_yscale("log")
            log_ticks(axes.yaxis, partial(value_of, "bandwidth"), 2)
        else:
            axes.set_ylim(bottom=0)
        axes.set_ylabel(unit)
        axes.set_title(label, fontsize=9)
    handles, names = _all_handles(figure)
    figure.legend(handles, names, loc="outside lower left", ncols=2)


def _draw_epoch(
    context: Context, cells: Cells, stacks: Sequence[str], scales: Sequence[Scale],
    words: tuple[str, list[str]], named: Sequence[tuple[str, str]], figure: Figure,
) -> None:  # fmt: skip
    colours = style.colours(context.results.stacks)
    for axes, (name, label) in zip(figure.subplots(1, len(named), squeeze=False).flat, named, strict=True):
        every = [found.median for (_, _, of), found in cells.items() if of == name]
        divisor, unit = (1.0, "seconds") if name == "total_time" else unit_of(name, max(every))
        drawn = _stack_points(context, axes, cells, stacks, scales, name, divisor)
        for stack, points in drawn.items() if name == "total_time" else ():
            first, found = points[0]
            ideal = [found.median * scales[first].processes / scales[x].processes for x, _ in points]
            axes.plot([x for x, _ in points], ideal, color=colours[stack], linestyle=":", linewidth=1)
        _scale_axis(axes, words)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(unit)
        axes.set_title(label, fontsize=9)
    handles, names = _all_handles(figure)
    figure.legend(handles, names, loc="outside lower left", ncols=2)


def _stack_points(
    context: Context, axes: Axes, cells: Cells, stacks: Sequence[str], scales: Sequence[Scale], name: str,
    divisor: float,
) -> dict[str, list[tuple[int, Summary]]]:  # fmt: skip
    """Draw a figure of each stack that has it over the scales; return by stack what was drawn."""
    colours, shapes = style.colours(context.results.stacks), style.shapes(context.results.stacks)
    drawn = {}
    for i, stack in enumerate(stacks):
        points = [(x, cells[stack, s, name]) for x, s in enumerate(scales) if (stack, s, name) in cells]
        if points:
            how = {"color": colours[stack], "marker": shapes[stack], "label": context.results.name(stack)}
            _points(axes, points, (i - (len(stacks) - 1) / 2) * 0.06, divisor, **how)
            drawn[stack] = points
    return drawn


def _points(
    axes: Axes, points: Sequence[tuple[int, Summary]], beside: float, divisor: float, **how: Any
) -> None:
    """Draw medians with their intervals over the scales, a little beside them."""
    middle = np.array([found.median for _, found in points]) / divisor
    ends = np.array([[found.low, found.high] for _, found in points]).T / divisor
    axes.errorbar(
        np.array([x for x, _ in points]) + beside, middle, yerr=np.abs(ends - middle), markersize=5,
        linewidth=1.3, elinewidth=0.9, capsize=2, **how,
    )  # fmt: skip


def _all_handles(figure: Figure) -> tuple[list[Any], list[str]]:
    """Return one handle for each name: a storage may be in one panel alone."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*cast(Any, axes.get_legend_handles_labels()), strict=True):
            found.setdefault(name, handle)
    return list(found.values()), list(found)


def _scale_axis(axes: Axes, words: tuple[str, list[str]]) -> None:
    over, labels = words
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel(over)
    axes.grid(axis="x", visible=False)
