"""The figures of a report. Every function draws one panel on one set of axes.

The same marks everywhere: a filled mark is a median with its interval, a hollow one a number that is not
proven to come from the storage, a cross one that is left out of comparisons; small dots are the single
repetitions. The shape is the stack's, as its colour; squares are imported and diamonds simulated numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tiercel.report import style, words
from tiercel.report.axes import (
    counted,
    fixed,
    log_ticks,
    place,
    shift,
    wide,
    x_ticks,
    x_value_axis,
    y_axis,
)
from tiercel.report.data import ORIGINS, Number, Record, Results, overall
from tiercel.report.packing import BARS, DRAWN, PANELS, first_of
from tiercel.report.picture import Picture, picture, with_other_axis
from tiercel.report.style import INK, PAPER
from tiercel.units import format_latency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAIRS_SHOWN = 6
#: As many repetitions of one number can be told apart beside its mark.
_DOTS = 40
#: Lines of a legend that a figure has room for, and the inches of each further one.
_LEGEND_LINES, _LEGEND_LINE = 4, 0.19
#: What of a number's row is filed with its figure; units as in tables/numbers.csv.
_DATA = (
    "experiment", "workload", "operation", "storage", "layer", "engine", "origin", "nodes",
    "processes_per_node", "metric", "n", "median", "low", "high", "latency_p50", "latency_p99", "values",
)  # fmt: skip

INTERVALS = "Median with interval; dots: repetitions."


class Gallery:
    """Draws figures and files them."""

    def __init__(self, results: Results, folder: Path) -> None:
        self.results = results
        self.folder = folder
        self.colours = style.colours(results.stacks)
        self.shapes = style.shapes(results.stacks)
        self.labels = dict(
            zip(results.stacks, words.told_apart(list(results.stacks.values()), 44), strict=True)
        )
        self.pictures: list[Picture] = []
        self.engines: dict[str, set[str]] = {}
        """By workload."""
        self.operations: dict[tuple[str, str, str, str], set[str]] = {}
        """By `_place`."""
        for n in results.numbers:
            self.engines.setdefault(n.workload, set()).add(n.engine)
            self.operations.setdefault(_place(n), set()).add(n.operation)

    def title(self, n: Number) -> str:
        """Return the title of a number's workload, with the engine where several ran it."""
        several = len(self.engines[n.workload]) > 1
        return str(n.title or n.workload) + (f", {n.engine}" if several else "")

    def add(
        self,
        name: str,
        experiment: str,
        title: str,
        caption: str,
        size: tuple[float, float],
        draw: Callable[[Axes], None],
        data: Sequence[Record] = (),
    ) -> None:
        """Draw on new axes and write the figure; `data` is what it shows."""
        made = picture(self.folder, name, title, caption, size, draw, experiment)
        self.pictures.append(replace(made, data=data))

    def add_numbers(
        self,
        name: str,
        title: str,
        caption: str,
        size: tuple[float, float],
        draw: Callable[[Axes, bool], None],
        shown: Sequence[Number],
    ) -> None:
        """Draw numbers, with the axis of values that suits them and for the page with the other, too.

        `draw` gets the axes and whether that axis is logarithmic.
        """
        log = wide(shown)
        thinned = any(len(n.values) > _DOTS for n in shown)
        caption += f" At most {_DOTS} repetitions are drawn." * thinned
        self.add(name, shown[0].experiment, title, caption, size, lambda ax: draw(ax, log), _rows(shown))
        if sum(len(p.svg) for p in self.pictures) > DRAWN:
            return  # the page packs this one, and has no room for another of it
        if all(v > 0 for n in shown for v in (n.low, *n.values)):
            axis = "linear" if log else "logarithmic"
            self.pictures[-1] = with_other_axis(self.pictures[-1], axis, size, lambda ax: draw(ax, not log))


def draw_all(results: Results, folder: Path) -> list[Picture]:
    """Draw the figures that the results have data for, into `folder`; see `left_out`."""
    gallery = Gallery(results, folder)
    for group in _shown(results):
        if _in_one(group[0]):
            _metadata_figure(gallery, group)
        else:
            _data_figures(gallery, group)
    _ratio_figures(gallery)
    return gallery.pictures


def left_out(results: Results) -> dict[str, int]:
    """Return how many panels of each experiment are not drawn; only experiments that have any."""
    every = Counter(group[0].experiment for group in _figure_groups(results))
    return dict(every - Counter(group[0].experiment for group in _shown(results)))


def _shown(results: Results) -> list[list[Number]]:
    """Return the panels that are drawn: the first of each experiment, `PANELS` together."""
    groups, rank = _figure_groups(results), Counter[str]()
    ranked = []
    for i, group in enumerate(groups):
        ranked.append((rank[group[0].experiment], i))
        rank[group[0].experiment] += 1
    return [groups[i] for i in sorted(i for _, i in sorted(ranked)[:PANELS])]


def _figure_groups(results: Results) -> list[list[Number]]:
    """Return the numbers of each figure: those of data, then those that share one."""
    return [*(group for group in _panels(results) if not _in_one(group[0])), *_metadata(results)]


def _panels(results: Results) -> list[list[Number]]:
    """Return the numbers of each panel: one experiment, workload, operation and engine."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for experiment in results.experiments():
        for n in results.numbers:
            if n.experiment == experiment and math.isfinite(n.median):
                groups.setdefault((experiment, n.workload, n.operation, n.engine), []).append(n)
    return list(groups.values())


def _in_one(n: Number) -> bool:
    """Whether its operations share a figure: those of metadata, and the jobs that compete."""
    return bool(n.metric == "operation_rate" or n.operation.startswith(("job-", "all-jobs")))


def _metadata(results: Results) -> list[list[Number]]:
    """Return metadata numbers at the largest scale of each workload and engine, and so those of jobs."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for panel in _panels(results):
        if _in_one(panel[0]):
            n = panel[0]
            groups.setdefault((n.experiment, n.workload, n.engine, n.metric), []).extend(panel)
    return [largest(group) for group in groups.values()]


def largest(numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers at the largest scale that is among them."""
    most = max((n.nodes * n.processes_per_node, n.nodes) for n in numbers)
    return [n for n in numbers if (n.nodes * n.processes_per_node, n.nodes) == most]


def _place(n: Number) -> tuple[str, str, str, str]:
    return n.experiment, n.workload, n.engine, n.metric


def _data_figures(gallery: Gallery, panel: list[Number]) -> None:
    first = panel[0]
    title = gallery.title(first)
    if first.metric != "bandwidth" or len(gallery.operations[_place(first)]) > 1:
        title += f": {words.operation(first.operation)}"
    quantity = words.capital(words.QUANTITIES[first.metric])
    name = _file_name(first.experiment, first.workload, first.operation, first.engine)
    if len({(n.nodes, n.processes_per_node) for n in panel}) == 1:
        size = (3.9, 1.3 + 0.42 * len(panel))
        caption = f"{quantity} at {first.scale}. {INTERVALS}{_marks(panel)}"
        gallery.add_numbers(
            name, title, caption, size, lambda ax, log: _one_scale(gallery, ax, panel, log=log), panel
        )
        return
    over, at = counted(panel), fixed(panel)
    size = (3.9, 3.3 + _beyond(gallery, [n for n, _ in _lines(gallery, panel)], 3.9))
    caption = f"{quantity} over {over}{at}. {INTERVALS}{_marks(panel)}"
    gallery.add_numbers(
        name, title, caption, size, lambda ax, log: _over_scale(gallery, ax, panel, log=log), panel
    )
    if first.fsync == "write" and any(math.isfinite(n.latency_p99) for n in panel):
        caption = f"Time of one write with fsync over {over}{at}: median (solid) and p99 (dashed)."
        gallery.add(
            f"{name}.latency",
            first.experiment,
            f"{title}: latency",
            caption,
            size,
            lambda ax: _latency(gallery, ax, panel),
            _rows(panel),
        )


def _over_scale(gallery: Gallery, axes: Axes, panel: list[Number], *, log: bool) -> None:
    lines, over = _lines(gallery, panel), counted(panel)
    divisor, unit, log = y_axis(axes, panel, log=log)
    for i, (n, points) in enumerate(lines):
        beside = shift(panel, i - len(lines) / 2)
        colour = gallery.colours[n.stack]
        xs = [beside(place(p, over)) for p in points]
        axes.plot(
            xs, [p.median / divisor for p in points], style.LINES[n.origin], color=colour, linewidth=1.4
        )
        for x, p in zip(xs, points, strict=True):
            dots = _dots(p, divisor)
            _repetitions(axes, [shift(panel, 0.5)(x)] * len(dots), dots, colour)
            _point(gallery, axes, x, p, divisor)
    x_ticks(axes, panel)
    if not log:
        axes.set_ylim(0, axes.get_ylim()[1] * 1.04)  # no dot on the edge
    axes.set_ylabel(_quantity(panel, unit))
    _legend(gallery, axes, [n for n, _ in lines])


def _one_scale(gallery: Gallery, axes: Axes, panel: list[Number], *, log: bool) -> None:
    lines = _lines(gallery, panel)
    divisor, unit, log = x_value_axis(axes, panel, log=log)
    for y, (n, points) in enumerate(lines):
        colour = gallery.colours[n.stack]
        for p in points:
            dots = _dots(p, divisor)
            _repetitions(axes, dots, [y + 0.14] * len(dots), colour)
            _point(gallery, axes, y, p, divisor, across=True)
    axes.set_yticks(range(len(lines)), [_wrapped(_line_label(gallery, n), 26) for n, _ in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    if not log:
        axes.set_xlim(0, axes.get_xlim()[1] * 1.04)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(_quantity(panel, unit))


def _quantity(panel: list[Number], unit: str) -> str:
    """Return the label of an axis of values."""
    quantity = words.QUANTITIES[panel[0].metric]
    return f"{quantity}, {unit}" if unit else quantity


def _latency(gallery: Gallery, axes: Axes, panel: list[Number]) -> None:
    lines, over = _lines(gallery, panel), counted(panel)
    for n, points in lines:
        colour = gallery.colours[n.stack]
        xs = [place(p, over) for p in points]
        shape = _marker(gallery, n)  # the storage's, as in every figure
        (half,) = axes.plot(xs, [p.latency_p50 for p in points], "-", color=colour, linewidth=1.4)
        (slow,) = axes.plot(xs, [p.latency_p99 for p in points], "--", color=colour, linewidth=1.2)
        half.set(marker=shape, markersize=5)
        slow.set(marker=shape, markersize=5, markerfacecolor=PAPER)
    axes.set_yscale("log")
    log_ticks(axes.yaxis, lambda v: format_latency(v, 2))
    x_ticks(axes, panel)
    axes.set_ylabel("time of one write")
    _legend(gallery, axes, [n for n, _ in lines])


def _metadata_figure(gallery: Gallery, numbers: list[Number]) -> None:
    first = numbers[0]
    operations = list(dict.fromkeys(n.operation for n in numbers))
    lines = list(dict.fromkeys((n.stack, n.origin) for n in _stack_order(gallery, numbers)))
    title = gallery.title(first)
    at = {(n.stack, n.origin, n.operation): n for n in numbers}
    firsts = [at[k] for k in _firsts(at, lines)]
    height = 0.8 / len(lines)

    def draw(axes: Axes, log: bool) -> None:
        divisor, unit, log = x_value_axis(axes, numbers, log=log)
        for y in range(0, len(operations), 2):
            axes.axhspan(y - 0.5, y + 0.5, color=INK, alpha=0.05, linewidth=0)
        for i, (stack, origin) in enumerate(lines):
            colour = gallery.colours[stack]
            for y, operation in enumerate(operations):
                n = at.get((stack, origin, operation))
                if n is None:
                    continue
                position = y + (i - (len(lines) - 1) / 2) * height
                if not log:
                    width = n.median / divisor
                    axes.barh(position, width, height * 0.9, facecolor=(colour, 0.35), linewidth=0)
                beside = position + height * 0.28
                dots = _dots(n, divisor)
                _repetitions(axes, dots, [beside] * len(dots), colour)
                _point(gallery, axes, position, n, divisor, across=True)
        axes.set_yticks(range(len(operations)), [words.operation(o) for o in operations])
        axes.set_ylim(len(operations) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        if not log:
            axes.set_xlim(left=0)
        counted = (
            "operations per second" if first.metric == "operation_rate" else words.QUANTITIES[first.metric]
        )
        axes.set_xlabel(f"{counted}, {unit}" if unit else counted)
        _legend(gallery, axes, firsts)

    axis = " Logarithmic axis." if wide(numbers) else ""
    # Jobs that compete are rates, too, and each has processes of its own.
    jobs = any(n.operation.startswith(("job-", "all-jobs")) for n in numbers)
    rate = first.metric == "operation_rate"
    said = f"Rate of metadata operations at {first.scale}"
    if jobs:
        said = "Rate of operations of each job" if rate else "Bandwidth of each job"
    caption = f"{said}.{axis} {INTERVALS}{_marks(numbers)}"
    name = _file_name(first.experiment, first.workload, "metadata" if rate else "jobs", first.engine)
    tall = 1.5 + max(0.3, 0.2 * len(lines)) * len(operations)
    size = (6.2, tall + _beyond(gallery, firsts, 6.2))
    gallery.add_numbers(name, title, caption, size, draw, numbers)


def _ratio_figures(gallery: Gallery) -> None:
    """Draw one panel for each pair of stacks: ratios with intervals over the A/A floor."""
    pairs: dict[tuple[str, str, str, str], list[Record]] = {}
    for row in overall(gallery.results):
        key = (row["stack_a"], row["stack_b"], row["engine"], row["origin"])
        pairs.setdefault(key, []).append(row)
    for (a, b, engine, origin), rows in list(pairs.items())[:_PAIRS_SHOWN]:
        labels = gallery.results.stacks
        title = f"Ratio of {labels[a]} to {labels[b]}" + _by(gallery.results, engine)
        caption = (
            "Over all scales. Bars: 95 % intervals. Grey: noise. Hollow: undecided."
            f"{first_of(rows)}{'' if origin == 'measured' else f' The results are {origin}.'}"
        )
        gallery.add(
            _file_name("ratio", a, b, engine, *([] if origin == "measured" else [origin])),
            "",
            title,
            caption,
            (6.2, 1.25 + 0.3 * len(rows[:BARS])),
            lambda axes, rows=rows[:BARS]: _ratios(gallery.results, axes, rows),  # type: ignore[misc]
            rows,
        )


def _ratios(results: Results, axes: Axes, rows: list[Record]) -> None:
    names = []
    for row in rows:
        name = results.title(row["experiment"], row["workload"])
        if row["metric"] != "bandwidth" or row["operation"].startswith(("job-", "all-jobs")):
            name = f"{words.operation(row['operation'])}: {name}"
        names.append(_wrapped(words.clipped(name, 84), 44))
    draw_ratios(axes, rows, names)


def draw_ratios(axes: Axes, rows: Sequence[Record], names: Sequence[str], marker: str = "o") -> None:
    """Draw ratios with their intervals over the noise floor, one below the other; filled ones are claimed.

    A row has ratio, low, high, floor_low, floor_high and verdict.
    """
    edges = [1.0]
    for y, row in enumerate(rows):
        if math.isfinite(row["floor_high"]):
            axes.fill_betweenx(
                [y - 0.42, y + 0.42], row["floor_low"], row["floor_high"], color=INK, alpha=0.15, linewidth=0
            )
            edges += [row["floor_low"], row["floor_high"]]
        claimed = row["verdict"] != "undecided"
        colour = style.COLOURS[0] if row["ratio"] >= 1 else style.COLOURS[1]
        axes.plot([row["low"], row["high"]], [y, y], color=colour, linewidth=1.6)
        face = colour if claimed else PAPER
        axes.plot(row["ratio"], y, marker, color=colour, markersize=6.5, markerfacecolor=face)
        edges += [row["low"], row["high"]]
    axes.axvline(1, color=INK, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(min(edges) / 1.15, max(edges) * 1.15)
    log_ticks(axes.xaxis, lambda v: f"{v:g}×")
    axes.set_yticks(range(len(rows)), list(names))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


# Parts of panels.


def _point(
    gallery: Gallery, axes: Axes, position: float, n: Number, divisor: float, *, across: bool = False
) -> None:
    middle, low, high = n.median / divisor, n.low / divisor, n.high / divisor
    colour = gallery.colours[n.stack]
    marker = "X" if n.invalid else _marker(gallery, n)
    face = colour if n.cold and not n.invalid else PAPER
    # Two lines: matplotlib's errorbar makes four, and containers for them, for each of thousands of marks.
    ends, beside = [min(low, middle), max(high, middle)], [position, position]
    (bar,) = axes.plot(*((ends, beside) if across else (beside, ends)), color=colour, linewidth=1.4, zorder=3)
    bar.set(marker="|" if across else "_", markersize=5)
    x, y = (middle, position) if across else (position, middle)
    (mark,) = axes.plot([x], [y], marker, color=colour, markerfacecolor=face, markersize=5.5, zorder=3)
    # The page finds the mark of a number by this name.
    mark.set_gid(n.anchor)


def _marker(gallery: Gallery, n: Number) -> str:
    """Return the shape of a stack; of numbers that were not measured here, that of their origin."""
    return gallery.shapes[n.stack] if n.origin == "measured" else style.MARKERS[n.origin]


def _dots(n: Number, divisor: float) -> list[float]:
    """Return the repetitions that are drawn of a number, at most `_DOTS`: the extremes, the rest evenly."""
    values = n.values
    if len(values) > _DOTS:
        values = sorted(values)
        values = [values[round(i * (len(values) - 1) / (_DOTS - 1))] for i in range(_DOTS)]
    return [v / divisor for v in values]


def _rows(shown: Iterable[Number]) -> list[Record]:
    return [{"number": n.anchor.removeprefix("number-"), **{k: n.row[k] for k in _DATA}} for n in shown]


def _repetitions(axes: Axes, xs: Sequence[float], ys: Sequence[float], colour: str) -> None:
    axes.plot(xs, ys, "o", color=colour, markersize=3, alpha=0.5, markeredgewidth=0, zorder=2)


def _lines(gallery: Gallery, panel: list[Number]) -> list[tuple[Number, list[Number]]]:
    """Return one line for each stack and origin, with its points in ascending scale."""
    lines: dict[tuple[str, str], list[Number]] = {}
    for n in _stack_order(gallery, panel):
        lines.setdefault((n.stack, n.origin), []).append(n)
    return [
        (points[0], sorted(points, key=lambda n: n.nodes * n.processes_per_node)) for points in lines.values()
    ]


def _stack_order(gallery: Gallery, numbers: Iterable[Number]) -> list[Number]:
    order = list(gallery.colours)
    return sorted(numbers, key=lambda n: (order.index(n.stack), ORIGINS.index(n.origin)))


def _firsts(
    at: dict[tuple[str, str, str], Number], lines: list[tuple[str, str]]
) -> list[tuple[str, str, str]]:
    return [next(k for k in at if k[:2] == line) for line in lines]


def _legend(gallery: Gallery, axes: Axes, firsts: list[Number]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=gallery.colours[n.stack], linestyle=cast(Any, style.LINES[n.origin]),
            marker=_marker(gallery, n), markersize=5.5, label=_line_label(gallery, n),
        )
        for n in firsts
    ]  # fmt: skip
    columns = _columns(gallery, firsts, axes.figure.get_figwidth())  # type: ignore[union-attr]
    axes.figure.legend(handles=handles, loc="outside lower left", ncols=columns)


def _columns(gallery: Gallery, firsts: Sequence[Number], width: float) -> int:
    """Return how many columns of a legend fit a figure that is so many inches wide."""
    longest = max(len(_line_label(gallery, n)) for n in firsts)
    return max(1, min(len(firsts), int(11.5 * width) // (longest + 8)))


def _beyond(gallery: Gallery, firsts: Sequence[Number], width: float) -> float:
    """Return the inches by which a figure grows for its legend: past a few lines it would take the axes."""
    rows = math.ceil(len(firsts) / _columns(gallery, firsts, width))
    return _LEGEND_LINE * max(0, rows - _LEGEND_LINES)


def _line_label(gallery: Gallery, n: Number) -> str:
    label = gallery.labels[n.stack]
    notes = ["memory"] if n.medium == "memory" and "memory" not in label.lower() else []
    notes += [n.origin] if n.origin != "measured" else []
    return label + (f" ({', '.join(notes)})" if notes else "")


def _marks(panel: list[Number]) -> str:
    """Return the sentence that explains the marks that this panel really has."""
    sentences = []
    if any(not n.cold and not n.invalid for n in panel):
        sentences.append("Hollow: possibly from a cache.")
    if any(n.invalid for n in panel):
        sentences.append("Crosses: failed a validity check, not compared.")
    others = sorted({n.origin for n in panel} - {"measured"})
    shapes = {"imported": "Squares: imported.", "simulated": "Diamonds: simulated."}
    sentences += [shapes[origin] for origin in others]
    return "".join(f" {sentence}" for sentence in sentences)


def _by(results: Results, engine: str) -> str:
    return f", {engine}" if len({n.engine for n in results.numbers}) > 1 else ""


def _file_name(*parts: str) -> str:
    return ".".join("".join(c if c.isalnum() or c in "-+" else "-" for c in part) for part in parts)


def _wrapped(text: str, width: int) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
