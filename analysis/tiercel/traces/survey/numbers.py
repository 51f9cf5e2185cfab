"""The numbers of one job: from counters where the trace has them, as they count all, else from events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tiercel.traces.analysis.common import IS_IO, LAYERS, SUMS, layer_of, layers
from tiercel.traces.analysis.counters import counted, lowest, transfer_sizes_counted
from tiercel.traces.analysis.patterns import PATTERNS, access_pattern
from tiercel.traces.findings.calls import SMALL
from tiercel.traces.frame import IOFrame

#: What Darshan calls the streams that every program has; their bytes count, and they are no files.
_STREAMS = ["<STDIN>", "<STDOUT>", "<STDERR>"]
#: Our columns of seconds, and those of `counted`.
_TIMES = {"read_s": "read_time", "write_s": "write_time", "metadata_s": "metadata_time"}


def numbers_of(frame: IOFrame) -> dict[str, Any]:
    """Return the columns `schema.NUMBERS` that are sums and shares of calls, ``source`` and ``mounts``."""
    table = counted(frame)
    if len(table):
        found = {"source": "counters", **_of_counters(frame, table)}
    elif len(frame):
        found = {"source": "events", **_of_events(frame)}
    else:
        return {}
    for kind, moved in (("read", "bytes_read"), ("write", "bytes_written")):
        calls, seconds = found[f"{kind}s"], found[f"{kind}_s"]
        found[f"{kind}_size"] = found[moved] / calls if calls else None
        found[f"{kind}_bandwidth"] = found[moved] / seconds if seconds > 0 and found[moved] else None
    found["io_s"] = found["read_s"] + found["write_s"] + found["metadata_s"]
    found["metadata_share"] = found["metadata_s"] / found["io_s"] if found["io_s"] > 0 else None
    return found


def _of_counters(frame: IOFrame, table: pd.DataFrame) -> dict[str, Any]:
    # In plain arrays: pandas takes a millisecond for what takes numpy a microsecond, and logs are thousands.
    low = {str(name): column.to_numpy() for name, column in lowest(table).items()}
    said = frame.metadata.get("ranks")
    names = pd.factorize(low["file"])
    plain = ~np.isin(names[1], _STREAMS)
    sizes = transfer_sizes_counted(frame)
    return {
        "apis": list(dict.fromkeys(table["api"])),
        **{name: int(low[name].sum()) for name in ("bytes_read", "bytes_written", "reads", "writes")},
        "files": int(plain.sum()), "shared_files": int((_shared(names[0], low["rank"]) & plain).sum()),
        **{short: float(low[name].sum()) for short, name in _TIMES.items()},
        **{f"{kind}_p50": _median_class([each for each in sizes if each["kind"] == kind])
           for kind in ("read", "write")},
        "small_share": _small_share(low), "random_share": _random_share(low, int(said) if said else 1),
        "mounts": mounts_of(low, *names, frame.metadata.get("mounts") or ()),
    }  # fmt: skip


def _shared(codes: Any, ranks: Any) -> Any:
    """Return which files several ranks used: as one record of all of them, or in records of their own."""
    low, high = np.full(codes.max(initial=-1) + 1, np.inf), np.full(codes.max(initial=-1) + 1, -np.inf)
    np.minimum.at(low, codes, ranks)
    np.maximum.at(high, codes, ranks)
    return (low < 0) | (low < high)


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
    return float((low["small_reads"] + low["small_writes"])[known].sum()) / calls if calls else None


def _random_share(low: Mapping[str, Any], ranks: int) -> float | None:
    jumps = calls = 0.0
    # A rank's first access of a file follows nothing; of a shared file all ranks have one.
    firsts = np.where(low["rank"] >= 0, 1, ranks)
    for kind in ("reads", "writes"):
        sequential = low[f"sequential_{kind}"].astype(float)
        known = ~np.isnan(sequential) & (low[kind] > 0)
        jumps += float((low[kind] - sequential - firsts)[known].clip(min=0).sum())
        calls += float(low[kind][known].sum())
    return jumps / calls if calls else None


def mounts_of(
    low: Mapping[str, Any], codes: Any, files: Iterable[Any], mounts: Sequence[tuple[str, str]]
) -> list[dict[str, Any]] | None:
    """Return what was done on each file system, most time first; None where the log has no mounts.

    `low` holds columns of counters; its row i is of file ``files[codes[i]]``.
    """
    if not mounts:
        return None
    types = dict(mounts)
    points = sorted(types, key=len, reverse=True)
    numbers = {point: number for number, point in enumerate(points)}
    place = np.array([numbers.get(_mount(str(file), points), -1) for file in files], dtype=np.int64)
    seconds = sum(low[name] for name in _TIMES.values())
    found = []
    for number in np.unique(place[place >= 0]).tolist():
        rows = place[codes] == number
        found.append({
            "mount": points[number], "type": types[points[number]], "files": int((place == number).sum()),
            "bytes_read": int(low["bytes_read"][rows].sum()),
            "bytes_written": int(low["bytes_written"][rows].sum()), "io_s": float(seconds[rows].sum()),
        })  # fmt: skip
    return sorted(found, key=lambda each: -each["io_s"])


def _mount(file: str, points: Sequence[str]) -> str:
    """Return the mount point that a file lies on; empty for what has no path (<STDOUT>)."""
    return next((p for p in points if file == p or file.startswith(p.rstrip("/") + "/")), "")


def _of_events(frame: IOFrame) -> dict[str, Any]:
    there = layers(frame)
    layer = layer_of(frame, None)
    calls = f"{IS_IO} AND api = '{layer}'"
    data = "kind IN ('read', 'write') AND size IS NOT NULL"
    sums = frame.query(
        f"SELECT {SUMS}, count(DISTINCT file) AS files, "
        "quantile_disc(size, 0.5) FILTER (kind = 'read' AND size > 0) AS read_p50, "
        "quantile_disc(size, 0.5) FILTER (kind = 'write' AND size > 0) AS write_p50, "
        f"count(*) FILTER ({data}) AS sized, count(*) FILTER ({data} AND size < {SMALL}) AS small "
        f"FROM events WHERE {calls}"
    ).to_json(orient="records")
    row: dict[str, Any] = json.loads(sums)[0]
    shared = frame.query(
        f"SELECT count(*) AS n FROM (SELECT file FROM events WHERE {calls} AND file IS NOT NULL "
        "GROUP BY file HAVING count(DISTINCT rank) > 1)"
    )
    patterns = access_pattern(frame, api=layer)[list(PATTERNS)].sum()
    return {
        "apis": [api for api in LAYERS if api in there.index],
        **{name: row[name] for name in ("bytes_read", "bytes_written", "reads", "writes", "files")},
        "shared_files": int(shared["n"].iloc[0]),
        "read_s": row["read_s"], "write_s": row["write_s"], "metadata_s": row["metadata_s"] + row["sync_s"],
        "read_p50": row["read_p50"], "write_p50": row["write_p50"],
        "small_share": row["small"] / row["sized"] if row["sized"] else None,
        "random_share": float(patterns["random"] / patterns.sum()) if patterns.sum() else None,
        "mounts": None,
    }  # fmt: skip
