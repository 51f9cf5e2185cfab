"""The sections on time: I/O against computation, bandwidth, heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.pages.words import count, name, portion, seconds
from tiercel.traces.analysis.counters import only_counters
from tiercel.traces.analysis.heat import only_heat
from tiercel.traces.analysis.names import common_folder
from tiercel.traces.analysis.timeline import COLOURS, timeline, timeline_page
from tiercel.traces.page.charts import Series, heat, stack
from tiercel.traces.page.part import Drawing, Part
from tiercel.units import format_bandwidth, format_size

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

BINS = 120
#: Lines of a heat map of ranks; of more, neighbours share one.
LINES = 64
#: Files in a heat map.
FILES = 20
#: Letters of a file's name in the timeline inside the page: its end tells files apart.
_TIMELINE_NAME = 80
_FELT, _HIDDEN, _COMPUTES = "#d55e00", "#e9a06b", "#009e73"
_NO_TIME = "{} missing: this log holds counters alone, which do not say what happened when."
_NO_EVENT = "{} missing: there is no event in this trace, or none of those that were chosen."


def overlap_part(frame: IOFrame, numbers: Mapping[str, Any], api: str | None, calls: bool = True) -> Part:
    """I/O against computation over time; with `calls` also the timeline of single ones."""
    part = Part("overlap", "I/O against computation")
    if numbers["from"] == "counters":
        return Part(part.anchor, part.heading, (_NO_TIME.format("This section is"),))
    if not len(frame) or frame.job_time <= 0:
        return Part(part.anchor, part.heading, ("The trace holds no call that takes time.",))
    over = frame.overlap_over_time(bins=BINS, api=api)
    series = [
        Series("I/O that is felt", _FELT, over["felt_io"].tolist()),
        Series("I/O behind computation", _HIDDEN, over["hidden_io"].tolist()),
        Series("computation alone", _COMPUTES, over["compute"].tolist()),
    ]
    shown = series if numbers["compute_s"] else series[:1]
    drawing = Drawing(
        "What the ranks do",
        stack(shown, frame.job_time, "share of ranks in I/O and in computation over time", portion, 1.0),
        "Share of the ranks' time in each moment; the rest is neither.",
    )
    if not calls:
        return Part(part.anchor, part.heading, _overlap_words(numbers), (drawing,))
    blocks = timeline(frame)
    blocks["file"] = blocks["file"].str.slice(-_TIMELINE_NAME)
    return Part(
        part.anchor, part.heading, _overlap_words(numbers), (drawing,), inner=timeline_page(blocks, frame),
    )  # fmt: skip


def _overlap_words(numbers: Mapping[str, Any]) -> tuple[str, ...]:
    io, felt, compute = (numbers[k] or 0.0 for k in ("io_s", "nonoverlapped_io_s", "compute_s"))
    said = [f"At least one rank does I/O for {seconds(io)} (wall clock)."]
    if not compute:
        return (*said, "The trace marks no computation, so that what it would hide is not known.")
    said.append(
        f"Of these, {seconds(numbers['overlapped_io_s'] or 0.0)} are hidden behind the ranks' own "
        f"computation and {seconds(felt)} are felt; at least one rank computes for {seconds(compute)}."
    )
    rates = [(k, numbers[f"{k}_throughput_bytes_s"]) for k in ("app", "system")]
    words = {
        "app": "application throughput (bytes over I/O that is felt)",
        "system": "system throughput (over all I/O)",
    }
    told = " and ".join(f"{words[k]} {format_bandwidth(v)}" for k, v in rates if v is not None)
    return (*said, f"That makes {told}.") if told else tuple(said)


def moved_over_time(frame: IOFrame, api: str | None) -> pd.DataFrame | None:
    """Return `frame.bandwidth_over_time`; None where the trace does not say what happened when."""
    known = len(frame) or only_heat(frame)
    return frame.bandwidth_over_time(bins=BINS, api=api) if known else None


def peak(over: pd.DataFrame) -> float:
    """Return the most that moves in a part of the job, bytes a second."""
    return float((over["read_bandwidth"] + over["write_bandwidth"]).max())


def _lacking(frame: IOFrame) -> str:
    """Return why what happened when is not known."""
    return _NO_TIME if only_counters(frame) else _NO_EVENT


def bandwidth_part(frame: IOFrame, over: pd.DataFrame | None, top: float | None = None) -> Part:
    """Read and write bandwidth over time, on an axis up to `top` (default: the most there is)."""
    anchor, heading = "bandwidth", "Bandwidth over time"
    if over is None:
        return Part(anchor, heading, (_lacking(frame).format("This section is"),))
    moved = over[["read_bytes", "write_bytes"]].sum()
    if not moved.sum():
        return Part(anchor, heading, ("No call moved bytes.",))
    width = _width(over, frame)
    series = [
        Series(kind, COLOURS[kind], over[f"{kind}_bandwidth"].tolist()) for kind in ("read", "write")
        if moved[f"{kind}_bytes"] > 0
    ]  # fmt: skip
    both = over["read_bandwidth"] + over["write_bandwidth"]
    drawing = Drawing(
        "Bytes a second, all ranks together",
        stack(series, width * len(over), "bandwidth over time", format_bandwidth, top, 1024.0),
        f"Means over {seconds(width)} each; a call's bytes are spread evenly over its duration.",
    )
    busy = float((both > 0).mean())
    said = (
        f"{format_size(float(moved['read_bytes']))} read and "
        f"{format_size(float(moved['write_bytes']))} written; "
        f"at most {format_bandwidth(peak(over))}, and something moves in {portion(busy)} of the job's parts."
    )
    return Part(anchor, heading, (said,), (drawing,), notes=_counted_by(frame))


def _width(over: pd.DataFrame, frame: IOFrame) -> float:
    return float(over.index[1] - over.index[0]) if len(over) > 1 else frame.job_time or _heat_length(frame)


def _heat_length(frame: IOFrame) -> float:
    raw = frame.counters("HEATMAP")
    return 1.0 if raw is None or not len(raw) else float((raw["start"] + raw["width"]).max())


def _counted_by(frame: IOFrame) -> tuple[str, ...]:
    if not only_heat(frame):
        return ()
    return (
        "From Darshan's HEATMAP counters: bytes of each rank in bins of fixed width, all files together "
        "(also <STDOUT> and other pseudo-files, which the rest of the page leaves out).",
    )


def heat_part(frame: IOFrame, api: str | None) -> Part:
    """Heat maps by rank and by file."""
    anchor, heading = "heat", "Who does I/O when"
    if only_heat(frame):
        drawing = _by_rank(frame, api, "bytes")
        if drawing is None:
            return Part(anchor, heading, ("No rank moved bytes.",))
        return Part(anchor, heading, (), (drawing,), notes=_counted_by(frame))
    if not len(frame):
        return Part(anchor, heading, (_lacking(frame).format("Heat maps are"),))
    drawings = [_by_rank(frame, api, what) for what in ("io_time", "bytes")] + [_by_file(frame, api)]
    found = tuple(d for d in drawings if d is not None)
    return Part(anchor, heading, () if found else ("No call takes time or moves bytes.",), found)


def _by_rank(frame: IOFrame, api: str | None, what: str) -> Drawing | None:
    table = frame.heatmap(by="rank", bins=BINS, api=api)
    ranks = [int(r) for r in table.index.unique("rank")]
    if not ranks:
        return None
    width = float(table.attrs["width"])
    values = _values(table, what).reshape(len(ranks), -1)
    if not values.max(initial=0.0):
        return None
    names, values = _banded(ranks, values)
    together = (
        "" if len(ranks) == len(names) else f" Of {len(ranks)} ranks, neighbours share a line (their mean)."
    )
    length = width * values.shape[1]
    if what == "io_time":
        values = values / width
        return Drawing(
            "Time in I/O calls, by rank",
            heat(names, values, length, "time in I/O calls by rank", "#d55e00", portion),
            f"Share of each {seconds(width)} in calls; threads count each.{together}",
        )  # fmt: skip
    return Drawing(
        "Bytes moved, by rank", heat(names, values, length, "bytes moved by rank", "#0072b2", format_size),
        f"Read and written in each {seconds(width)}.{together}",
    )  # fmt: skip


def _values(table: pd.DataFrame, what: str) -> Any:
    moved = table["read_bytes"] + table["write_bytes"] if what == "bytes" else table[what]
    return moved.to_numpy(dtype=np.float64)


def _banded(ranks: list[int], values: Any) -> tuple[list[str], Any]:
    """Return at most `LINES` lines: neighbouring ranks together, as their mean."""
    if len(ranks) <= LINES:
        return [str(rank) for rank in ranks], values
    edges = np.linspace(0, len(ranks), LINES + 1).round().astype(int)
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    return (
        [f"{ranks[low]}–{ranks[high - 1]}" if high - low > 1 else str(ranks[low]) for low, high in spans],
        np.stack([values[low:high].mean(axis=0) for low, high in spans]),
    )


def _by_file(frame: IOFrame, api: str | None) -> Drawing | None:
    table = frame.heatmap(by="file", bins=BINS, api=api, top=FILES)
    files = [str(file) for file in table.index.unique("file")]
    if not files:
        return None
    width = float(table.attrs["width"])
    values = _values(table, "io_time").reshape(len(files), -1) / width
    if not values.max(initial=0.0):
        return None
    left = int(table.attrs["left_out"])
    more = f" The {len(files)} with most time; {count(left, 'file')} more." if left else ""
    folder = common_folder(files)
    names = [file.removeprefix(folder) for file in files]
    where = f" In {name(folder)}." if folder else ""
    return Drawing(
        "Time in I/O calls, by file",
        heat(names, values, width * BINS, "time in I/O calls by file", "#009e73", _ranks),
        f"Ranks that are in a call on the file, on average over each {seconds(width)}.{more}{where}",
        wide=True,
    )


def _ranks(value: float) -> str:
    return f"{value:.2g} ranks" if value != 1 else "1 rank"
