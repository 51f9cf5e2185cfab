"""Time of an epoch over each of a loader's settings: figures 9 to 12 of the DLIO paper (000)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tiercel.report import style
from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.base import Context
from tiercel.report.words import unit as unit_of
from tiercel.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Ends the name of what was set, where samples were shuffled besides.
SHUFFLED = ", shuffled"
#: Panels side by side.
_ROW = 3
_WIDTH, _HEIGHT = 3.3, 2.5
#: Inches that the page shows at the size of its neighbours: a wider figure is shrunk, its letters too.
_MOST = 9.0


@dataclass(frozen=True)
class Tried:
    """One setting of a loader on one storage, and the seconds of its first epochs; `axis` is what was set."""

    experiment: str
    stack: str
    axis: str
    value: Any
    seconds: Sequence[float]
    bandwidth: float
    """Bytes a second, the median; NaN where the engine does not say."""


def settings_pictures(
    context: Context, tried: Sequence[Tried], files: Mapping[tuple[str, str], Sequence[float]]
) -> Iterator[Picture]:
    """Yield a figure for each experiment, with a panel for each of what was set.

    `files`: the seconds with the workload file's own settings, by experiment and stack.
    """
    for experiment in dict.fromkeys(t.experiment for t in tried):
        mine = [t for t in tried if t.experiment == experiment]
        axes = list(dict.fromkeys(t.axis for t in mine))
        own = {stack: seconds for (name, stack), seconds in files.items() if name == experiment}
        across = min(_ROW, len(axes))
        down = -(-len(axes) // across)
        made = picture_of(
            context.figures, f"dl-settings-{experiment}",
            f"{context.results.experiment_title(experiment)}: time of the first epoch by setting",
            "Dots are repetitions, lines medians, each setting changed alone (where it says so, with "
            "shuffled samples); dashed: with the workload file's own settings; dotted, right: bandwidth. "
            "(DLIO, Figures 9 to 12)",
            (min(max(_WIDTH * across, 4.2), _MOST), _HEIGHT * down + 0.8),
            partial(_draw, context, mine, axes, own), experiment,
        )  # fmt: skip
        yield replace(made, data=_rows(mine, own))


def words(axis: str) -> str:
    """Return a setting's name as a reader says it: dataset.chunk_size is the chunk size."""
    return axis.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def label(axis: str, value: Any) -> str:
    """Return a setting's value: bytes in units, all else as it stands."""
    size = axis.removesuffix(SHUFFLED).endswith("_size") and isinstance(value, int)
    return format_size(value) if size else str(value)


def _rows(tried: Sequence[Tried], own: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    rows = [
        {"setting": "the workload file's", "value": "", "stack": stack, "n": len(seconds),
         "seconds": float(np.median(seconds)), "bandwidth": float("nan")}
        for stack, seconds in own.items()
    ]  # fmt: skip
    return rows + [
        {"setting": t.axis, "value": t.value, "stack": t.stack, "n": len(t.seconds),
         "seconds": float(np.median(t.seconds)), "bandwidth": t.bandwidth}
        for t in tried
    ]  # fmt: skip


def _draw(
    context: Context, tried: Sequence[Tried], names: Sequence[str], own: Mapping[str, Sequence[float]],
    figure: Figure,
) -> None:  # fmt: skip
    across = min(_ROW, len(names))
    panels = figure.subplots(-(-len(names) // across), across, squeeze=False)
    for axes in panels.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(panels.flat, names, strict=False):
        _panel(context, axes, name, [t for t in tried if t.axis == name], own)
    for row in panels:
        row[0].set_ylabel("seconds")
    _bandwidths(context, panels.flat, names, tried)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3)


def _bandwidths(
    context: Context, panels: Iterable[Axes], names: Sequence[str], tried: Sequence[Tried]
) -> None:
    """Draw what was read in a second, on an axis at the right, the same in all panels."""
    known = [t.bandwidth for t in tried if t.bandwidth > 0]
    if not known:
        return
    divisor, unit = unit_of("bandwidth", max(known))
    colours = style.colours(context.results.stacks)
    for number, (axes, name) in enumerate(zip(panels, names, strict=False)):
        mine = [t for t in tried if t.axis == name]
        values = _in_order({t.value for t in mine})
        right = axes.twinx()
        for stack in dict.fromkeys(t.stack for t in mine):
            of_stack = {values.index(t.value): t.bandwidth / divisor for t in mine if t.stack == stack}
            places = sorted(of_stack)
            right.plot(places, [of_stack[place] for place in places], linestyle=":", linewidth=1.1,
                       color=colours.get(stack, style.COLOURS[-1]))  # fmt: skip
        right.set_ylim(0, 1.08 * max(known) / divisor)
        right.grid(visible=False)
        if (number + 1) % _ROW and number + 1 < len(names):  # a neighbour at the right has the same axis
            right.tick_params(labelright=False)
        else:
            right.set_ylabel(unit)


def _panel(
    context: Context, axes: Axes, name: str, tried: Sequence[Tried], own: Mapping[str, Sequence[float]]
) -> None:
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    colours, shapes = style.colours(context.results.stacks), style.shapes(context.results.stacks)
    values = _in_order({t.value for t in tried})
    for stack in dict.fromkeys(t.stack for t in tried):
        colour = colours.get(stack, style.COLOURS[-1])
        seconds = {values.index(t.value): t.seconds for t in tried if t.stack == stack}
        places = sorted(seconds)
        axes.plot(places, [float(np.median(seconds[place])) for place in places], color=colour, linewidth=1.4,
                  marker=shapes.get(stack, "o"), markersize=5, label=context.results.name(stack))  # fmt: skip
        for place in places:
            axes.plot(
                [place] * len(seconds[place]), seconds[place], ".", color=colour, alpha=0.45, markersize=4
            )
        if stack in own:
            axes.axhline(float(np.median(own[stack])), linestyle="--", color=colour, linewidth=0.9)
    axes.set_ylim(bottom=0)
    axes.set_xlim(-0.5, len(values) - 0.5)
    axes.xaxis.set_major_locator(FixedLocator(range(len(values))))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([label(name, value) for value in values], rotation=30 if len(values) > 4 else 0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(words(name))


def _in_order(values: set[Any]) -> list[Any]:
    """Return numbers by size, then words by name."""
    return sorted(values, key=lambda v: (isinstance(v, str), v))
