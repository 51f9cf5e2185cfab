"""The numbers of one job, from the table on which its findings rest (`analysis.tally`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tiercel.traces.analysis.common import LAYERS, total
from tiercel.traces.analysis.counters import has_counters, transfer_sizes_counted
from tiercel.traces.analysis.tally import lowest, places, tally, topmost
from tiercel.traces.frame import IOFrame

#: Columns of seconds.
_TIMES = ("read_time", "write_time", "metadata_time", "sync_time")


def numbers_of(frame: IOFrame) -> dict[str, Any]:
    """Return the columns `schema.NUMBERS` that are sums and shares of calls, ``source`` and ``mounts``;
    nothing where the trace holds neither counters nor events."""
    table = tally(frame)
    if table.empty:
        return {}
    rows = lowest(table)
    # In plain arrays: pandas takes a millisecond for what takes numpy a microsecond, and logs are thousands.
    low = {str(name): column.to_numpy() for name, column in rows.items()}
    codes, files = pd.factorize(low["file"])
    # Ranks wait in collective calls while aggregators move their data: time is what the topmost layer took.
    top = topmost(table, rows)
    # Of syncs Darshan tells no time: it is in that of writes.
    seconds = {
        name: float(np.nansum(column) if name == "sync_time" and has_counters(frame) else np.sum(column))
        for name in _TIMES for column in [top[name].to_numpy(dtype=np.float64)]
    }  # fmt: skip
    found: dict[str, Any] = {
        "source": "counters" if has_counters(frame) else "events",
        "apis": [api for api in LAYERS if api in set(table["api"])],
        **{name: _whole(low[name]) for name in ("bytes_read", "bytes_written", "reads", "writes")},
        "files": len(files), "shared_files": int(_shared(codes, low["rank"], len(files)).sum()),
        # Darshan counts the time of syncs with that of writes. So does this, or a job's kind would depend
        # on the tracer.
        "read_s": seconds["read_time"], "write_s": seconds["write_time"] + seconds["sync_time"],
        "metadata_s": seconds["metadata_time"], "io_s": sum(seconds.values()),
        **_medians(frame, rows), "small_share": _small_share(low),
        "random_share": _random_share(frame, rows),
        "mounts": mounts_of(low, codes, files, frame.metadata.get("mounts") or (), _by_file(top, files)),
    }  # fmt: skip
    for kind, moved in (("read", "bytes_read"), ("write", "bytes_written")):
        calls, took = found[f"{kind}s"], found[f"{kind}_s"]
        found[f"{kind}_size"] = found[moved] / calls if calls and found[moved] is not None else None
        found[f"{kind}_bandwidth"] = found[moved] / took if took > 0 and found[moved] else None
    found["metadata_share"] = found["metadata_s"] / found["io_s"] if found["io_s"] > 0 else None
    # A time that is missing (NaN) is null; the kind is decided by what is null.
    return {
        name: None if isinstance(value, float) and np.isnan(value) else value for name, value in found.items()
    }


def _whole(values: Any) -> int | None:
    """Return the sum; None where one of the numbers is missing."""
    sum_ = float(np.sum(values.astype(np.float64)))
    return None if np.isnan(sum_) else int(np.sum(values))


def _by_file(top: pd.DataFrame, files: Iterable[Any]) -> Any:
    """Return the seconds in calls of each of `files`."""
    spent = np.nansum(top[list(_TIMES)].to_numpy(), axis=1)
    number = {file: place for place, file in enumerate(files)}
    sums = np.zeros(len(number) + 1)
    np.add.at(sums, [number.get(file, len(number)) for file in top["file"]], spent)
    return sums[:-1]


def _shared(codes: Any, ranks: Any, files: int) -> Any:
    """Return which files several ranks used: as one record of all of them, or in records of their own."""
    low, high = np.full(files, np.inf), np.full(files, -np.inf)
    known = codes >= 0  # a call may have no file
    np.minimum.at(low, codes[known], ranks[known])
    np.maximum.at(high, codes[known], ranks[known])
    return (low < 0) | (low < high)


def _medians(frame: IOFrame, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the median sizes of reads and writes; from counters the least of their classes."""
    kinds = ("read", "write")
    if has_counters(frame):
        sizes = transfer_sizes_counted(frame)
        return {f"{kind}_p50": _median_class([s for s in sizes if s["kind"] == kind]) for kind in kinds}
    layers = ", ".join(f"'{api}'" for api in rows["api"].unique())
    wanted = ", ".join(f"quantile_disc(size, 0.5) FILTER (kind = '{kind}') AS {kind}" for kind in kinds)
    sums = frame.query(f"SELECT {wanted} FROM events WHERE size > 0 AND api IN ({layers})").iloc[0]
    return {f"{kind}_p50": None if pd.isna(sums[kind]) else int(sums[kind]) for kind in kinds}


def _median_class(classes: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the least size of the class that holds the median of a histogram."""
    half = sum(each["calls"] for each in classes) / 2
    for each in sorted(classes, key=lambda one: one["size"]):
        half -= each["calls"]
        if half <= 0:
            return int(each["size"])
    return None


def _small_share(low: Mapping[str, Any]) -> float | None:
    known = ~np.isnan(low["small_reads"].astype(float)) & ~np.isnan(low["small_writes"].astype(float))
    calls = float((low["reads"] + low["writes"])[known].sum())
    if not known.all() and np.isnan(low["bytes_read"] + low["bytes_written"])[~known].any():
        return None
    return float((low["small_reads"] + low["small_writes"])[known].sum()) / calls if calls else None


def _random_share(frame: IOFrame, rows: pd.DataFrame) -> float | None:
    layer = next((api for api in LAYERS if api in set(rows["api"])), LAYERS[0])
    if total(rows["bytes_read"] + rows["bytes_written"]) is None:
        return None  # without sizes no position can be followed
    sums = places(frame, rows, layer).sum()
    placed = float(sums.get("placed_reads", 0) + sums.get("placed_writes", 0))
    return float(sums["random_reads"] + sums["random_writes"]) / placed if placed else None


def mounts_of(
    low: Mapping[str, Any], codes: Any, files: Iterable[Any], mounts: Sequence[tuple[str, str]], spent: Any
) -> list[dict[str, Any]] | None:
    """Return what was done on each file system, most time first; None where the log has no mounts.

    `low` holds columns of counters; its row i is of file ``files[codes[i]]``. `spent`: the files' seconds.
    """
    if not mounts:
        return None
    types = dict(mounts)
    points = sorted(types, key=len, reverse=True)
    numbers = {point: number for number, point in enumerate(points)}
    place = np.array([numbers.get(_mount(str(file), points), -1) for file in files], dtype=np.int64)
    found = []
    for number in np.unique(place[place >= 0]).tolist():
        rows = (codes >= 0) & (place[codes] == number)
        found.append({
            "mount": points[number], "type": types[points[number]], "files": int((place == number).sum()),
            **{name: _whole(low[name][rows]) for name in ("bytes_read", "bytes_written")},
            "io_s": float(spent[place == number].sum()),
        })  # fmt: skip
    return sorted(found, key=lambda each: -each["io_s"])


def _mount(file: str, points: Sequence[str]) -> str:
    """Return the mount point that a file lies on; empty for what has no path."""
    return next((p for p in points if file == p or file.startswith(p.rstrip("/") + "/")), "")
