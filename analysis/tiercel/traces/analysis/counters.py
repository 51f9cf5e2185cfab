"""What counters tell where there are no events: Darshan's, as a table in the field's words, and its sums.

A counter is a sum over a job, for each file and rank (or for all ranks of a shared file together). So bytes,
calls, sizes and times in calls are known; who did what when, and what overlapped what, is not, and is missing
in the answers, never zero. POSIX and STDIO are both the lowest layer: Darshan counts a stdio call in STDIO
alone. Source of the counters: Darshan's documentation of darshan-parser; prefixes are left out here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tiercel.deferred import pd
from tiercel.errors import UserError
from tiercel.traces.analysis.common import mostly, total, with_units
from tiercel.traces.pseudo import is_pseudo
from tiercel.units import format_share

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
#: Of a file that ranks fill by turns, at least this part is moved.
FILLED = 0.75
#: Our columns that are one counter; missing where the module does not have it.
SINGLE = {
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
#: The largest size of the classes that may lie below a file system's unit.
_UP_TO = {"0_100": 100, "100_1K": 1024, "1K_10K": 10_240}
#: The largest size of the classes above 1 MiB.
_LARGE = {"1M_4M": 4 << 20, "4M_10M": 10 << 20, "10M_100M": 100 << 20, "100M_1G": 1 << 30,
          "1G_PLUS": np.inf}  # fmt: skip
_MIB = 1 << 20
#: What a call takes whatever it moves, and what a process moves in a second: of a parallel file system, to
#: share out a file's time among its small and large transfers.
_CALL_S, _RATE = 100e-6, float(1 << 30)

Floats = npt.NDArray[np.float64]
#: Darshan's histogram: calls by kind and class; None where the module has none.
Classes = Mapping[tuple[str, str], Floats | None]


def has_counters(frame: IOFrame) -> bool:
    """Say whether a frame has counters of files."""
    return bool(frame.counted_modules() & {module for module, _, _ in MODULES})


def only_counters(frame: IOFrame) -> bool:
    """Say whether answers have to come from counters, because there are no events."""
    return has_counters(frame) and not len(frame)


def refuse_counters(frame: IOFrame, what: str) -> None:
    """UserError where there are counters alone, which do not say what happened when."""
    if only_counters(frame):
        raise UserError(
            f"{frame.metadata.get('path', 'this trace')}: {what} needs events, and this log contains "
            "counters only"
        )


def only_data(frame: IOFrame) -> bool:
    """Say whether events are reads and writes alone: DXT's, or a part of them."""
    return bool(len(frame)) and frame.metadata.get("format") == "darshan"


def told_from(frame: IOFrame) -> str:
    """Return what the rules on a trace rest on: counters, events, or both (Darshan with DXT)."""
    if not has_counters(frame):
        return "events"
    return "counters and events" if len(frame) else "counters"


def counted(frame: IOFrame) -> pd.DataFrame:
    """Return one row for each layer, file and rank (-1: all ranks of a shared file together).

    Columns: api, file, rank, then `_SUMS`, `SINGLE` and what `_estimate` adds (NaN: the layer does not count
    it). Pseudo-files are left out. Seconds and bytes; times are sums over the ranks of a row.
    """
    parts = [
        _module(raw, prefix, api)
        for module, prefix, api in MODULES
        if (raw := frame.counters(module)) is not None
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _module(raw: pd.DataFrame, prefix: str, api: str) -> pd.DataFrame:
    """Return the rows of one module. Whole columns in numpy: a survey asks this of thousands of logs."""
    files = raw["file"].tolist()
    kept = np.array([not is_pseudo(file) for file in files], dtype=bool)
    numbers = {
        name: raw[name].to_numpy(dtype=np.float64)[kept] for name in raw.columns if name.startswith(prefix)
    }
    nothing = np.full(int(kept.sum()), np.nan)

    def summed(names: Sequence[str]) -> Floats:
        # A number that cannot be is missing, and so is every sum that it belongs to.
        there = [numbers[prefix + name] for name in names if prefix + name in numbers]
        # -1: this version of Darshan does not count it (darshan_log.py).
        return np.sum([np.where(each == -1, 0, each) for each in there], axis=0) if there else nothing

    columns = {column: summed(names) for column, names in _SUMS.items()}
    columns |= {column: numbers.get(prefix + name, nothing) for column, name in SINGLE.items()}
    agg = "_AGG" if prefix == "MPIIO_" else ""
    classes = {
        (kind, size): numbers.get(f"{prefix}SIZE_{kind.upper()}{agg}_{size}")
        for kind in ("read", "write") for size, _ in _SIZES
    }  # fmt: skip
    _not_small(columns, numbers, classes, prefix)
    _estimate(columns, classes, _below_unit(columns, numbers, prefix))
    index = {"api": api, "file": [file for file, keep in zip(files, kept, strict=True) if keep],
             "rank": raw["rank"].to_numpy()[kept]}  # fmt: skip
    return pd.DataFrame(index | columns)


def _not_small(
    columns: dict[str, Floats], numbers: Mapping[str, Floats], classes: Classes, prefix: str
) -> None:
    """Take transfers of exactly 1 MiB out of the small ones, as far as the commonest sizes tell them; and add
    the bytes that the small ones moved at least."""
    of_kind = {kind: classes[kind, "100K_1M"] for kind in ("read", "write")}
    read, write = of_kind["read"], of_kind["write"]
    columns |= {f"small_{kind}_bytes": np.zeros_like(columns["reads"]) for kind in of_kind}
    if read is None or write is None:
        return
    both = read + write
    whole = np.zeros_like(both)
    for number in range(1, 5):
        size, count = (numbers.get(f"{prefix}ACCESS{number}_{what}") for what in ("ACCESS", "COUNT"))
        if size is not None and count is not None:
            whole += np.where(size == _MIB, count, 0)
    for kind, held in (("read", read), ("write", write)):
        exact = np.minimum(whole * held / np.where(both > 0, both, 1), held)
        columns[f"small_{kind}s"] = np.round(columns[f"small_{kind}s"] - exact)
        # What the large ones cannot hold, the small ones moved.
        large = exact * _MIB
        for name, upto in _LARGE.items():
            there = classes[kind, name]
            if there is not None:
                large = large + np.where(there > 0, np.maximum(there, 1) * upto, 0)
        moved = columns["bytes_read" if kind == "read" else "bytes_written"]
        columns[f"small_{kind}_bytes"] = np.clip(moved - large, 0, None)


def _below_unit(columns: Mapping[str, Floats], numbers: Mapping[str, Floats], prefix: str) -> Floats:
    """Return how many transfers are below the file's unit and in a class that reaches beyond it, as far as
    the commonest sizes tell."""
    found = np.zeros_like(columns["reads"])
    unit = columns["alignment"]
    ends = sorted(_UP_TO.values())
    for number in range(1, 5):
        size, count = (numbers.get(f"{prefix}ACCESS{number}_{what}") for what in ("ACCESS", "COUNT"))
        if size is None or count is None:
            continue
        whole = np.zeros_like(unit)  # up to here the classes lie below the unit as a whole
        for end in ends:
            whole = np.where(unit >= end, end, whole)
        found += np.where((size < unit) & (size > whole), count, 0)
    return found


def _estimate(columns: dict[str, Floats], classes: Classes, below_unit: Floats) -> None:
    """Add what events would tell and counters let one estimate. Of a file and rank, the time in small calls
    is that in all, by what each would take of `_CALL_S` and its bytes at `_RATE`. Darshan counts the time of
    syncs with that of writes, and does not tell it."""
    for kind, moved in (("read", "bytes_read"), ("write", "bytes_written")):
        calls, small = columns[f"{kind}s"], columns[f"small_{kind}s"]
        whole = calls * _CALL_S + columns[moved] / _RATE
        part = small * _CALL_S + columns[f"small_{kind}_bytes"] / _RATE
        share = np.minimum(part / np.where(whole > 0, whole, np.nan), 1.0)
        columns[f"small_{kind}_time"] = columns[f"{kind}_time"] * np.where(small >= calls, 1.0, share)
    columns["sync_time"] = np.full_like(columns["reads"], np.nan)
    # Nor does it tell with which flags a file was opened.
    columns |= dict.fromkeys(("synced_writes", "synced_write_time"), np.zeros_like(columns["reads"]))
    counts = ("opens", "stats", "seeks", "syncs", "flushes")
    columns["metadata_calls"] = np.nansum([columns[name] for name in counts], axis=0)
    # What is smaller than the unit cannot be aligned to it, and is counted by other rules.
    tiny = below_unit
    for (_, size), held in classes.items():
        if held is not None and size in _UP_TO:
            tiny += np.where(columns["alignment"] >= _UP_TO[size], held, 0)
    columns["not_aligned"] = np.clip(columns["not_aligned"] - tiny, 0, None)


def places_counted(table: pd.DataFrame, ranks: int | None) -> pd.DataFrame:
    """Return what `patterns.places` does, from counters (`counted`, its lowest layers).

    A rank's first access of a file follows nothing, and so does the first after each open; of a shared file
    all ranks have one. `read_again` is what was read beyond the file's last byte read; `read_of_others` is
    known for files that ranks do not share at once (one wrote, another read), else missing. Accesses of a
    shared file that go forward over gaps are in turn with others' where the file has hardly any gap that
    nobody fills.
    """
    firsts = pd.Series(1, table.index).where(table["rank"] >= 0, ranks or 1)
    firsts = firsts.where(firsts > table["opens"], table["opens"])
    parts: dict[str, pd.Series] = {}
    for kind in ("reads", "writes"):
        known = table[f"sequential_{kind}"].notna()
        calls = table[kind].where(known, 0)
        jumps = (calls - table[f"sequential_{kind}"] - firsts).clip(lower=0)
        parts |= {f"placed_{kind}": calls, f"random_{kind}": jumps.fillna(0),
                  f"consecutive_{kind}": table[f"consecutive_{kind}"].where(known, 0)}  # fmt: skip
    found = pd.DataFrame(parts).groupby(table["file"]).sum()
    by_file = table.groupby("file")
    extent = by_file["last_byte_read"].max() + 1
    found["read_again"] = (by_file["bytes_read"].sum() - extent).clip(lower=0).fillna(0)
    own = table[table["rank"] >= 0]
    writers = own[own["bytes_written"] > 0].groupby("file")["rank"].agg(["min", "max"])
    own = own.join(writers, on="file")
    others = own["bytes_read"].where((own["min"] != own["rank"]) | (own["max"] != own["rank"]), 0)
    known = others.where(own["min"].notna(), 0).groupby(own["file"]).sum()
    found["read_of_others"] = known.reindex(found.index)
    shared = (by_file["rank"].nunique() > 1) | (by_file["rank"].min() < 0)
    for kind, moved, end in (("reads", "bytes_read", "last_byte_read"),
                             ("writes", "bytes_written", "last_byte_written")):  # fmt: skip
        filled = shared & (by_file[moved].sum() >= FILLED * (by_file[end].max() + 1))
        over = (found[f"placed_{kind}"] - found[f"consecutive_{kind}"] - found[f"random_{kind}"]).clip(
            lower=0
        )
        found[f"turns_{kind}"] = over.where(filled, 0)
    return found


def lowest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the lowest layers that moved bytes: POSIX and STDIO, else MPI-IO, else HDF5."""
    for layers in (LOWEST, ("mpiio",), ("hdf5",)):
        rows = table[table["api"].isin(layers)]
        moved = total(rows["bytes_read"] + rows["bytes_written"])
        if moved is None or moved > 0:
            return rows
    return table[table["api"].isin(LOWEST)]


def topmost(table: pd.DataFrame, low: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each file's topmost layer: what ranks ask for and wait for, before MPI-IO gathers it
    in aggregators."""
    through = table["file"].isin(table.loc[table["api"] == "mpiio", "file"])
    return table[(table["api"] == "mpiio") | (~through & table.index.isin(low.index))]


def summarise_counters(frame: IOFrame) -> dict[str, Any]:
    """Return what `summary.summarise` does, from counters; what these cannot say is None."""
    table = counted(frame)
    low = lowest(table)
    run = frame.metadata.get("run_time")
    ranks = frame.metadata.get("ranks")
    moved = total(low["bytes_read"] + low["bytes_written"])
    missing = dict.fromkeys(("io_s", "overlapped_io_s", "nonoverlapped_io_s", "compute_s",
                             "app_throughput_bytes_s", "system_throughput_bytes_s"))  # fmt: skip
    return {
        "from": "counters", **missing, "events": 0, "job_time_s": run,
        "posix_bytes": None if moved is None else int(moved),
        "ranks": int(ranks) if ranks else None, "hosts": None,
        "processes": int(ranks) if ranks else None,
        "files": int(table["file"].nunique()), "format": str(frame.metadata.get("format", "")),
        **in_calls(table, low, run, ranks),
        "transfer_sizes": transfer_sizes_counted(frame), "pseudo": [],
        "ranks_from": "trace", "warnings": list(frame.warnings),
    }  # fmt: skip


def in_calls(table: pd.DataFrame, low: pd.DataFrame, run: float | None, ranks: Any) -> dict[str, Any]:
    """Return ``layers``, ``in_calls_s`` (of all processes together) and ``notes`` from counters."""
    layers = []
    for api, rows in table.groupby("api", sort=False):
        layers.append({
            "api": str(api), "calls": _whole(_added(rows, [c for c in _CALLS if rows[c].notna().any()])),
            "bytes_read": _whole(rows["bytes_read"]), "bytes_written": _whole(rows["bytes_written"]),
            "data_s": total(rows["read_time"] + rows["write_time"]),
            "metadata_s": total(rows["metadata_time"]), "sync_s": None,
        })  # fmt: skip
    top = topmost(table, low)
    spent = total(_added(top, _TIMES))
    return {"layers": layers, "in_calls_s": spent, "notes": _notes(low, top, run, ranks)}


_TIMES = ["read_time", "write_time", "metadata_time"]


def _added(rows: pd.DataFrame, columns: Sequence[str]) -> pd.Series[float]:
    """Return the sum of some columns, missing where one of them is."""
    return rows[list(columns)].sum(axis=1, skipna=False)


def _whole(values: pd.Series[float]) -> int | None:
    sum_ = total(values)
    return None if sum_ is None else int(sum_)


def _notes(low: pd.DataFrame, top: pd.DataFrame, run: float | None, ranks: Any) -> list[str]:
    found = []
    data, metadata = total(low["read_time"] + low["write_time"]), total(low["metadata_time"])
    if data is not None and metadata is not None and metadata > 0.005 * (data + metadata):
        found.append(
            f"metadata calls take {format_share(metadata / (data + metadata))} of the time in I/O calls"
        )
    if run and ranks:
        took = run * int(ranks)
        spent = [total(_added(rows, _TIMES)) for rows in (top, low)]
        if spent[0] is None or spent[1] is None:
            return found
        shares = [spent[0] / took, spent[1] / took]
        below = (
            f", {format_share(shares[1], 1)} below MPI-IO: the rest waits"
            if shares[0] >= 1.5 * shares[1]
            else ""
        )
        found.append(
            f"{format_share(shares[0], 1)} of the time of the job's processes is in I/O calls{below}"
        )
    return found


def transfer_sizes_counted(frame: IOFrame) -> list[dict[str, Any]]:
    """Return Darshan's histograms of transfer sizes, of the lowest layer that has one."""
    for module, prefix, _ in (MODULES[0], MODULES[2]):
        raw = frame.counters(module)
        agg = "_AGG" if module == "MPI-IO" else ""
        if raw is None:
            continue
        counts = [
            (kind, size, total(raw[f"{prefix}SIZE_{kind}{agg}_{name}"]))
            for kind in ("READ", "WRITE") for name, size in _SIZES
        ]  # fmt: skip
        if any(calls is None for _, _, calls in counts):
            return []  # a number of the histogram cannot be
        found = [
            {"kind": kind.lower(), "size": size, "calls": int(calls), "bytes": None,
             "median_duration_s": None, "bandwidth_bytes_s": None}
            for kind, size, calls in counts if calls
        ]  # fmt: skip
        if found:
            return found
    return []


def _without(table: pd.DataFrame, name: str) -> set[str]:
    """Return the layers that do not count something at all."""
    counts = table.groupby("api")[name].count()
    return set(counts.index[counts == 0])


def files_counted(frame: IOFrame, api: str | None = None) -> pd.DataFrame:
    """Return what `summary.files_table` does, from counters: one row for each file, those with most time
    first; what was done after what is not known. `api` is a layer (default: the lowest that moved bytes)."""
    every = counted(frame)
    low = lowest(every) if api is None else every[every["api"] == api]
    shared = low["rank"] < 0
    ranks = frame.metadata.get("ranks")
    sums = [c for c in _SUMS if c in low]
    # What a layer does not count at all is no part of a sum; what cannot be makes it missing.
    rows = low.assign(**{
        name: low[name].mask(low["api"].isin(_without(low, name)), 0.0) for name in sums
    })  # fmt: skip
    table = rows.groupby("file")[sums].sum()
    table = table.mask(rows[sums].isna().groupby(rows["file"]).any())
    table["calls"] = table[_CALLS].sum(axis=1, skipna=False)
    table["data_time"] = table["read_time"] + table["write_time"]
    table["io_time"] = table["data_time"] + table["metadata_time"]
    none = table["io_time"] == 0
    table["metadata_share"] = (table["metadata_time"] / table["io_time"].mask(none, 1.0)).mask(none, 0.0)
    moved = table["bytes_read"] + table["bytes_written"]
    table["bandwidth"] = moved / table["data_time"].where(table["data_time"] > 0)
    own = low[~shared].groupby("file")["rank"].nunique()
    table["num_ranks"] = own.reindex(table.index).fillna(0).astype("int64")
    if ranks:
        table.loc[table.index.isin(low.loc[shared, "file"]), "num_ranks"] = int(ranks)
    table["consecutive"] = table["consecutive_reads"] + table["consecutive_writes"]
    table["sequential"] = table["sequential_reads"] + table["sequential_writes"] - table["consecutive"]
    jumps = places_counted(low, int(ranks) if ranks else None)
    table["random"] = jumps["random_reads"] + jumps["random_writes"]
    table["pattern"] = mostly(table[["consecutive", "sequential", "random"]])
    table["history"] = ""
    whole = ["bytes_read", "bytes_written", "calls", "consecutive", "sequential", "random"]
    table = table.astype({name: "int64" for name in whole if table[name].notna().all()})
    columns = [
        *whole[:3], "io_time", "metadata_time", "data_time", "metadata_share", "bandwidth", "num_ranks",
        *whole[3:], "pattern", "history",
    ]  # fmt: skip
    units = {"bytes_read": "B", "bytes_written": "B", "io_time": "s", "metadata_time": "s", "data_time": "s",
             "metadata_share": "1", "bandwidth": "B/s"}  # fmt: skip
    order = table.sort_values(["io_time"], ascending=False, kind="stable")
    order.index = order.index.astype(object)  # of no files, too
    return with_units(order[columns], units)
