"""The timeline of a traced workload, one panel for each storage: small, because it is one picture of pixels.

Each process has a line, in which a bin of time has the colour of the kinds of calls that it spent there, the
stronger the more of the bin; below it, where the trace knows it, a thinner line for computation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.trace_cells import Row
from tiercel.traces.analysis.timeline import COLOURS
from tiercel.units import format_latency

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = {"read": "read", "write": "write", "metadata": "metadata", "sync": "sync", "compute": "computation"}
#: Pixels of a process' line of calls, of its line of computation, and between processes.
_CALLS, _COMPUTES, _BETWEEN = 6, 2, 1
#: Time that a bin spent in calls is seen from here on, however short.
_FAINTEST = 0.15
#: A kind that never has so much of what colours a bin, of 1, is not in the legend.
_SEEN = 0.1
#: Beyond this ratio of times, each storage has an axis of its own.
_ONE_AXIS = 25.0
#: A phase is named where it is wider than this part of its axis.
_NAMED = 0.11
#: Of more phases (repeats of one) no beginning is marked: the lines hid the calls.
_PHASES = 12

Pixels = npt.NDArray[np.float64]


def lanes_picture(folder: Path, name: str, rows: Sequence[Row]) -> Picture | None:
    """Return the picture of a workload's timelines, or None where no trace took any time."""
    drawn = [(row["label"], json.loads(row["timeline"])) for row in rows if isinstance(row["timeline"], str)]
    if not drawn:
        return None
    lengths = [_length(timeline) for _, timeline in drawn]
    one_axis = max(lengths) <= _ONE_AXIS * min(lengths)
    seen = set().union(*(_seen(timeline) for _, timeline in drawn))
    kinds = [kind for kind in _KINDS if kind in seen]
    many = any(lane["lane"] == "all" for _, t in drawn for lane in t["lanes"])
    lines = "one line for all processes together" if many else "one line for each process"
    below = ", the thin line below it is its computation" if "compute" in kinds else ""
    axis = "" if one_axis else " Each storage has its own time axis."
    made = picture_of(
        folder,
        name,
        f"I/O of the processes: {rows[0]['heading']}",
        f"Time in calls, {lines}{below}.{axis}",
        (6.2, 0.85 + 0.62 * len(drawn) + (0 if one_axis else 0.25 * len(drawn))),
        lambda figure: _draw(figure, drawn, max(lengths) if one_axis else None, kinds),
        rows[0]["experiment"],
    )
    return replace(made, data=[row for label, timeline in drawn for row in _times(label, timeline)])


def _seen(timeline: dict[str, Any]) -> set[str]:
    """Return the kinds that some bin has a colour of: bins are faint but seen where little goes on."""
    found = set()
    for name in {lane["lane"] for lane in timeline["lanes"]}:
        lanes = [lane for lane in timeline["lanes"] if lane["lane"] == name]
        total = np.sum([lane["busy"] for lane in lanes if lane["kind"] != "compute"] or [[0]], axis=0)
        for lane in lanes:
            busy = np.array(lane["busy"])
            of = busy if lane["kind"] == "compute" else total
            if (busy[of > 0] >= _SEEN * of[of > 0]).any():
                found.add(lane["kind"])
    return found


def _times(label: str, timeline: dict[str, Any]) -> Iterator[Row]:
    """Yield how long each line of a timeline is of each kind."""
    for lane in timeline["lanes"]:
        busy = sum(lane["busy"]) / 100 * timeline["width"]
        yield {
            "storage": label, "process": str(lane["lane"]), "kind": _KINDS.get(lane["kind"], lane["kind"]),
            "time": busy,
        }  # fmt: skip


def _length(timeline: dict[str, Any]) -> float:
    bins = len(timeline["lanes"][0]["busy"])
    return float(timeline["width"]) * bins


def _draw(
    figure: Figure, drawn: Sequence[tuple[str, dict[str, Any]]], length: float | None, kinds: Sequence[str]
) -> None:
    from matplotlib.patches import Patch

    panels = figure.subplots(len(drawn), 1, sharex=length is not None, squeeze=False)[:, 0]
    for axes, (label, timeline) in zip(panels, drawn, strict=True):
        _panel(axes, label, timeline, length)
    _seconds(panels[-1])
    for axes in panels[:-1]:
        if length is None:
            _seconds(axes)
        else:
            axes.tick_params(labelbottom=False, bottom=False)
    patches = [Patch(color=COLOURS[kind], label=_KINDS[kind]) for kind in kinds]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), handlelength=1)


def _panel(axes: Axes, label: str, timeline: dict[str, Any], length: float | None) -> None:
    own = _length(timeline)
    # Pixels as they are: one for each bin, however wide the page.
    axes.imshow(pixels(timeline), extent=(0, own, 0, 1), aspect="auto", interpolation="none")
    axes.set(xlim=(0, length or own), ylim=(0, 1.28), yticks=[])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8.5)
    for phase in timeline["phases"] if 1 < len(timeline["phases"]) <= _PHASES else ():
        start, end = phase["start"] - timeline["start"], phase["end"] - timeline["start"]
        axes.plot([start, start], [0, 1.2], linewidth=0.5, color="0.5")
        if end - start >= _NAMED * (length or own):
            words = phase["operation"].replace("-", " ")
            axes.text(start, 1.04, f" {words}", fontsize=6.5, va="bottom", ha="left")


def _seconds(axes: Axes) -> None:
    low, high = axes.get_xlim()
    ticks = [low + (high - low) * part / 4 for part in range(5)]
    axes.set_xticks(ticks, ["0", *(format_latency(tick) for tick in ticks[1:])])


def pixels(timeline: dict[str, Any]) -> Pixels:
    """Return the picture of a timeline: rows of RGBA values, one column for each bin."""
    bins = len(timeline["lanes"][0]["busy"])
    names = list(dict.fromkeys(lane["lane"] for lane in timeline["lanes"]))
    computes = any(lane["kind"] == "compute" for lane in timeline["lanes"])
    rows = []
    for name in names:
        mine = {x["kind"]: np.array(x["busy"]) / 100 for x in timeline["lanes"] if x["lane"] == name}
        calls = {kind: share for kind, share in mine.items() if kind != "compute"}
        rows += [_mixed(calls, bins)] * _CALLS
        if computes:
            rows += [_mixed({k: s for k, s in mine.items() if k == "compute"}, bins)] * _COMPUTES
        rows += [np.zeros((bins, 4))] * _BETWEEN
    return np.array(rows[:-_BETWEEN])


def _mixed(shares: dict[str, Pixels], bins: int) -> Pixels:
    """Return one line of pixels: colours weighted by their shares, as strong as all shares together."""
    from matplotlib.colors import to_rgb

    line = np.zeros((bins, 4))
    if not shares:
        return line
    weights = np.array(list(shares.values()))
    colours = np.array([to_rgb(COLOURS[kind]) for kind in shares])
    total = weights.sum(axis=0)
    busy = total > 0
    line[busy, :3] = (weights.T @ colours)[busy] / total[busy, None]
    line[busy, 3] = np.clip(total[busy], _FAINTEST, 1)
    return line
