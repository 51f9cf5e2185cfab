"""The figures of a sweep and of what was learnt from it, as paper 003 draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from tiercel.placement.dataset import throughput
from tiercel.placement.score import best_of, differ, fastest_shares
from tiercel.report import style
from tiercel.report.axes import log_ticks
from tiercel.report.picture import Picture, picture_of
from tiercel.units import format_bandwidth, format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
#: What a configuration does, in the words of Figure 14: the rows of its two panels.
_DOING = {"read": "reads", "write": "writes"}
_NOISE = "no more than noise"
#: Inches: as wide as two panels over transfer sizes, beside which they stand: all letters are as large.
_WIDTH = 7.8
#: Features below this share of the most important one are not drawn.
_LEAST = 0.01


def sweep_pictures(folder: Path, table: pd.DataFrame) -> list[Picture]:
    """Return the figures of a sweep's dataset, written into `folder`."""
    systems = list(table.attrs["systems"])
    sizes, shares = by_transfer_size(table), fastest_shares(table)
    colours = style.colours(systems)
    two = sorted(systems, key=lambda s: -float((best_of(table) == s).sum()))[:2]
    width = 3.6 * len({row["operation"] for row in sizes}) + 0.6
    return [
        _picture(
            folder, "placement-sweep", f"Throughput of each configuration on {two[0]} and {two[1]}",
            f"Each point is one configuration (median of its repetitions). Above the diagonal {two[0]} is "
            "faster; "
            "grey points do not differ by more than the noise. (PrismIO, Figure 11)",
            (4.2, 3.9), lambda figure: _scatter(figure.add_subplot(), table, two), _points(table),
        ),
        _picture(
            folder, "placement-transfer-sizes", "Throughput over the size of a transfer",
            f"{_what_a_line_is(sizes)} (PrismIO, Figure 1)",
            (width, 3.4), lambda figure: _over_sizes(figure, sizes, systems, colours), sizes,
        ),
        _picture(
            folder, "placement-shares", "Where which system is fastest",
            "Share of the configurations with that size of transfer for which each system is fastest, by "
            "more than the "
            "noise; above the bars how many there are. (PrismIO, Figure 14)",
            (width, 3.4), lambda figure: _stacked(figure, shares, systems, colours), shares,
        ),
    ]  # fmt: skip


def model_pictures(folder: Path, card: Mapping[str, Any]) -> list[Picture]:
    """Return the figures of a model card, written into `folder`."""
    models, importances = accuracies(card["evaluation"]), card["importances"]
    shown = _important(importances)
    return [
        _picture(
            folder, "placement-accuracies", "How often each model names the fastest system",
            "Share of the configurations held back for which the system that a model names is the one that "
            "measured "
            "best: dots in ten random splits, as in the paper, with the standard deviation over them; rings "
            "with whole "
            "groups held back, which is what a new program meets. (PrismIO, Figure 15)",
            (_WIDTH, 1.0 + 0.22 * len(models)), lambda figure: _dots(figure, models), models,
        ),
        _picture(
            folder, "placement-importances", "What the choice of a system hangs on",
            "Decision tree. Dark: accuracy lost on groups held back when the feature is shuffled. Light: the "
            "tree's own "
            "importance (impurity), which prefers features of many levels. (PrismIO, Figure 16)",
            (_WIDTH, 1.0 + 0.24 * len(shown)), lambda figure: _bars(figure, shown), importances,
        ),
    ]  # fmt: skip


def application_picture(folder: Path, scored: Mapping[str, Any]) -> Picture:
    """Return the figure of real applications: how often the choice was right, by application."""
    rows = [
        {"application": name, **{key: totals["chosen"][key] for key in ("count", "accuracy", "differing",
         "accuracy_where_differ")}}
        for name, totals in [*scored["applications"].items(), ("all", scored["total"])]
    ]  # fmt: skip
    return _picture(
        folder, "placement-applications", "How often the choice is right for files of real applications",
        "Share of the samples (a group of files of one variant of a program) for which the predicted system "
        "is the one "
        "that measured best: dark where systems differ by more than the noise, light everywhere, as in the "
        "paper; "
        "beside them how many samples that is. (PrismIO, Figure 17)",
        (_WIDTH, 0.8 + 0.36 * len(rows)), lambda figure: _applications(figure.add_subplot(), rows), rows,
    )  # fmt: skip


def _what_a_line_is(sizes: Rows) -> str:
    if all(row["n"] == 1 for row in sizes):
        return "One configuration for each size, median of its repetitions: nothing but the size differs."
    return (
        "Lines are medians over the configurations with that size of transfer, the same ones on each system; "
        "bands hold half of them: more than the size differs."
    )


def by_transfer_size(table: pd.DataFrame) -> Rows:
    """Return median and quartiles of throughput (bytes/s) by operation, transfer size and system."""
    rows = []
    for key, part in table.groupby(["operation", "transfer_size"]):
        operation, size = cast(tuple[str, float], key)
        for system, speed in throughput(part_of(table, part)).items():
            low, middle, high = np.quantile(speed, [0.25, 0.5, 0.75])
            rows.append(
                {"operation": operation, "transfer_size": int(size), "system": system, "n": len(part),
                 "median": middle, "low": low, "high": high}
            )  # fmt: skip
    return rows


def accuracies(evaluation: Mapping[str, Any]) -> Rows:
    """Return each model's accuracy in random splits and with groups held back, the best first."""
    rows = [
        {"model": name.replace("-", " "), **{f"{kind} {key}": score[key] for kind, score in by.items()
         for key in ("accuracy", "accuracy_sd")}}
        for name, by in evaluation["models"].items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row["random accuracy"])


def part_of(table: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """Return some rows of a dataset as one: pandas forgets what the whole says of itself."""
    part.attrs.update(table.attrs)
    return part


def _points(table: pd.DataFrame) -> Rows:
    names = [f"bandwidth:{system}" for system in table.attrs["systems"]]
    records = table[["workload", "operation", "transfer_size", *names]].assign(differ=differ(table))
    return [{str(key): value for key, value in row.items()} for row in records.to_dict("records")]


def _important(importances: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    def share(row: Mapping[str, Any], key: str) -> float:
        most = max(0.0, *(float(r[key]) for r in importances if math.isfinite(r[key])))
        return float(row[key]) / most if most and math.isfinite(row[key]) else 0.0

    found = [r for r in importances if max(share(r, "permutation"), share(r, "impurity")) > _LEAST]
    return found[:12] or list(importances[:1])


def _picture(
    folder: Path, name: str, title: str, caption: str, size: tuple[float, float],
    draw: Callable[[Figure], None], data: Sequence[Mapping[str, Any]],
) -> Picture:  # fmt: skip
    return replace(picture_of(folder, name, title, caption, size, draw), data=data)


def _panels(figure: Figure, rows: Rows) -> list[tuple[Axes, str]]:
    """Return axes side by side with the same y, one for each operation, headed by what it does."""
    doing = [name for name in _DOING if name in {row["operation"] for row in rows}]
    panels = figure.subplots(1, len(doing), sharey=True, squeeze=False)[0]
    for axes, operation in zip(panels, doing, strict=True):
        axes.set_title(_DOING[operation], fontsize=9, loc="left")
        axes.set_xlabel("size of a transfer")
    return list(zip(panels, doing, strict=True))


def _over_sizes(figure: Figure, rows: Rows, systems: list[str], colours: Mapping[str, str]) -> None:
    shapes = style.shapes(systems)
    panels = _panels(figure, rows)
    for axes, operation in panels:
        for system in systems:
            line = [r for r in rows if (r["operation"], r["system"]) == (operation, system)]
            x = [r["transfer_size"] for r in line]
            axes.fill_between(x, [r["low"] for r in line], [r["high"] for r in line], alpha=0.15,
                              color=colours[system], linewidth=0)  # fmt: skip
            axes.plot(x, [r["median"] for r in line], marker=shapes[system], markersize=4.5,
                      color=colours[system], label=system)  # fmt: skip
        axes.set(xscale="log", yscale="log")
    for axes, _ in panels:
        log_ticks(axes.xaxis, format_size, 2)
        log_ticks(axes.yaxis, format_bandwidth, 2)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)


def _stacked(figure: Figure, rows: Rows, systems: list[str], colours: Mapping[str, str]) -> None:
    panels = _panels(figure, rows)
    for axes, operation in panels:
        sizes = sorted({r["transfer_size"] for r in rows if r["operation"] == operation})
        below = np.zeros(len(sizes))
        for system, hatch in zip(systems, _hatches(systems), strict=True):
            share = {r["transfer_size"]: r["share"] for r in rows
                     if (r["operation"], r["system"]) == (operation, system)}  # fmt: skip
            height = np.array([100 * share[size] for size in sizes])
            axes.bar(range(len(sizes)), height, bottom=below, color=colours[system], label=system,
                     hatch=hatch, edgecolor=style.PAPER, linewidth=0.5, width=0.85)  # fmt: skip
            below += height
        axes.bar(range(len(sizes)), 100 - below, bottom=below, color="0.75", label=_NOISE, width=0.85)
        counts = {r["transfer_size"]: r["n"] for r in rows if r["operation"] == operation}
        for place, size in enumerate(sizes):
            axes.annotate(str(counts[size]), (place, 101), ha="center", va="bottom", fontsize=7.5)
        axes.set_xticks(range(len(sizes)), [format_size(size) for size in sizes], rotation=40, ha="right")
        axes.set_ylim(0, 108)
        axes.grid(visible=False, axis="x")
    panels[0][0].set_ylabel("% of the configurations")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)


def _hatches(systems: Sequence[str]) -> list[str]:
    """Return a hatch for each system: told apart without colour."""
    kinds = ("", "//", "..", "xx", "\\\\", "++", "oo")
    return [kinds[i % len(kinds)] for i in range(len(systems))]


def _dots(figure: Figure, rows: Rows) -> None:
    axes = figure.add_subplot()
    shown = rows[::-1]
    y = np.arange(len(shown))
    random, grouped = ([100 * r[f"{kind} accuracy"] for r in shown] for kind in ("random", "grouped"))
    spread = [100 * r["random accuracy_sd"] for r in shown]
    axes.errorbar(random, y, xerr=spread, fmt="o", markersize=5, linewidth=1, label="random splits")
    axes.plot(grouped, y, "o", markersize=6, markerfacecolor="none", color=style.COLOURS[1],
              label="groups held back")  # fmt: skip
    axes.set_yticks(y, [r["model"] for r in shown])
    axes.set_xlabel("% named right")
    axes.set_xlim(right=101)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)


def _bars(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> None:
    axes = figure.add_subplot()
    shown = rows[::-1]
    y = np.arange(len(shown))
    axes.barh(y + 0.2, [100 * r["permutation"] for r in shown], height=0.38, color=style.COLOURS[0],
              label="accuracy lost (percentage points)")  # fmt: skip
    axes.barh(y - 0.2, [100 * r["impurity"] for r in shown], height=0.38, color=style.COLOURS[5], alpha=0.55,
              label="importance to the tree (%)")  # fmt: skip
    axes.set_yticks(y, [r["feature"].replace("_", " ") for r in shown])
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)


def _applications(axes: Axes, rows: Rows) -> None:
    shown = rows[::-1]
    for y, row in enumerate(shown):
        for offset, key, count, colour, alpha in (
            (0.2, "accuracy_where_differ", "differing", style.COLOURS[0], 1.0),
            (-0.2, "accuracy", "count", style.COLOURS[5], 0.55),
        ):
            # None or NaN: of no sample.
            right = 100 * row[key] if row[count] else 0.0
            axes.barh(y + offset, right, height=0.38, color=colour, alpha=alpha)
            axes.annotate(f"of {row[count]}", (right, y + offset), (3, 0), textcoords="offset points",
                          va="center", fontsize=7.5)  # fmt: skip
    axes.set_yticks(range(len(shown)), [r["application"] for r in shown])
    axes.set(xlim=(0, 112), xlabel="% chosen right")
    axes.grid(visible=False, axis="y")


def _scatter(axes: Axes, table: pd.DataFrame, two: Sequence[str]) -> None:
    speed, clear = throughput(table), differ(table)
    y, x = speed[two[0]].to_numpy(), speed[two[1]].to_numpy()
    axes.scatter(x[~clear], y[~clear], s=9, color="0.6", alpha=0.6, label=_NOISE, linewidths=0)
    axes.scatter(x[clear], y[clear], s=9, alpha=0.6, label="differ", linewidths=0)
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    axes.plot(ends, ends, color="0.4", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel=two[1], ylabel=two[0])
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, format_bandwidth, 2)
    axes.legend(loc="upper left", fontsize=8)
