"""Deep learning: utilisation, throughput, where the time goes, and the loader settings that suit storage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from tiercel.dl.optimise import Gain, gain_of, recommendation_lines
from tiercel.pages.tables import Table, table
from tiercel.report import style
from tiercel.report.data import stack_key
from tiercel.report.picture import Picture, picture
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.interval import NOTE, interval_cell
from tiercel.units import format_bandwidth

#: Wall-clock time of the job in the first epoch: what each part is, and its shade.
_PARTS = (("nonoverlapped_io", "I/O, not hidden", 1.0), ("overlapped_io", "I/O behind computation", 0.55),
          ("compute_alone", "computation alone", 0.2))  # fmt: skip
_MOST_BARS = 12


@sections.register("deep-learning")
def deep_learning(context: Context) -> Section | None:
    """Return the section, or None for a study without training."""
    everything = context.results.observations
    rows = everything[everything["operation"].isin(["train", "train-later"])]
    if rows.empty or "au" not in rows:
        return None
    rows = rows[(rows["twin"] == "a") & ~rows["traced"].astype(bool)].copy()
    rows["stack"] = [stack_key(s, n) for s, n in zip(rows["storage"], rows["layer"], strict=True)]
    first = rows[rows["operation"] == "train"]
    pictures = [*_bars(context, first), *_epochs(context, first)]
    gains = list(_gains(first))
    tables = [_utilisation(context, rows)]
    if gains:
        tables.append(_settings(context, gains))
    return Section(
        anchor="deep-learning",
        heading="Deep learning",
        paragraphs=_texts(context, first, gains),
        pictures=tuple(pictures),
        tables=tuple(tables),
        notes=(
            "Accelerator utilisation (AU) is emulated computation over time, without the first step, as DLIO "
            "and MLPerf Storage define it; a pass at a scale below 1 is no MLPerf result.",
            "Application throughput is bytes over the I/O time that computation does not hide, system "
            "throughput bytes over all I/O time (paper 004, section VI).",
            NOTE,
        ),
    )


def _texts(context: Context, first: pd.DataFrame, gains: list[tuple[str, str, Gain]]) -> tuple[str, ...]:
    found = []
    shares = sorted(first["data_scale"].dropna().unique())
    if shares and shares[0] < 1:
        found.append(
            f"Workloads are scaled: an epoch reads {_percent(shares[0])} to {_percent(shares[-1])} of the "
            "workload file's data, and its computation shrinks with it."
            if len(shares) > 1
            else f"Workloads are scaled to {_percent(shares[0])} of the workload file's data and computation."
        )
    best: dict[tuple[str, str], Gain] = {}
    for experiment, stack, gain in gains:
        key = (experiment, stack)
        if gain.better and (key not in best or gain.ratio > best[key].ratio):
            best[key] = gain
    for (experiment, stack), gain in best.items():
        lines = "; ".join(f"{where}: {line}" for where, line in recommendation_lines(gain.settings).items())
        found.append(
            f"{context.results.experiment_title(experiment)} from {context.results.name(stack)}: "
            f"{_words(gain.settings)} reads {gain.ratio:.2f} times as fast as the workload file's settings "
            f"(95 % interval {gain.low:.2f} to {gain.high:.2f}). {lines}"
        )
    return tuple(found)


def _percent(share: float) -> str:
    return f"{share:.2%}" if share < 0.1 else f"{share:.0%}"


def _utilisation(context: Context, rows: pd.DataFrame) -> Table:
    keys = ["experiment", "workload", "stack", "engine", "processes", "operation"]
    body = []
    for key, group in rows.groupby(keys, sort=False):
        experiment, workload, stack, engine, processes, operation = cast(tuple[Any, ...], key)
        middle = group.median(numeric_only=True)
        goal, has_compute = middle["au_goal"], (group["computation_time"].fillna(0) > 0).all()
        au = middle["au"] if has_compute else None
        several = group if has_compute else group.iloc[:0]
        body.append((
            context.results.title(experiment, workload), context.results.name(stack), engine, int(processes),
            "first" if operation == "train" else "later",
            interval_cell(several["au"], lambda share: f"{share:.1%}"),
            "" if au is None or pd.isna(goal) else f"{'passes' if au >= goal else 'below'} {goal:.0%}",
            interval_cell(group["samples_per_second"], lambda rate: f"{rate:.4g}"),
            _speed(group, "app_throughput"), _speed(group, "system_throughput"),
            (_percent(middle["data_scale"]), middle["data_scale"]),
        ))  # fmt: skip
    return table(
        "Training: medians over repetitions. First epochs are cold, later ones may come from memory.",
        ("Workload", "Storage", "Engine", "Processes", "Epochs", "AU", "Mark", "Samples/s", "Application",
         "System", "Scale"),
        body,
        ("Processes", "AU", "Samples/s", "Application", "System", "Scale"),
    )  # fmt: skip


def _speed(group: pd.DataFrame, name: str) -> tuple[str, float]:
    """Return a cell; empty where the engine does not say (DLIO), or where computation hides all I/O."""
    return interval_cell(group.get(name, ()), format_bandwidth)


def _bars(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    """Yield, for each workload with computation, a bar for each storage and number of processes."""
    shown = first[first["computation_time"].fillna(0) > 0]
    for experiment, workload, group in _workloads(shown):
        parts = [name for name, _, _ in _PARTS]
        middle = group.groupby(["stack", "engine", "processes"], sort=False)[parts].median().reset_index()
        middle = middle.dropna(subset=parts).sort_values(["processes", "stack"]).head(_MOST_BARS)
        if middle.empty:  # an engine that does not say
            continue
        title = f"{context.results.title(experiment, workload)}: where the time of the first epoch goes"
        several = middle["engine"].nunique() > 1
        yield picture(
            context.figures, f"dl-time-{experiment}-{workload}", title,
            "Wall-clock time of the job, medians. Only I/O that computation does not hide delays training.",
            (5.2, 1.5 + 0.3 * len(middle)), partial(_draw_bars, context, middle, several), experiment,
        )  # fmt: skip


def _workloads(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    for key, group in rows.groupby(["experiment", "workload"], sort=False):
        experiment, workload = (str(part) for part in cast(tuple[str, str], key))
        yield experiment, workload, group


def _draw_bars(context: Context, middle: pd.DataFrame, several: bool, axes: Axes) -> None:
    colours = style.colours(context.results.stacks)
    places = np.arange(len(middle))
    left = np.zeros(len(middle))
    for name, _, shade in _PARTS:
        values = middle[name].to_numpy(dtype=float)
        for place, value, start, stack in zip(places, values, left, middle["stack"], strict=True):
            colour = colours.get(stack, style.COLOURS[-1])
            axes.barh(place, value, 0.62, left=start, color=colour, alpha=shade,
                      edgecolor=style.INK, linewidth=0.5)  # fmt: skip
        left += values
    names = []
    for row in middle.to_dict("records"):
        engine = f", {row['engine']}" if several else ""
        noun = "process" if row["processes"] == 1 else "processes"
        names.append(f"{context.results.name(str(row['stack']))}{engine}, {row['processes']} {noun}")
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("seconds")
    handles = [
        Patch(facecolor=style.COLOURS[-1], alpha=shade, edgecolor=style.INK, linewidth=0.5, label=label)
        for _, label, shade in _PARTS
    ]
    cast(Figure, axes.figure).legend(handles=handles, loc="outside lower center", ncols=3)


def _epochs(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    """Yield AU by epoch for workloads with several: repetitions as dots, medians as lines."""
    shown = first[first["computation_time"].fillna(0) > 0]
    for experiment, workload, group in _workloads(shown):
        largest = group[group["processes"] == group["processes"].max()]
        # One engine: storage systems are compared here, not engines.
        engine = "dlkernel" if "dlkernel" in set(largest["engine"]) else str(largest["engine"].iloc[0])
        largest = largest[largest["engine"] == engine]
        found = {
            stack: [e for run in some["run"] for e in [_au_by_epoch(context.folder / "raw" / str(run))] if e]
            for stack, some in largest.groupby("stack", sort=False)
        }
        if not any(len(epochs) > 1 for runs in found.values() for epochs in runs):
            continue
        goal = float(largest["au_goal"].median())
        title = f"{context.results.title(experiment, workload)}, {engine}: accelerator utilisation by epoch"
        yield picture(
            context.figures, f"dl-au-{experiment}-{workload}", title,
            f"Dots are repetitions, lines medians; the dashed line is the pass mark, {goal:.0%}. The first "
            "epoch is cold.", (5.2, 2.8), partial(_draw_epochs, context, found, goal), experiment,
        )  # fmt: skip


def _au_by_epoch(folder: Path) -> list[float]:
    """Return the utilisation of each epoch of a run: dlkernel's rows, else DLIO's summary."""
    try:
        rows = json.loads((folder / "dlkernel.json").read_text())["rows"]
        return [float(row["au"]) for row in rows if row["kind"] == "train"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    for path in sorted(folder.rglob("summary.json")):
        try:
            metric = json.loads(path.read_text())["metric"]
            return [float(au) / 100 for au in metric["train_au_percentage"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return []


def _draw_epochs(context: Context, found: dict[str, list[list[float]]], goal: float, axes: Axes) -> None:
    colours = style.colours(context.results.stacks)
    for stack, runs in found.items():
        colour = colours.get(stack, style.COLOURS[-1])
        most = max(len(epochs) for epochs in runs) if runs else 0
        columns = [[epochs[n] * 100 for epochs in runs if len(epochs) > n] for n in range(most)]
        numbers = list(range(1, most + 1))
        axes.plot(numbers, [float(np.median(c)) for c in columns], "-o", color=colour, markersize=5,
                  linewidth=1.4, label=context.results.name(stack))  # fmt: skip
        for number, column in zip(numbers, columns, strict=True):
            axes.plot([number] * len(column), column, ".", color=colour, alpha=0.45, markersize=4)
    axes.axhline(goal * 100, linestyle="--", color=style.INK, linewidth=0.8, alpha=0.6)
    axes.set_ylim(0, 103)
    axes.set_ylabel("AU, %")
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    cast(Figure, axes.figure).legend(loc="outside lower left", ncols=3)


def _gains(first: pd.DataFrame) -> Iterator[tuple[str, str, Gain]]:
    """Yield (experiment, stack, gain) of every variant against the workload `default`."""
    for key, group in first.groupby(["experiment", "stack", "engine", "processes"], sort=False):
        experiment, stack, *_ = cast(tuple[Any, ...], key)
        base = group[group["workload"] == "default"]
        if base.empty:
            continue
        for workload, some in group.groupby("workload", sort=False):
            if workload == "default" or len(some) < 2 or len(base) < 2:
                continue
            settings = _difference(str(base["dl_settings"].iloc[0]), str(some["dl_settings"].iloc[0]))
            axis = ", ".join(key for key in settings if key != "dataset.enable_chunking")
            gain = gain_of(axis, settings, base["total_time"].tolist(), some["total_time"].tolist())
            yield str(experiment), str(stack), gain


def _difference(base: str, other: str) -> dict[str, Any]:
    known = set(base.split(", "))
    pairs = (item.split("=", 1) for item in other.split(", ") if item not in known and "=" in item)
    return {key: int(value) if value.lstrip("-").isdigit() else value for key, value in pairs}


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def _settings(context: Context, gains: list[tuple[str, str, Gain]]) -> Table:
    body = [
        (
            context.results.experiment_title(experiment), context.results.name(stack), _words(gain.settings),
            (f"{gain.ratio:.2f}", gain.ratio), f"{gain.low:.2f} to {gain.high:.2f}",
            "better" if gain.better else "worse" if gain.high < 1 else "no difference proven",
        )
        for experiment, stack, gain in gains
    ]  # fmt: skip
    return table(
        "Loader settings: how many times as fast the first epoch is, against the workload file's settings.",
        ("Experiment", "Storage", "Setting", "Gain", "95 % interval", "Verdict"), body, ("Gain",),
    )  # fmt: skip
