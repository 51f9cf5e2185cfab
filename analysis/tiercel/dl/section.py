"""Deep learning: utilisation, throughput, where the time goes, and the loader settings that suit storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from tiercel.dl.optimise import Gain, gain_of, recommendation_lines
from tiercel.dl.section_epochs import epoch_pictures
from tiercel.dl.section_numbers import Utilisation, idle_keys, mark_of, trainings, utilisations
from tiercel.dl.section_scaling import scales_of, scaling_pictures
from tiercel.dl.section_settings import SHUFFLED, Tried, settings_pictures
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.pages.tables import Table, table
from tiercel.report import style
from tiercel.report.picture import Picture, picture
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.interval import NOTE, interval_cell
from tiercel.units import format_bandwidth, format_share, format_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Wall-clock time of the job in the first epoch: what each part is, and its shade.
_PARTS = (("nonoverlapped_io", "I/O, not overlapped", 1.0), ("overlapped_io", "I/O, overlapped", 0.55),
          ("compute_alone", "computation only", 0.2))  # fmt: skip
_MOST_BARS = 12
_AU = (
    "Accelerator utilisation (AU): emulated computation over time, without the first step (DLIO, MLPerf "
    "Storage). A result at a scale below 1 is no MLPerf result. A goal inside the interval is undecided."
)
#: Workloads that a sentence names one by one.
_FEW = 6
#: Settings that only go with another one: chunks are on where they have a size, gzip where it has a level.
_BESIDE = ("dataset.enable_chunking", "dataset.compression")
_SHUFFLE = "reader.sample_shuffle"


@sections.register("deep-learning")
def deep_learning(context: Context) -> Section | None:
    """Return the section, or None for a study without training."""
    rows = trainings(context.results)
    if rows.empty:  # of a study that goes on, twins or traced runs may be all that there is yet
        return None
    # As the study has them: so does the rest of the page.
    places = [context.results.place(e, w) for e, w in zip(rows["experiment"], rows["workload"], strict=True)]
    rows = rows.iloc[sorted(range(len(rows)), key=places.__getitem__)]
    first = rows[rows["operation"] == "train"]
    pictures = [*_bars(context, first), *_scaling(context, first), *_epochs(context, first)]
    gains = list(_gains(first))
    pictures += _settings_pictures(context, first)
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
            *((_AU,) if (rows["computation_time"].fillna(0) > 0).any() else ()),
            "Application throughput: bytes over the I/O time that is not overlapped by computation. System "
            "throughput: bytes over all I/O time (VAST study of 2024, section VI).",
            NOTE,
            *_idle(context),
        ),
    )


def _idle(context: Context) -> Iterator[str]:
    """Yield a sentence for each set of keys of workload files that do nothing here."""
    titles: dict[tuple[str, ...], dict[str, None]] = {}
    for (experiment, workload), keys in idle_keys(context.results).items():
        titles.setdefault(tuple(keys), {})[context.results.title(experiment, workload)] = None
    for idle, names in titles.items():
        where = ", ".join(names) if len(names) <= _FEW else f"{len(names)} workloads"
        yield f"Keys without effect on dlkernel in {where}: {', '.join(idle)} (see `tiercel dl check`)."


def _texts(context: Context, first: pd.DataFrame, gains: list[tuple[str, str, Gain]]) -> tuple[str, ...]:
    found = []
    shares = sorted(first["data_scale"].dropna().unique())
    if shares and shares[0] < 1:
        amount = _percent(shares[0]) + (f" to {_percent(shares[-1])}" if len(shares) > 1 else "")
        computes = (first["computation_time"].fillna(0) > 0).any()
        found.append(
            f"Workloads are scaled: an epoch reads {amount} of the "
            f"data{' and computes less' if computes else ''}."
        )
    best: dict[tuple[str, str], Gain] = {}
    for experiment, stack, gain in gains:
        key = (experiment, stack)
        if gain.better and (key not in best or gain.ratio > best[key].ratio):
            best[key] = gain
    for (experiment, stack), gain in best.items():
        code = recommendation_lines(gain.settings, _format(context, experiment))
        lines = "; ".join(f"{where}: `{line}`" for where, line in code.items())
        found.append(
            f"{context.results.experiment_title(experiment)} from {context.results.name(stack)}: "
            f"`{_words(gain.settings)}` reads {gain.ratio:.2f}× as fast as the workload file's settings "
            f"(95 % CI {gain.low:.2f} to {gain.high:.2f}). {lines}"
        )
    return tuple(found)


def _format(context: Context, experiment: str) -> str:
    """Return the format of an experiment's files; empty where the study says nothing of them any more."""
    asked = context.results.study.experiments.get(experiment)
    workload = asked.all_workloads().get("default") if asked else None
    if not isinstance(workload, DeepLearningWorkload):
        return ""
    return workload.resolved(1, 1)[0].dataset.format


def _percent(share: float) -> str:
    return format_share(share, 2) if share < 0.1 else format_share(share)


def _utilisation(context: Context, rows: pd.DataFrame) -> Table:
    body = []
    several_nodes = (rows["nodes"] > 1).any()
    found = list(utilisations(rows))
    computes = any(one.au.notna().any() for one in found)
    for one in found:
        key, origin = one.key, one.key["origin"]
        body.append((
            context.results.title(key["experiment"], key["workload"]), context.results.name(key["stack"]),
            key["engine"] if origin == "measured" else f"{key['engine']} ({origin})",
            *((int(key["nodes"]),) if several_nodes else ()), int(key["processes"]), one.epochs,
            *_au(one, computes),
            interval_cell(one.speed("samples_per_second"), format_whole),
            interval_cell(one.speed("app_throughput"), format_bandwidth),
            interval_cell(one.speed("system_throughput"), format_bandwidth),
            (_percent(one.data_scale), one.data_scale),
        ))  # fmt: skip
    return table(
        "Training speed and utilisation. Medians over repetitions; later epochs may come from memory",
        ("Workload", "Storage", "Engine", *(("Nodes",) if several_nodes else ()), "Processes", "Epochs",
         *(("AU", "Goal") if computes else ()), "Samples/s", "Application", "System", "Scale"),
        body,
        ("Processes", *(("AU",) if computes else ()), "Samples/s", "Application", "System", "Scale"),
    )  # fmt: skip


def _au(one: Utilisation, computes: bool) -> tuple[Any, ...]:
    """Return the cells of AU and of its mark; none where nothing of the study computes."""
    if not computes:
        return ()
    return interval_cell(one.au, lambda share: format_share(share, 1)), mark_of(one.au, one.goal)


def _bars(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    """Yield, for each workload with computation, a bar for each storage and engine, at the largest scale."""
    shown = first[first["computation_time"].fillna(0) > 0]
    for experiment, workload, every in _workloads(shown):
        parts = [name for name, _, _ in _PARTS]
        group = _at_most(every)
        middle = group.groupby(["stack", "engine", "processes"], sort=False)[parts].median().reset_index()
        middle = middle.dropna(subset=parts).sort_values(["processes", "stack"]).head(_MOST_BARS)
        if middle.empty:  # an engine that does not say
            continue
        title = f"{context.results.title(experiment, workload)}: time of the first epoch"
        several = middle["engine"].nunique() > 1
        made = picture(
            context.figures, f"dl-time-{experiment}-{workload}", title,
            "Medians. Only I/O that is not overlapped delays training.",
            (5.2, 1.5 + 0.3 * len(middle)), partial(_draw_bars, context, middle, several), experiment,
        )  # fmt: skip
        rows = middle.to_dict("records")
        yield replace(made, data=[
            {"storage": context.results.name(str(row["stack"])), "engine": row["engine"],
             "processes": int(row["processes"]), **{f"{label}, time": row[name] for name, label, _ in _PARTS}}
            for row in rows
        ])  # fmt: skip


def _scaling(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    for experiment, workload, group in _workloads(first):
        yield from scaling_pictures(context, experiment, workload, _one_engine(group))


def _epochs(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    for experiment, workload, group in _workloads(first):
        largest, engine = _largest(group)
        yield from epoch_pictures(context, experiment, workload, engine, largest)


def _at_most(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the largest scale."""
    last = scales_of(rows)[-1]
    return rows[(rows["nodes"] == last.nodes) & (rows["processes"] == last.processes)]


def _workloads(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    for key, group in rows.groupby(["experiment", "workload"], sort=False):
        experiment, workload = (str(part) for part in cast(tuple[str, str], key))
        yield experiment, workload, group


def _draw_bars(context: Context, middle: pd.DataFrame, several: bool, axes: Axes) -> None:
    from matplotlib.patches import Patch

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
    cast("Figure", axes.figure).legend(handles=handles, loc="outside lower center", ncols=3)


def _largest(group: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows of the most processes, of one engine (storage systems are compared, not engines)."""
    rows = _one_engine(_at_most(group))
    return rows, str(rows["engine"].iloc[0])


def _one_engine(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one engine: storage systems are compared, not engines."""
    engine = "dlkernel" if "dlkernel" in set(rows["engine"]) else str(rows["engine"].iloc[0])
    return rows[rows["engine"] == engine]


def _variants(first: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, pd.DataFrame]]:
    """Yield (experiment, stack, rows of the workload `default`, rows of another one of its settings)."""
    by = ["experiment", "stack", "engine", "nodes", "processes"]
    for key, group in first.groupby(by, sort=False):
        experiment, stack, *_ = cast(tuple[Any, ...], key)
        base = group[group["workload"] == "default"]
        for workload, some in group.groupby("workload", sort=False):
            if workload != "default" and len(some) >= 2 and len(base) >= 2:
                yield str(experiment), str(stack), base, some


def _dl_settings(rows: pd.DataFrame) -> str:
    return str(rows["dl_settings"].iloc[0])


def _gains(first: pd.DataFrame) -> Iterator[tuple[str, str, Gain]]:
    """Yield (experiment, stack, gain) of every variant against the workload `default`."""
    for experiment, stack, base, some in _variants(first):
        settings = _difference(_dl_settings(base), _dl_settings(some))
        axis = ", ".join(key for key in settings if key != "dataset.enable_chunking")
        yield (
            experiment,
            stack,
            gain_of(axis, settings, base["total_time"].tolist(), some["total_time"].tolist()),
        )


def _settings_pictures(context: Context, first: pd.DataFrame) -> Iterator[Picture]:
    """Yield the figures of loader settings that were tried one by one."""
    if first.empty:
        return
    tried, files = [], {}
    rows = pd.concat([_largest(group)[0] for _, group in first.groupby("experiment", sort=False)])
    for experiment, stack, base, some in _variants(rows):
        settings = _difference(_dl_settings(base), _dl_settings(some))
        changed = [key for key in settings if key not in _BESIDE] or list(settings)
        axis = changed[0]
        if len(changed) == 2 and settings.get(_SHUFFLE, "off") != "off":
            changed.remove(_SHUFFLE)
            axis = f"{changed[0]}{SHUFFLED}"
        if len(changed) == 1:
            seconds, bandwidth = some["total_time"].tolist(), float(some["bandwidth"].median())
            tried.append(Tried(experiment, stack, axis, settings[changed[0]], seconds, bandwidth))
            files[experiment, stack] = base["total_time"].tolist()
    yield from settings_pictures(context, tried, files)


def _difference(base: str, other: str) -> dict[str, Any]:
    known = set(base.split(", "))
    pairs = (item.split("=", 1) for item in other.split(", ") if item not in known and "=" in item)
    return {key: int(value) if value.lstrip("-").isdigit() else value for key, value in pairs}


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items())


def _by_value(gain: Gain) -> tuple[str, list[tuple[bool, Any]]]:
    """Return a sort key: what was set, then its values, numbers by size."""
    return gain.axis, [(isinstance(value, str), value) for value in gain.settings.values()]


def _settings(context: Context, gains: list[tuple[str, str, Gain]]) -> Table:
    experiments = list(dict.fromkeys(experiment for experiment, _, _ in gains))
    stacks = list(context.results.stacks)
    gains = sorted(gains, key=lambda g: (experiments.index(g[0]), stacks.index(g[1]), _by_value(g[2])))
    body = [
        (
            context.results.experiment_title(experiment), context.results.name(stack), _words(gain.settings),
            (f"{gain.ratio:.2f}", gain.ratio), f"{gain.low:.2f} to {gain.high:.2f}",
            "better" if gain.better else "worse" if gain.high < 1 else "no difference proven",
        )
        for experiment, stack, gain in gains
    ]  # fmt: skip
    return table(
        "Loader settings. Speed of the first epoch relative to the settings of the workload file",
        ("Experiment", "Storage", "Setting", "Gain", "95 % interval", "Verdict"), body, ("Gain",),
    )  # fmt: skip
