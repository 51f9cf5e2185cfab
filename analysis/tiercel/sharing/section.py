"""Sharing: what competing jobs got of a storage, against what the policy entitles them to."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.pages.tables import Table, table
from tiercel.report import style, words
from tiercel.report.data import stack_key
from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.base import Context, Section, sections
from tiercel.results.raw import RawStore
from tiercel.sharing.section_findings import findings
from tiercel.sharing.section_labels import short, told_apart
from tiercel.sharing.section_scale import full_scale
from tiercel.sharing.section_slowdown import slowdown_pictures
from tiercel.sharing.section_tree import tree_pictures
from tiercel.units import format_bandwidth, format_rate, format_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESULT = "sharing.json"
_JOB = "job-"
_NUMBERS = (
    "share", "entitled_share", "share_deviation", "slowdown", "slowdown_allowed", "slowdown_noise",
    "bandwidth", "operation_rate",
)  # fmt: skip
_COLUMNS = (
    "Stack", "Job", "Throughput", "Share", "Entitled", "Deviation", "Slowdown", "Allowed", "Noise",
    "Fair after",
)  # fmt: skip
_PER_ROW = 3
_MOST_PANELS = 12
#: What "never" is sorted by, seconds: a page's script knows no infinity in a cell.
_LAST = 1e9
#: Jobs are told apart by their lines, too, not by colour alone.
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))


@sections.register("sharing")
def sharing(context: Context) -> Section | None:
    """Return the section, or None for a study without competing jobs."""
    everything = context.results.observations
    everything = everything[~everything["traced"].fillna(False).astype(bool)]
    rows = everything[everything["operation"].astype(str).str.startswith(_JOB)]
    if rows.empty or "share" not in rows:
        return None
    rows = rows.copy()
    rows["stack"] = [stack_key(s, n) for s, n in zip(rows["storage"], rows["layer"], strict=True)]
    rows["job"] = rows["operation"].str.removeprefix(_JOB)
    rows = _in_order(context, rows)
    totals = everything[everything["operation"] == "all-jobs"].set_index("run")
    simulated, said_of_it = full_scale(context.results.study)
    return Section(
        anchor="sharing",
        heading="Sharing",
        paragraphs=findings(context, rows),
        pictures=(
            *slowdown_pictures(context, rows),
            *_pictures(context, rows),
            *tree_pictures(context, rows),
        ),
        tables=(
            *(
                _table(context, rows, totals, str(experiment), str(workload))
                for (experiment, workload), _ in rows.groupby(["experiment", "workload"], sort=False)
            ),
            *((simulated,) if simulated else ()),
        ),
        notes=(
            "Shares are of what all jobs got while all of them ran, without the first fifth of that time: "
            "through the layer in the units of its policy (bytes and a charge for each operation), on plain "
            "storage in bytes, or operations where a job moves no data. Entitled: the policy's share. A job "
            "that wants less than its share leaves the rest to others.",
            "Deviation: standard deviation of the share over intervals (the workload's interval: 0.1 s "
            "unless it says otherwise). Slowdown: of the first job, against the same job alone (an "
            "application: alone before and after; noise is by how much these two differ). Allowed: what the "
            "policy's share lets an application lose to the others' I/O. That they take processor time is "
            "not in it, so compare where the storage is what is short: a layer with a rate stands for such "
            "a storage, and serves no more. Medians over the repetitions. Fair after: never, where most "
            "repetitions did not come to it while all jobs ran.",
            *said_of_it,
        ),
    )


def _table(
    context: Context, rows: pd.DataFrame, totals: pd.DataFrame, experiment: str, workload: str
) -> Table:
    chosen = rows[(rows["experiment"] == experiment) & (rows["workload"] == workload)]
    lines: list[list[Any]] = []
    mine = rows.loc[rows["experiment"] == experiment, "run"]
    known = totals["seconds_to_share"].reindex(mine).notna().any()
    for (stack, job), group in chosen.groupby(["stack", "job"], sort=False):
        m = group.reindex(columns=_NUMBERS).astype(float).median()
        reached = totals["seconds_to_share"].reindex(group["run"]).astype(float)
        rate = (format_bandwidth(m.bandwidth), m.bandwidth)
        if not m.bandwidth > 0:
            rate = (format_rate(m.operation_rate), m.operation_rate)
        lines.append([
            context.results.name(str(stack)), job, rate, _percent(m.share), _percent(m.entitled_share),
            _percent(m.share_deviation), _percent(m.slowdown), _percent(m.slowdown_allowed),
            _percent(m.slowdown_noise), _fair_after(reached, bool(known)),
        ])  # fmt: skip
    # What no row of this table has is no column of it.
    kept = [n for n in range(len(_COLUMNS)) if any(line[n] != "" for line in lines)]
    return table(
        f"{context.results.experiment_title(experiment)}: {context.results.title(experiment, workload)}",
        [_COLUMNS[n] for n in kept],
        [[line[n] for n in kept] for line in lines],
    )


def _in_order(context: Context, rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows as the study has its workloads, stacks in one order everywhere, the plain storage first.

    Runs were made in random order, and by name 200 ms would come before 50 ms.
    """
    names = [(e, w) for e, of in context.results.study.experiments.items() for w in of.all_workloads()]
    order = {pair: number for number, pair in enumerate(names)}
    pairs = zip(rows["experiment"], rows["workload"], strict=True)
    rows = rows.assign(
        place=[order.get(pair, len(order)) for pair in pairs], plain=rows["layer"] == "none"
    )  # fmt: skip
    by = ["place", "plain", "stack", "phase"]
    return rows.sort_values(by, ascending=[True, False, True, True], kind="stable")


def _fair_after(seconds: pd.Series[float], known: bool) -> Any:
    """Return the median time to the policy's shares, in which never counts as the longest.

    `known`: whether any run of the experiment came to them; where none did, it may not be asked.
    """
    if not known:
        return ""
    middle = float(seconds.fillna(math.inf).median())
    return ("never", _LAST) if math.isinf(middle) else (f"{middle:.1f} s", middle)


def _percent(value: float) -> Any:
    return "" if math.isnan(value) else (format_share(value, 1), value)


Panels = list[tuple[str, dict[str, Any]]]


def _pictures(context: Context, rows: pd.DataFrame) -> list[Picture]:
    """Draw throughput over time: a figure for each workload and storage with a panel for each layer.

    An experiment on the plain storage alone gets one figure with a panel for each workload.
    """
    found = []
    for (experiment, storage), group in rows.groupby(["experiment", "storage"], sort=False):
        where = f"{context.results.experiment_title(str(experiment))}"
        place = str(group["storage_label"].iloc[0] or storage)
        name = f"sharing-{experiment}"
        if group["stack"].nunique() == 1:
            panels = _panels(context, group, "workload")
            titled = [(context.results.title(str(experiment), key), document) for key, document in panels]
            found += _picture(context, f"{name}-{storage}", f"{where} on {place}", str(experiment), titled)
            continue
        for workload, of_workload in group.groupby("workload", sort=False):
            panels = _panels(context, of_workload, "stack")
            labels, common = told_apart([short(context, stack, place) for stack, _ in panels])
            labelled = [(label, document) for label, (_, document) in zip(labels, panels, strict=True)]
            said = context.results.title(str(experiment), str(workload))
            title = f"{where}: {said} on {place}" + (f", {common}" if common else "")
            found += _picture(context, f"{name}-{workload}-{storage}", title, str(experiment), labelled)
    return found


def _panels(context: Context, rows: pd.DataFrame, by: str) -> Panels:
    """Return the first repetition's document of each value of column `by`."""
    store = RawStore(context.folder)
    found = []
    for value, group in rows.groupby(by, sort=False):
        document = _document(store.path(str(group.sort_values("repetition")["run"].iloc[0])))
        if document:
            found.append((str(value), document))
    return found[:_MOST_PANELS]


def _picture(context: Context, name: str, title: str, experiment: str, panels: Panels) -> list[Picture]:
    if not panels:
        return []
    caption = "Throughput of every job over time, in the first repetition; all jobs run in the shaded time."
    if len({document["unit"] for _, document in panels}) > 1:
        caption += " Each has its own axis of throughput."
    if any(not any(job["series"]) for _, document in panels for job in document["jobs"]):
        caption += " What an application moves on plain storage is not known."
    size = (8.4, 0.6 + 2.0 * math.ceil(len(panels) / _PER_ROW))
    made = picture_of(context.figures, name, title, caption, size, partial(_draw, panels=panels), experiment)
    return [replace(made, data=_data(panels))]


def _data(panels: Panels) -> list[dict[str, Any]]:
    """Return what a figure shows: a row for each job and interval in which something ended."""
    return [
        {"layer": label, "job": job["job"], "time": round((n + 0.5) * document["interval"], 6), unit: rate}
        for label, document in panels
        for unit in ("bytes_per_second" if document["unit"] == "B/s" else "operations_per_second",)
        for job in document["jobs"]
        for n, rate in enumerate(job["series"])
        if rate
    ]


def _document(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / RESULT).read_text())
    except (OSError, ValueError):
        return None
    return found


def _draw(figure: Figure, panels: Panels) -> None:
    columns = min(_PER_ROW, len(panels))
    rows = math.ceil(len(panels) / columns)
    kinds = {document["unit"] for _, document in panels}
    # What counts the same has one axis: one that ends lower would look as high.
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=len(kinds) == 1)
    jobs = list(dict.fromkeys(job["job"] for _, document in panels for job in document["jobs"]))
    colours = style.colours(jobs)
    lines = {job: _LINES[n % len(_LINES)] for n, job in enumerate(jobs)}
    units = {kind: _unit(kind, panels) for kind in dict.fromkeys(document["unit"] for _, document in panels)}
    for place, ax in enumerate(axes.flat):
        if place >= len(panels):
            ax.remove()
            continue
        label, document = panels[place]
        divisor, unit = units[document["unit"]]
        _panel(ax, document, divisor, colours, lines)
        ax.set_title(label, fontsize=8.5)
        if place % columns == 0 or len(units) > 1:  # a neighbour may count something else
            ax.set_ylabel(unit)
        if place + columns >= len(panels):  # nothing below it
            ax.set_xlabel("time (s)")
            ax.tick_params(labelbottom=True)
    for ax in figure.axes:  # once all is drawn: of axes that share one, the first end would cut the others
        ax.set_ylim(bottom=0)
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=min(8, len(names)), fontsize=8, frameon=False
    )


def _unit(kind: str, panels: Panels) -> tuple[float, str]:
    """Return (divisor, name) of the unit of all panels that count `kind`: one that the page's tables use."""
    jobs = [job for _, document in panels if document["unit"] == kind for job in document["jobs"]]
    most = max((rate for job in jobs for rate in job["series"]), default=0.0)
    return words.unit("bandwidth" if kind == "B/s" else "operation_rate", most)


def _panel(
    ax: Axes, document: dict[str, Any], divisor: float, colours: dict[str, str], lines: dict[str, Any]
) -> None:
    for job in document["jobs"]:
        series = np.asarray(job["series"], dtype=float) / divisor
        series[series == 0] = np.nan
        at = (np.arange(len(series)) + 0.5) * document["interval"]
        name = job["job"]
        ax.plot(at, series, color=colours[name], linestyle=lines[name], label=name, linewidth=1.2)
    start, end = document["contested"]
    ax.axvspan(start, end, color="#7f7f7f", alpha=0.12, linewidth=0)
