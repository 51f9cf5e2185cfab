"""The numbers of one job: from counters where the trace has them, as they count all, else from events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tiercel.traces.analysis.common import IS_IO, LAYERS, SUMS, layer_of, layers
from tiercel.traces.analysis.counters import counted, lowest, transfer_sizes_counted
from tiercel.traces.analysis.patterns import PATTERNS, access_pattern
from tiercel.traces.findings.calls import SMALL
from tiercel.traces.frame import IOFrame

_TIMES = ["read_time", "write_time", "metadata_time"]


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
    low = lowest(table)
    ranks = frame.metadata.get("ranks")
    users = low.groupby("file")["rank"].agg(["nunique", "min"])
    sizes = transfer_sizes_counted(frame)
    sums = low[["bytes_read", "bytes_written", "reads", "writes", *_TIMES]].sum()
    return {
        "apis": list(dict.fromkeys(table["api"])),
        **{name: int(sums[name]) for name in ("bytes_read", "bytes_written", "reads", "writes")},
        "files": len(users),
        "shared_files": int(((users["nunique"] > 1) | (users["min"] < 0)).sum()),
        **{short: float(sums[name]) for short, name in zip(("read_s", "write_s", "metadata_s"), _TIMES,
                                                           strict=True)},
        **{f"{kind}_p50": _median_class([each for each in sizes if each["kind"] == kind])
           for kind in ("read", "write")},
        "small_share": _small_share(low), "random_share": _random_share(low, int(ranks) if ranks else 1),
        "mounts": mounts_of(low, frame.metadata.get("mounts") or ()),
    }  # fmt: skip


def _median_class(classes: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the least size of the class that holds the median of a histogram."""
    half = sum(each["calls"] for each in classes) / 2
    for each in sorted(classes, key=lambda one: one["size"]):
        half -= each["calls"]
        if half <= 0:
            return int(each["size"])
    return None


def _small_share(low: pd.DataFrame) -> float | None:
    known = low[low["small_reads"].notna() & low["small_writes"].notna()]
    calls = float((known["reads"] + known["writes"]).sum())
    return float((known["small_reads"] + known["small_writes"]).sum()) / calls if calls else None


def _random_share(low: pd.DataFrame, ranks: int) -> float | None:
    jumps = calls = 0.0
    # A rank's first access of a file follows nothing; of a shared file all ranks have one.
    firsts = low["rank"].ge(0).map({True: 1, False: ranks})
    for kind in ("reads", "writes"):
        known = low[f"sequential_{kind}"].notna() & (low[kind] > 0)
        placed = low[kind] - low[f"sequential_{kind}"] - firsts
        jumps += float(placed[known].clip(lower=0).sum())
        calls += float(low.loc[known, kind].sum())
    return jumps / calls if calls else None


def mounts_of(low: pd.DataFrame, mounts: Sequence[tuple[str, str]]) -> list[dict[str, Any]] | None:
    """Return what was done on each file system, most time first; None where the log has no mounts."""
    if not mounts:
        return None
    types = dict(mounts)
    points = sorted(types, key=len, reverse=True)
    place = {file: _mount(file, points) for file in low["file"].unique()}
    rows = low.assign(mount=low["file"].map(place), io_s=low[_TIMES].sum(axis=1))
    found = rows.dropna(subset="mount").groupby("mount").agg(
        files=("file", "nunique"), bytes_read=("bytes_read", "sum"), bytes_written=("bytes_written", "sum"),
        io_s=("io_s", "sum"),
    )  # fmt: skip
    return [
        {"mount": str(point), "type": types[str(point)], "files": int(row["files"]),
         "bytes_read": int(row["bytes_read"]), "bytes_written": int(row["bytes_written"]),
         "io_s": float(row["io_s"])}
        for point, row in found.sort_values("io_s", ascending=False, kind="stable").to_dict("index").items()
    ]  # fmt: skip


def _mount(file: str, points: Sequence[str]) -> str | None:
    """Return the mount point that a file lies on; None for what has no path (<STDOUT>)."""
    return next((p for p in points if file == p or file.startswith(p.rstrip("/") + "/")), None)


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
