"""Axes of figures: what x counts, linear or logarithmic, where the labels go, in which unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tiercel.pages.words import number
from tiercel.report import words
from tiercel.report.data import Number

if TYPE_CHECKING:
    import matplotlib as mpl
    from matplotlib.axes import Axes

#: Systems further apart than this share a logarithmic axis.
WIDE = 30.0
#: From here on labels of x have five digits.
_LONG = 1e4
#: Multiples of a power at which a logarithmic axis may be labelled, the coarsest first.
_STEPS: dict[int, tuple[tuple[float, ...], ...]] = {
    10: ((1,), (1, 3), (1, 2, 5)),
    2: ((1,), (1, 1.5), tuple(1 + i / 8 for i in range(8))),
}


def counted(panel: list[Number]) -> str:
    """Return what the x axis counts: nodes where only they vary, else processes."""
    same = len({n.processes_per_node for n in panel}) == 1
    return "nodes" if same and len({n.nodes for n in panel}) > 1 else "processes"


def fixed(panel: list[Number]) -> str:
    """Return the words for what stays the same along the x axis."""
    first = panel[0]
    if counted(panel) == "nodes":
        return f", {words.count(first.processes_per_node, 'process', 'processes')} on each"
    if len({n.nodes for n in panel}) > 1:
        return ""
    return " on one node" if first.nodes == 1 else f" on {first.nodes} nodes"


def place(n: Number, over: str) -> float:
    return float(n.nodes if over == "nodes" else n.nodes * n.processes_per_node)


def _logarithmic(places: Sequence[float]) -> bool:
    return max(places) / min(places) >= 4


def shift(panel: list[Number], steps: float) -> Callable[[float], float]:
    """Return a function that moves a place a little aside, the same distance everywhere on the axis."""
    places = sorted({place(n, counted(panel)) for n in panel})
    lines = len({(n.stack, n.origin) for n in panel})
    share = steps * min(0.035, 0.3 / (len(places) - 1) / (lines + 1))
    if _logarithmic(places):
        return lambda x: float(x * (places[-1] / places[0]) ** share)
    return lambda x: x + share * (places[-1] - places[0])


def x_ticks(axes: Axes, panel: list[Number]) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    places = sorted({place(n, counted(panel)) for n in panel})
    if _logarithmic(places):
        axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_xlabel(counted(panel))
    low, high = places[0], places[-1]
    if _logarithmic(places):
        axes.set_xlim(low / 1.25, high * 1.25)
    else:
        room = (high - low) * 0.2
        axes.set_xlim(low - room, high + room)


def wide(numbers: Iterable[Number]) -> bool:
    medians = [n.median for n in numbers if n.median > 0]
    return bool(medians) and max(medians) / min(medians) > WIDE


def y_axis(axes: Axes, panel: list[Number], *, log: bool) -> tuple[float, str, bool]:
    """Prepare the y axis and return (divisor, unit, logarithmic)."""
    from matplotlib.ticker import MaxNLocator

    if log:
        _log_value_axis(axes.yaxis, panel)
        return 1.0, "", True
    divisor, unit = _unit(panel)
    axes.yaxis.set_major_locator(MaxNLocator(6, min_n_ticks=3))
    return divisor, unit, False


def x_value_axis(axes: Axes, panel: list[Number], *, log: bool) -> tuple[float, str, bool]:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if log:
        _log_value_axis(axes.xaxis, panel)
        return 1.0, "", True
    divisor, unit = _unit(panel)
    # Numbers of five digits stand too close to one another where those of three do not.
    long = max(max([n.high, *n.values]) for n in panel) / divisor >= _LONG
    axes.xaxis.set_major_locator(MaxNLocator(3 if long else 6, min_n_ticks=3))
    if long:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    return divisor, unit, False


def _unit(panel: list[Number]) -> tuple[float, str]:
    most = max(max([n.high, *n.values]) for n in panel)
    return words.unit(panel[0].metric, most)


def log_ticks(axis: mpl.axis.Axis, text: Callable[[float], str], base: int = 10, part: float = 1.0) -> None:
    """Label a logarithmic axis at powers of its base (2 for sizes), closer where there are few.

    `part`: of the figure's width that an axis of x has.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    low, high = sorted(axis.get_view_interval())
    for steps in _STEPS[base]:
        places = _places(low, high, base, steps)
        if len(places) >= 3:
            break
    if len(places) < 3 and base == 10:  # equal steps: on so short an axis nobody looks for powers
        places = [
            place
            for place in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
            if low <= place <= high
        ]
    # Labels of y stand above each other; those of x need about 0.9 inches each.
    width = part * axis.axes.figure.get_figwidth()  # type: ignore[union-attr]
    room = 8 if axis is axis.axes.yaxis else max(2, int(width / 0.9))
    axis.set_major_locator(FixedLocator(places[:: -(-len(places) // room)]))
    axis.set_major_formatter(FuncFormatter(lambda v, _: text(v)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _places(low: float, high: float, base: int, steps: Sequence[float]) -> list[float]:
    powers = range(math.floor(math.log(low, base)), math.ceil(math.log(high, base)) + 1)
    places = [step * float(base) ** power for power in powers for step in steps]
    return [place for place in places if low <= place <= high]


def _log_value_axis(axis: mpl.axis.Axis, panel: list[Number]) -> None:
    """Make room for everything that is drawn on a logarithmic axis of values, and label it."""
    values = [v for n in panel for v in (*n.values, n.low, n.high, n.median) if v > 0]
    metric = panel[0].metric
    if axis is axis.axes.xaxis:
        axis.axes.set_xscale("log")
        axis.axes.set_xlim(min(values) / 1.4, max(values) * 1.4)
    else:
        axis.axes.set_yscale("log")
        axis.axes.set_ylim(min(values) / 1.4, max(values) * 1.4)
    log_ticks(axis, lambda v: words.value(metric, v), 2 if metric == "bandwidth" else 10)
