"""Sizes of transfers, and what metadata costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from tiercel.deferred import pd
from tiercel.traces.analysis.common import IS_DATA, IS_IO, layer_of, seconds_of, with_units
from tiercel.traces.analysis.counters import only_data

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

#: Events whose durations a median may hold (8 B each).
_EXACT = 1 << 22


def transfer_sizes(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return how many reads and writes moved how much (index: kind, size).

    Sizes are in bins of powers of two: `size` is the lower end, so 4096 holds 4096 to 8191 bytes; 0 holds
    calls that moved nothing. `median_duration` and `bandwidth` are those of the calls of a bin; of traces of
    more than `_EXACT` events the median is an estimate (t-digest), which needs no memory for each call.
    """
    rows = transfer_rows(frame.select(rank, filter), layer_of(frame, api))
    columns = ["kind", "size", "calls", "bytes", "time", "median_duration", "bandwidth"]
    table = pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[4:], "float64"))
    units = {"bytes": "B", "time": "s", "median_duration": "s", "bandwidth": "B/s"}
    return with_units(table.set_index(["kind", "size"]), units)


def transfer_rows(frame: IOFrame, layer: str) -> list[dict[str, Any]]:
    """Return the rows of `transfer_sizes`; None where no call of a bin has a duration."""
    events = sum(pq.read_metadata(path).num_rows for path in frame.paths)
    middle = "median(duration)" if events <= _EXACT else "approx_quantile(duration, 0.5)"
    names = ("kind", "size", "calls", "bytes", "time", "median_duration")
    rows = frame.rows(
        "SELECT kind, CASE WHEN size > 0 THEN (2 ** floor(log2(size)))::BIGINT ELSE 0 END AS low, "
        "count(*) AS calls, sum(size)::BIGINT AS bytes, sum(duration) AS time, "
        f"{middle} AS median_duration FROM events "
        f"WHERE {IS_DATA} AND api = '{layer}' AND size IS NOT NULL GROUP BY ALL ORDER BY ALL"
    )
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [row | {"bandwidth": row["bytes"] / row["time"] if row["time"] else None} for row in found]


def metadata_share(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return the time that each rank spent in data, metadata and synchronising calls; last row: ``all``.

    Times are sums of durations. `share` is that of metadata and synchronising calls together, as paper 003
    counts them (open, close, sync...).
    """
    layer = layer_of(frame, api)
    table = frame.select(rank, filter).query(
        "SELECT rank, "
        f"{seconds_of(IS_DATA)} AS data_time, "
        + seconds_of("kind = 'metadata'")
        + " AS metadata_time, "
        + seconds_of("kind = 'sync'")
        + " AS sync_time, "
        "count(*) FILTER (kind IN ('read', 'write')) AS data_calls, "
        "count(*) FILTER (kind = 'metadata') AS metadata_calls, "
        "count(*) FILTER (kind = 'sync') AS sync_calls "
        f"FROM events WHERE {IS_IO} AND api = '{layer}' GROUP BY rank ORDER BY rank"
    )
    if only_data(frame):
        table[["metadata_time", "sync_time", "metadata_calls", "sync_calls"]] = np.nan
    table["rank"] = table["rank"].astype(object)
    total = table.drop(columns="rank").sum(skipna=False)
    table = pd.concat([table.set_index("rank"), total.to_frame("all").T]).rename_axis("rank")
    counts = [c for c in table.columns if c.endswith("calls")]
    table[counts] = table[counts].astype("int64")
    times = table[["data_time", "metadata_time", "sync_time"]].astype("float64")
    table[times.columns] = times
    whole = times.sum(axis=1, skipna=only_data(frame))
    table["share"] = (times["metadata_time"] + times["sync_time"]) / whole.where(whole > 0, np.nan)
    units = {"data_time": "s", "metadata_time": "s", "sync_time": "s", "share": "1"}
    return with_units(table, units)
