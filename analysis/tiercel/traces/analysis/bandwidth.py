"""Bandwidth and time of I/O by file and rank (paper 003, section IV.B), and bandwidth over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tiercel.deferred import pd
from tiercel.errors import UserError, suggest
from tiercel.traces.analysis.common import (
    IS_DATA,
    IS_IO,
    bin_width,
    bytes_of,
    layer_of,
    seconds_of,
    with_units,
)
from tiercel.traces.analysis.counters import refuse_counters
from tiercel.traces.analysis.heat import heatmap, only_heat
from tiercel.traces.analysis.ramps import Ramps
from tiercel.traces.cluster import spread

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

_SCALES = {"B/s": 1.0, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30, "TiB/s": 2.0**40}


def io_bandwidth(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, unit: str = "B/s", api: str | None = None
) -> pd.DataFrame:
    """Return bytes, time and bandwidth of each file on each rank (index: rank, file).

    Bandwidth is the bytes of its reads and writes over the sum of their durations. `unit` is B/s, KiB/s ..
    TiB/s, or ``auto`` for the one that is easiest to read.
    """
    layer = layer_of(frame, api)
    query = (
        f"SELECT rank, file, {bytes_of('TRUE')} AS bytes, {seconds_of('TRUE')} AS io_time FROM events "
        f"WHERE {IS_DATA} AND api = '{layer}' AND (size IS NOT NULL OR failed IS NOT TRUE) "
        "GROUP BY rank, file ORDER BY rank, file"
    )
    table = _queried(frame.select(rank), "rank", ["rank", "file"], query, filter)
    table["io_bandwidth"] = table["bytes"] / table["io_time"].where(table["io_time"] > 0)
    scale = _readable(table["io_bandwidth"]) if unit == "auto" else unit
    if scale not in _SCALES:
        raise UserError(f"no unit of bandwidth named {scale!r}: {suggest(scale, [*_SCALES, 'auto'])}")
    table["io_bandwidth"] /= _SCALES[scale]
    return with_units(
        table.set_index(["rank", "file"]), {"bytes": "B", "io_time": "s", "io_bandwidth": scale}
    )


def _readable(values: pd.Series[float]) -> str:
    typical = float(values.median()) if values.notna().any() else 0.0
    return [unit for unit, factor in _SCALES.items() if factor <= max(typical, 1.0)][-1]


def io_time(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return the time in I/O calls on each file by each rank (index: file, rank).

    `rank_time` is the time in all I/O calls of that rank, whatever `filter` chooses; `share` the part of it.
    Times are sums of durations: threads that do I/O at the same time count each.
    """
    layer = layer_of(frame, api)
    chosen = frame.select(rank)
    query = (
        f"SELECT file, rank, {seconds_of('TRUE')} AS io_time, count(*) AS calls FROM events "
        f"WHERE {IS_IO} AND api = '{layer}' GROUP BY file, rank ORDER BY file, rank"
    )
    table = _queried(chosen, "rank", ["file", "rank"], query, filter)
    whole = chosen.query(
        f"SELECT rank, {seconds_of('TRUE')} AS rank_time FROM events "
        f"WHERE {IS_IO} AND api = '{layer}' GROUP BY rank"
    )
    table = table.merge(whole, on="rank", how="left")
    table["share"] = table["io_time"] / table["rank_time"].where(table["rank_time"] > 0)
    return with_units(table.set_index(["file", "rank"]), {"io_time": "s", "rank_time": "s", "share": "1"})


def shared_files(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, dropna: bool = False
) -> pd.DataFrame:
    """Return which ranks use each file, and how many (index: file); `dropna` leaves out calls on no file."""
    query = (
        "SELECT file, list(DISTINCT rank ORDER BY rank) AS ranks, count(DISTINCT rank) AS num_ranks "
        f"FROM events WHERE {IS_IO} {'AND file IS NOT NULL' if dropna else ''} GROUP BY file ORDER BY file"
    )
    table = _queried(frame.select(rank), "file", ["file"], query, filter)
    table["ranks"] = [[int(r) for r in ranks] for ranks in table["ranks"]]
    return with_units(table.set_index("file"), {})


def _queried(
    frame: IOFrame, by: Literal["rank", "file"], order: list[str], query: str, filter: Filter
) -> pd.DataFrame:
    """Run a query whose groups are within a rank (or file), on the cluster where the frame has one."""
    parts = [part for part in spread(frame, by, _query, query, filter) if len(part)]
    if len(parts) <= 1:
        return parts[0] if parts else _query(frame, query, filter)
    return pd.concat(parts).sort_values(order, ignore_index=True)


def _query(frame: IOFrame, query: str, filter: Filter) -> pd.DataFrame:
    return frame.select(filter=filter).query(query)


def bandwidth_over_time(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, bins: int = 100, api: str | None = None,
    by: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Return bytes and bandwidth of reads and writes in `bins` equal parts of the job (index: time).

    `by`: of each ``rank``, ``host`` or ``file`` for itself (index: that, time). The bytes of a call are
    spread evenly over its duration, so a bin's bandwidth is never that of a call which merely ended there.
    Without events a Darshan log's HEATMAP answers (see `heatmap`): its bins are the finest. UserError where
    there is none.
    """
    if bins < 1:
        raise UserError(f"bins: must be 1 or more, not {bins}")
    if by is not None and by not in _PARTS:
        raise UserError(f"no parts named {by!r}: {suggest(by, _PARTS)}")
    if only_heat(frame):
        return _of_heat(frame, rank, filter, bins, api, by)
    refuse_counters(frame, "bandwidth over time")
    layer = layer_of(frame, api)
    width = bin_width(frame, bins)
    moved: dict[Any, dict[str, Ramps]] = {}
    query = (
        "SELECT time, coalesce(duration, 0.0) AS duration, size, kind = 'write' AS writes, "
        f"{by or 'NULL'} AS part FROM events WHERE {IS_DATA} AND api = '{layer}' "
        "AND (size > 0 OR (size IS NULL AND failed IS NOT TRUE))"
    )
    for batch in frame.select(rank, filter).batches(query):
        rows = batch.to_pandas()
        for part, own in rows.groupby("part", observed=True, sort=False) if by else [("", rows)]:
            ramps = moved.setdefault(part, {kind: Ramps(1, bins, width) for kind in ("read", "write")})
            for kind, wanted in (("read", ~own["writes"]), ("write", own["writes"])):
                of_kind = own[wanted.astype(bool)]
                ramps[kind].add(
                    np.zeros(len(of_kind)),
                    *(of_kind[c].to_numpy(np.float64) for c in ("time", "duration", "size")),
                )
    if by is None:
        return _over_time(
            moved.get("", {kind: Ramps(1, bins, width) for kind in ("read", "write")}), width, bins
        )
    tables = {part: _over_time(moved[part], width, bins) for part in sorted(moved)}
    if not tables:
        empty = _over_time({kind: Ramps(1, bins, width) for kind in ("read", "write")}, width, bins)
        tables = {"": empty}
        return with_units(pd.concat(tables, names=[by]).iloc[:0], empty.attrs["units"])
    return with_units(pd.concat(tables, names=[by]), next(iter(tables.values())).attrs["units"])


#: What :func:`bandwidth_over_time` can tell apart.
_PARTS = ("rank", "host", "file")


def _of_heat(
    frame: IOFrame, rank: Ranks, filter: Filter, bins: int, api: str | None, by: str | None
) -> pd.DataFrame:
    if by not in (None, "rank"):
        raise UserError(f"this log's HEATMAP tells ranks apart, not each {by}")
    heat = heatmap(frame, rank, filter, by="rank", bins=bins, api=api)
    width = heat.attrs["width"]
    table = heat[["read_bytes", "write_bytes"]]
    table = table if by else table.groupby(level="time").sum()
    for kind in ("read", "write"):
        table[f"{kind}_bandwidth"] = table[f"{kind}_bytes"] / width
    return with_units(table, {c: "B" if c.endswith("bytes") else "B/s" for c in table.columns})


def _over_time(ramps: dict[str, Ramps], width: float, bins: int) -> pd.DataFrame:
    table = pd.DataFrame({f"{kind}_bytes": ramp.amounts()[0] for kind, ramp in ramps.items()})
    table.index = pd.Index(np.arange(bins) * width, name="time")
    for kind in ramps:
        table[f"{kind}_bandwidth"] = table[f"{kind}_bytes"] / width
    return with_units(table, {c: "B" if c.endswith("bytes") else "B/s" for c in table.columns})
