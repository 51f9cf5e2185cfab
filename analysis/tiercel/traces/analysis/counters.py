"""What counters tell where there are no events: Darshan's, as a table in the field's words, and its sums.

A counter is a sum over a job, for each file and rank (or for all ranks of a shared file together). So bytes,
calls, sizes and times in calls are known; who did what when, and what overlapped what, is not, and is missing
in the answers, never zero. POSIX and STDIO are both the lowest layer: Darshan counts a stdio call in STDIO
alone. Source of the counters: Darshan's documentation of darshan-parser; prefixes are left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.traces.analysis.common import mostly, with_units
from tiercel.traces.pseudo import is_pseudo

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Module of Darshan, its prefix, and our word for the layer; the lowest first.
MODULES = (("POSIX", "POSIX_", "posix"), ("STDIO", "STDIO_", "stdio"), ("MPI-IO", "MPIIO_", "mpiio"))
#: Layers whose bytes may be added up: a call is in one of them only.
LOWEST = ("posix", "stdio")
#: Our columns, and the counters (without prefix) that are summed for each.
_SUMS: Mapping[str, tuple[str, ...]] = {
    "reads": ("READS", "INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
    "writes": ("WRITES", "INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
    "bytes_read": ("BYTES_READ",), "bytes_written": ("BYTES_WRITTEN",),
    "opens": ("OPENS", "INDEP_OPENS", "COLL_OPENS"), "stats": ("STATS",), "seeks": ("SEEKS",),
    "syncs": ("FSYNCS", "FDSYNCS", "SYNCS"), "flushes": ("FLUSHES",), "maps": ("MMAPS",),
    "read_time": ("F_READ_TIME",), "write_time": ("F_WRITE_TIME",), "metadata_time": ("F_META_TIME",),
    "consecutive_reads": ("CONSEC_READS",), "consecutive_writes": ("CONSEC_WRITES",),
    "sequential_reads": ("SEQ_READS",), "sequential_writes": ("SEQ_WRITES",),
    "not_aligned": ("FILE_NOT_ALIGNED",),
    "independent": ("INDEP_READS", "INDEP_WRITES", "NB_READS", "NB_WRITES"),
    "collective": ("COLL_READS", "COLL_WRITES", "SPLIT_READS", "SPLIT_WRITES"),
    "small_reads": tuple(f"SIZE_READ{agg}_{size}" for agg in ("", "_AGG") for size in
                         ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M")),
    "small_writes": tuple(f"SIZE_WRITE{agg}_{size}" for agg in ("", "_AGG") for size in
                          ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M")),
}  # fmt: skip
#: Our columns that are one counter; missing where the module does not have it.
_SINGLE = {
    "alignment": "FILE_ALIGNMENT", "last_byte_read": "MAX_BYTE_READ", "last_byte_written": "MAX_BYTE_WRITTEN",
    "slowest_time": "F_SLOWEST_RANK_TIME", "fastest_time": "F_FASTEST_RANK_TIME",
    "slowest_bytes": "SLOWEST_RANK_BYTES", "fastest_bytes": "FASTEST_RANK_BYTES",
    "slowest_rank": "SLOWEST_RANK", "fastest_rank": "FASTEST_RANK",
}  # fmt: skip
#: Of these, the ones that count calls.
_CALLS = ["reads", "writes", "opens", "stats", "seeks", "syncs"]
#: Sizes of Darshan's histogram: the smallest of each class, in bytes. A class holds its upper end: what moves
#: 1 MiB at a time counts in 100K_1M.
_SIZES = (("0_100", 0), ("100_1K", 101), ("1K_10K", 1025), ("10K_100K", 10_241), ("100K_1M", 102_401),
          ("1M_4M", (1 << 20) + 1), ("4M_10M", (4 << 20) + 1), ("10M_100M", (10 << 20) + 1),
          ("100M_1G", (100 << 20) + 1), ("1G_PLUS", (1 << 30) + 1))  # fmt: skip
_MIB = 1 << 20


def has_counters(frame: IOFrame) -> bool:
    """Say whether a frame has counters of files."""
    return any(frame.counters(module) is not None for module, _, _ in MODULES)


def only_counters(frame: IOFrame) -> bool:
    """Say whether answers have to come from counters, because there are no events."""
    return has_counters(frame) and not len(frame)


def counted(frame: IOFrame) -> pd.DataFrame:
    """Return one row for each layer, file and rank (-1: all ranks of a shared file together).

    Columns: api, file, rank, then `_SUMS` and `_SINGLE` (NaN: this layer does not count it). Pseudo-files are
    left out. Seconds and bytes; times are sums over the ranks of a row.
    """
    parts = []
    for module, prefix, api in MODULES:
        raw = frame.counters(module)
        if raw is None:
            continue
        raw = raw[[file is not None and not is_pseudo(file) for file in raw["file"]]]
        part = raw[["file", "rank"]].copy()
        part.insert(0, "api", api)
        for column, names in _SUMS.items():
            there = [prefix + name for name in names if prefix + name in raw]
            part[column] = raw[there].clip(lower=0).sum(axis=1) if there else np.nan
        for column, name in _SINGLE.items():
            part[column] = raw.get(prefix + name, np.nan)
        _not_small(part, raw, prefix)
        parts.append(part)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _not_small(part: pd.DataFrame, raw: pd.DataFrame, prefix: str) -> None:
    """Take transfers of exactly 1 MiB out of the small ones, as far as the commonest sizes tell them."""
    whole = pd.Series(0.0, raw.index)
    for number in range(1, 5):
        size, count = (raw.get(f"{prefix}ACCESS{number}_{what}") for what in ("ACCESS", "COUNT"))
        if size is not None and count is not None:
            whole += count.where(size == _MIB, 0)
    agg = "_AGG" if prefix == "MPIIO_" else ""
    of_kind = {kind: f"{prefix}SIZE_{kind.upper()}{agg}_100K_1M" for kind in ("read", "write")}
    if not set(of_kind.values()) <= set(raw.columns):
        return
    both = raw[list(of_kind.values())].sum(axis=1)
    for kind, name in of_kind.items():
        exact = (whole * raw[name] / both.where(both > 0)).fillna(0.0).clip(upper=raw[name])
        part[f"small_{kind}s"] = (part[f"small_{kind}s"] - exact).round()


def lowest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the lowest layers that moved bytes: POSIX and STDIO, else MPI-IO."""
    low = table[table["api"].isin(LOWEST)]
    moved = low["bytes_read"].sum() + low["bytes_written"].sum()
    return low if moved > 0 or not (table["api"] == "mpiio").any() else table[table["api"] == "mpiio"]


def summarise_counters(frame: IOFrame) -> dict[str, Any]:
    """Return what `summary.summarise` does, from counters; what these cannot say is None."""
    table = counted(frame)
    low = lowest(table)
    run = frame.metadata.get("run_time")
    ranks = frame.metadata.get("ranks")
    layers = []
    for api, rows in table.groupby("api", sort=False):
        layers.append({
            "api": str(api), "calls": int(rows[_CALLS].sum().sum()),
            "bytes_read": int(rows["bytes_read"].sum()), "bytes_written": int(rows["bytes_written"].sum()),
            "data_s": float(rows["read_time"].sum() + rows["write_time"].sum()),
            "metadata_s": float(rows["metadata_time"].sum()), "sync_s": None,
        })  # fmt: skip
    moved = int(low["bytes_read"].sum() + low["bytes_written"].sum())
    missing = dict.fromkeys(("io_s", "overlapped_io_s", "nonoverlapped_io_s", "compute_s",
                             "app_throughput_bytes_s", "system_throughput_bytes_s"))  # fmt: skip
    return {
        "from": "counters", **missing, "events": 0, "job_time_s": run,
        "posix_bytes": moved, "ranks": int(ranks) if ranks else None, "hosts": None,
        "processes": int(ranks) if ranks else None,
        "files": int(table["file"].nunique()), "format": str(frame.metadata.get("format", "")),
        "layers": layers, "transfer_sizes": transfer_sizes_counted(frame), "pseudo": [],
        "ranks_from": "trace", "notes": _notes(low, run, ranks), "warnings": list(frame.warnings),
    }  # fmt: skip


def _notes(low: pd.DataFrame, run: float | None, ranks: Any) -> list[str]:
    found = []
    data, metadata = (low["read_time"].sum() + low["write_time"].sum()), low["metadata_time"].sum()
    if data + metadata > 0 and metadata > 0:
        found.append(f"metadata calls take {metadata / (data + metadata):.0%} of the time in I/O calls")
    if run and ranks:
        share = (data + metadata) / (run * int(ranks))
        found.append(f"{share:.1%} of the time of the job's processes is in I/O calls")
    return found


def transfer_sizes_counted(frame: IOFrame) -> list[dict[str, Any]]:
    """Return Darshan's histograms of transfer sizes, of the lowest layer that has one."""
    for module, prefix, _ in (MODULES[0], MODULES[2]):
        raw = frame.counters(module)
        agg = "_AGG" if module == "MPI-IO" else ""
        if raw is None:
            continue
        found = [
            {"kind": kind.lower(), "size": size, "calls": int(calls), "bytes": None,
             "median_duration_s": None, "bandwidth_bytes_s": None}
            for kind in ("READ", "WRITE") for name, size in _SIZES
            if (calls := raw[f"{prefix}SIZE_{kind}{agg}_{name}"].clip(lower=0).sum())
        ]  # fmt: skip
        if found:
            return found
    return []


def files_counted(frame: IOFrame, api: str | None = None) -> pd.DataFrame:
    """Return what `summary.files_table` does, from counters: one row for each file, those with most time
    first; what was done after what is not known. `api` is a layer (default: the lowest that moved bytes)."""
    every = counted(frame)
    low = lowest(every) if api is None else every[every["api"] == api]
    shared = low["rank"] < 0
    ranks = frame.metadata.get("ranks")
    sums = [c for c in _SUMS if c in low]
    table = low.groupby("file")[sums].sum()
    table["calls"] = table[_CALLS].sum(axis=1)
    table["data_time"] = table["read_time"] + table["write_time"]
    table["io_time"] = table["data_time"] + table["metadata_time"]
    table["metadata_share"] = (table["metadata_time"] / table["io_time"].where(table["io_time"] > 0)).fillna(
        0
    )
    moved = table["bytes_read"] + table["bytes_written"]
    table["bandwidth"] = moved / table["data_time"].where(table["data_time"] > 0)
    own = low[~shared].groupby("file")["rank"].nunique()
    table["num_ranks"] = own.reindex(table.index).fillna(0).astype("int64")
    if ranks:
        table.loc[table.index.isin(low.loc[shared, "file"]), "num_ranks"] = int(ranks)
    table["consecutive"] = table["consecutive_reads"] + table["consecutive_writes"]
    table["sequential"] = table["sequential_reads"] + table["sequential_writes"] - table["consecutive"]
    # STDIO and MPI-IO do not count how accesses follow each other: theirs are of no pattern, not random.
    placed = low[low["sequential_reads"].notna()]
    accesses = (placed["reads"] + placed["writes"]).groupby(placed["file"]).sum() - _first_accesses(placed)
    table["random"] = (
        accesses.reindex(table.index).fillna(0) - table["sequential"] - table["consecutive"]
    ).clip(lower=0)
    table["pattern"] = mostly(table[["consecutive", "sequential", "random"]])
    table["history"] = ""
    whole = ["bytes_read", "bytes_written", "calls", "consecutive", "sequential", "random"]
    table[whole] = table[whole].astype("int64")
    columns = [
        *whole[:3], "io_time", "metadata_time", "data_time", "metadata_share", "bandwidth", "num_ranks",
        *whole[3:], "pattern", "history",
    ]  # fmt: skip
    units = {"bytes_read": "B", "bytes_written": "B", "io_time": "s", "metadata_time": "s", "data_time": "s",
             "metadata_share": "1", "bandwidth": "B/s"}  # fmt: skip
    order = table.sort_values(["io_time"], ascending=False, kind="stable")
    return with_units(order[columns], units)


def _first_accesses(low: pd.DataFrame) -> pd.Series:
    """Return how many accesses of each file were a rank's first of their kind: these follow nothing."""
    firsts = (low["reads"] > 0).astype("int64") + (low["writes"] > 0).astype("int64")
    return firsts.groupby(low["file"]).sum()
