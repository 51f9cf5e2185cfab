"""Heat maps: bytes and time in I/O calls of each rank (host, file) in equal parts of the job.

From events; without any, from the HEATMAP module of a Darshan log (3.4 or later), which counts the bytes of
each rank in bins of a fixed width and knows neither files nor times in calls.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tiercel.deferred import pd
from tiercel.errors import UserError, suggest
from tiercel.traces import engine
from tiercel.traces.analysis.common import IS_IO, bin_width, layer_of, with_units
from tiercel.traces.analysis.counters import refuse_counters
from tiercel.traces.analysis.ramps import Ramps

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

#: Name of Darshan's module, and of the table of it (darshan_log.py).
HEATMAP = "HEATMAP"
#: What can be told apart.
_PARTS = ("rank", "host", "file")
#: Our words for the layers, and HEATMAP's records of each.
_RECORDS = {"posix": "heatmap:POSIX", "stdio": "heatmap:STDIO", "mpiio": "heatmap:MPIIO"}
_COLUMNS = ("read_bytes", "write_bytes", "io_time")


def only_heat(frame: IOFrame) -> bool:
    """Say whether what happened when is known from HEATMAP alone."""
    return not len(frame) and frame.counters(HEATMAP) is not None


def heatmap(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, by: str = "rank", bins: int = 100,
    api: str | None = None, top: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Return bytes (B) and time in I/O calls (s) of each part in `bins` equal parts of the job.

    Index: `by` (``rank``, ``host`` or ``file``), time (the bin's start, s). Columns `read_bytes`,
    `write_bytes`, `io_time` (sum of durations: threads count each); a call's are spread evenly over its
    duration. `top`: only so many parts, those with most time in calls, in that order (default: of files 50,
    of ranks and hosts all, in their own order). ``attrs``: ``width`` of a bin (s), ``left_out`` (parts not
    shown), ``from`` (``events`` or ``counters``).

    From HEATMAP `io_time` is missing, parts are ranks, and bins are never finer than Darshan's. UserError
    where the trace cannot tell.
    """
    if bins < 1:
        raise UserError(f"bins: must be 1 or more, not {bins}")
    if by not in _PARTS:
        raise UserError(f"no parts named {by!r}: {suggest(by, _PARTS)}")
    if top is not None and top < 1:
        raise UserError(f"top: must be 1 or more, not {top}")
    if only_heat(frame):
        if filter is not None or by != "rank":
            raise UserError(
                "this log's HEATMAP tells ranks apart, and nothing else: no filter, hosts or files"
            )
        return _counted(frame, rank, bins, api, top)
    refuse_counters(frame, "a heat map")
    return _of_events(frame.select(rank, filter), by, bins, api, top or (50 if by == "file" else None))


def _of_events(frame: IOFrame, by: str, bins: int, api: str | None, top: int | None) -> pd.DataFrame:
    is_io = f"{IS_IO} AND api = '{layer_of(frame, api)}' AND {by} IS NOT NULL"
    parts = frame.query(
        f"SELECT {by} AS part, coalesce(sum(duration), 0.0) AS spent FROM events WHERE {is_io} GROUP BY {by} "
        f"ORDER BY {'spent DESC, ' if top else ''}part"
    )
    names = parts["part"].tolist()[:top]
    width = bin_width(frame, bins)
    ramps = {column: Ramps(max(len(names), 1), bins, width) for column in _COLUMNS}
    if names:
        listed = ", ".join(f"({_literal(name)}, {number})" for number, name in enumerate(names))
        query = (
            "SELECT code, time, coalesce(duration, 0.0) AS duration, CASE kind WHEN 'read' THEN 0 "
            "WHEN 'write' THEN 1 ELSE 2 END AS kind, "
            "CASE WHEN failed THEN coalesce(size, 0) ELSE size END::DOUBLE AS size FROM events "
            f"JOIN (VALUES {listed}) AS chosen(part, code) ON {by} = part WHERE {is_io}"
        )
        for batch in frame.batches(query):
            code, time, duration, kind, size = (
                batch.column(n).to_numpy(zero_copy_only=False)
                for n in ("code", "time", "duration", "kind", "size")
            )
            for number, column in enumerate(_COLUMNS[:2]):
                mine = kind == number
                ramps[column].add(code[mine], time[mine], duration[mine], size[mine])
            ramps["io_time"].add(code, time, duration, duration)
    amounts = {column: ramp.amounts() for column, ramp in ramps.items()}
    return _table(names, by, amounts, width, "events", len(parts) - len(names))


def _literal(name: Any) -> str:
    return engine.quoted(name) if isinstance(name, str) else str(int(name))


def _counted(frame: IOFrame, rank: Ranks, bins: int, api: str | None, top: int | None) -> pd.DataFrame:
    raw = frame.counters(HEATMAP)
    assert raw is not None
    raw = raw[raw["file"].isin(_records(raw, api))]
    if rank is not None:
        raw = raw[raw["rank"].isin([rank] if isinstance(rank, int | np.integer) else list(rank))]
    # Whole bins of Darshan's, up to the end of the job: it drops those after the last byte.
    finest = float(raw["width"].min()) if len(raw) else frame.job_time or 1.0
    length = max(float((raw["start"] + raw["width"]).max()) if len(raw) else 0.0, frame.job_time)
    count = max(math.ceil(length / finest - 1e-6), 1)
    bins = min(bins, count)
    width = count * finest / bins
    names = sorted({int(r) for r in raw["rank"]} | set(_idle(frame, rank)))
    moved = raw.assign(bytes=raw["read"] + raw["written"]).groupby("rank")["bytes"].sum()
    moved = moved.reindex(names, fill_value=0)
    if top is not None:
        names = [int(r) for r in moved.sort_values(ascending=False, kind="stable").index[:top]]
    chosen = raw[raw["rank"].isin(names)]
    place = {name: number for number, name in enumerate(names)}
    code = chosen["rank"].map(place).to_numpy(dtype=np.int64)
    start, wide = (chosen[c].to_numpy(dtype=np.float64) for c in ("start", "width"))
    amounts = {}
    for column, counter in (("read_bytes", "read"), ("write_bytes", "written")):
        ramps = Ramps(max(len(names), 1), bins, width)
        ramps.add(code, start, wide, chosen[counter].to_numpy(dtype=np.float64, na_value=np.nan))
        amounts[column] = ramps.amounts()
    amounts["io_time"] = np.full((max(len(names), 1), bins), np.nan)
    return _table(names, "rank", amounts, width, "counters", len(moved) - len(names))


def _idle(frame: IOFrame, rank: Ranks) -> range:
    """Return all ranks of the job, where one without a record did nothing: none where some were chosen, or
    records were lost."""
    known = rank is None and HEATMAP not in (frame.metadata.get("partial") or ())
    return range(int(frame.metadata.get("ranks") or 0) if known else 0)


def _records(raw: pd.DataFrame, api: str | None) -> list[str]:
    """Return the records that count: of the lowest layers that moved bytes (POSIX and STDIO), or of `api`."""
    if api is not None:
        if api not in _RECORDS:
            raise UserError(f"HEATMAP knows no layer {api!r}: {suggest(api, _RECORDS)}")
        return [_RECORDS[api]]
    moved = raw[raw["read"] + raw["written"] > 0]["file"].unique()
    low = [_RECORDS["posix"], _RECORDS["stdio"]]
    return low if set(low) & set(moved) or _RECORDS["mpiio"] not in moved else [_RECORDS["mpiio"]]


def _table(
    names: list[Any], by: str, amounts: dict[str, Any], width: float, source: str, left_out: int
) -> pd.DataFrame:
    bins = next(iter(amounts.values())).shape[1]
    index = pd.MultiIndex.from_product([names, np.arange(bins) * width], names=[by, "time"])
    table = pd.DataFrame({c: a[: len(names)].reshape(-1) for c, a in amounts.items()}, index=index)
    table.attrs.update({"width": width, "from": source, "left_out": left_out})
    return with_units(table, {"read_bytes": "B", "write_bytes": "B", "io_time": "s"})
