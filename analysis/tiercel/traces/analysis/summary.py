"""The whole of a trace in a page, and its files in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiercel.deferred import pd
from tiercel.traces.analysis.bandwidth import shared_files
from tiercel.traces.analysis.common import (
    DATA_KINDS,
    IO_KINDS,
    IS_DATA,
    IS_IO,
    IS_READ,
    IS_WRITE,
    Group,
    by_key,
    bytes_of,
    group_calls,
    layer_of,
    mostly,
    seconds_of,
    totals,
    with_units,
)
from tiercel.traces.analysis.counters import (
    counted,
    files_counted,
    has_counters,
    in_calls,
    lowest,
    only_counters,
    only_data,
    summarise_counters,
    told_from,
)
from tiercel.traces.analysis.imbalance import outliers
from tiercel.traces.analysis.overlap import evidence
from tiercel.traces.analysis.patterns import HISTORIES, PATTERNS, both
from tiercel.traces.analysis.transfer import transfer_rows
from tiercel.traces.cluster import spread
from tiercel.traces.pseudo import origin
from tiercel.units import format_share, format_size

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

_BESIDE = "kind IN ('metadata', 'sync')"


def summarise(frame: IOFrame, api: str | None = None) -> dict[str, Any]:
    """Return plain values: the numbers of `overlap`, and what a first look at a trace needs beside them.

    ``from`` says whether they are from events, or (`analysis.counters`) from counters. `api` is the layer
    whose calls count (default: the lowest one that moved bytes).
    """
    if only_counters(frame):
        return summarise_counters(frame)
    numbers = evidence(frame, api)
    groups = group_calls(frame)
    ranks, hosts = (len({each for each in found if each is not None}) for found in (
        (g.rank for g in groups), (g.host for g in groups)))  # fmt: skip
    files = frame.rows("SELECT count(DISTINCT file) FROM events")[0][0]
    pseudo = _pseudo(frame)
    calls = _from_counters(frame) if has_counters(frame) else _from_events(frame)
    return {
        "from": told_from(frame),
        **numbers,
        "ranks": ranks,
        "hosts": max(hosts, 1),
        # DXT tells ranks and hosts, and no processes.
        "processes": ranks if only_data(frame) else len({(g.host, g.process) for g in groups}),
        "files": files,
        "format": str(frame.metadata.get("format", "")),
        "transfer_sizes": [
            {
                "kind": row["kind"],
                "size": row["size"],
                "calls": row["calls"],
                "bytes": row["bytes"],
                "median_duration_s": row["median_duration"],
                "bandwidth_bytes_s": row["bandwidth"],
            }
            for row in transfer_rows(frame, layer_of(frame, api))
        ],
        "ranks_from": str(frame.metadata.get("ranks_from", "")),
        "pseudo": pseudo,
        **calls,
        "notes": [*calls["notes"], *_notes(frame, pseudo, ranks)],
    }


def _from_counters(frame: IOFrame) -> dict[str, Any]:
    """Return layers, time in calls and the job's ranks from counters, which have every call of all of them:
    DXT has reads and writes alone, and ends where its memory does."""
    table, ranks = counted(frame), frame.metadata.get("ranks")
    whole = {"ranks": int(ranks), "processes": int(ranks)} if ranks else {}
    return whole | in_calls(table, lowest(table), frame.metadata.get("run_time"), ranks)


def _from_events(frame: IOFrame) -> dict[str, Any]:
    apis = by_key((g for g in group_calls(frame) if g.kind in IO_KINDS), lambda g: g.api or "")
    rows = [_layer(api, apis[api]) for api in sorted(apis, reverse=True)]
    if only_data(frame):
        return {"layers": [row | {"metadata_s": None, "sync_s": None} for row in rows], "in_calls_s": None,
                "notes": []}  # fmt: skip
    notes = []
    for row in rows:
        if None in (times := (row["metadata_s"], row["sync_s"], row["data_s"])):
            continue
        beside, whole = sum(times[:2]), sum(times)
        if beside > 0:
            share = beside / whole
            notes.append(
                f"{row['api']}: metadata and sync calls take {format_share(share)} of the time in I/O calls"
            )
    return {"layers": rows, "in_calls_s": None, "notes": notes}


def _layer(api: str, groups: list[Group]) -> dict[str, Any]:
    of = {kind: totals(groups, [kind]) for kind in IO_KINDS}
    return {
        "api": api, "calls": totals(groups).calls,
        "bytes_read": of["read"].bytes, "bytes_written": of["write"].bytes,
        "data_s": totals(groups, DATA_KINDS).seconds,
        "metadata_s": of["metadata"].seconds, "sync_s": of["sync"].seconds,
    }  # fmt: skip


def _pseudo(frame: IOFrame) -> list[dict[str, Any]]:
    """Return calls, bytes and seconds on what is no storage, by where it lies."""
    if not any(g.kind == "pseudo" for g in group_calls(frame)):
        return []
    rows = frame.rows(
        "SELECT file, count(*), coalesce(sum(size), 0)::BIGINT, coalesce(sum(duration), 0.0) "
        "FROM events WHERE kind = 'pseudo' GROUP BY file ORDER BY file"
    )
    places = by_key(rows, lambda row: origin(row[0]))
    found = [
        {"of": of, "calls": sum(r[1] for r in held), "bytes": sum(r[2] for r in held),
         "seconds": sum(r[3] for r in held)}
        for of, held in places.items()
    ]  # fmt: skip
    return sorted(found, key=lambda each: (-each["calls"], each["of"]))


def _notes(frame: IOFrame, pseudo: list[dict[str, Any]], ranks: int) -> list[str]:
    notes = []
    for stranger in pseudo:
        notes.append(
            f"{stranger['calls']:,} calls on {stranger['of']} ({format_size(stranger['bytes'])}) are not "
            "counted: no storage"
        )
    for by in ("host", "rank"):
        for verdict, names in outliers(frame, by).items():
            if names and len(names) <= 8:
                named = ", ".join(map(str, names))
                notes.append(f"{by} {named}: {verdict}, compared with the other {by}s")
    if ranks > 1 and frame.ranks_are_numbered:
        notes.append(frame.ranks_are_numbered)
    return notes


def files_table(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return one row for each file, those with most I/O time first (index: file)."""
    if rank is None and filter is None and has_counters(frame):
        counted_ones = files_counted(frame, api)
        return counted_ones if only_counters(frame) else _in_order(counted_ones, frame, layer_of(frame, api))
    chosen = frame.select(rank, filter)
    layer = layer_of(chosen, api)
    table = chosen.query(
        f"SELECT file, {bytes_of(IS_READ)} AS bytes_read, {bytes_of(IS_WRITE)} AS bytes_written, "
        f"count(*) AS calls, {seconds_of('TRUE')} AS io_time, {seconds_of(_BESIDE)} AS metadata_time, "
        f"{seconds_of(IS_DATA)} AS data_time FROM events "
        f"WHERE {IS_IO} AND api = '{layer}' AND file IS NOT NULL GROUP BY file "
        "ORDER BY io_time DESC NULLS LAST, file"
    ).set_index("file")
    took_none = table["io_time"] == 0
    table["metadata_share"] = (table["metadata_time"] / table["io_time"].mask(took_none, 1.0)).mask(
        took_none, 0.0
    )
    moved = table["bytes_read"] + table["bytes_written"]
    table["bandwidth"] = moved / table["data_time"].where(table["data_time"] > 0)
    table["num_ranks"] = shared_files(chosen, dropna=True)["num_ranks"].reindex(table.index)
    units = {"bytes_read": "B", "bytes_written": "B", "io_time": "s", "metadata_time": "s", "data_time": "s",
             "metadata_share": "1", "bandwidth": "B/s"}  # fmt: skip
    return _in_order(with_units(table, units), chosen, layer)


def _in_order(table: pd.DataFrame, frame: IOFrame, layer: str) -> pd.DataFrame:
    """Return a table of files with what events tell: how accesses follow each other, and upon what."""
    columns = [*PATTERNS, *HISTORIES]
    found = pd.concat(spread(frame, "file", both, layer))
    whole = table.drop(columns=columns, errors="ignore").join(found).fillna(dict.fromkeys(columns, 0))
    whole[columns] = whole[columns].astype("int64")
    whole["pattern"] = mostly(whole[list(PATTERNS)])
    whole["history"] = mostly(whole[list(HISTORIES)])
    return with_units(whole, {**table.attrs["units"], **dict.fromkeys(HISTORIES, "B")})
