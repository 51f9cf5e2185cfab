"""Who waits for whom: one slow host, rank or file, and work that is shared out unevenly."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tiercel.pages.words import count, percent
from tiercel.traces.analysis.imbalance import judged
from tiercel.traces.findings.base import (
    ENOUGH_BYTES,
    WORTH,
    Case,
    Finding,
    kinds,
    of_ranks,
    rules,
    top,
)
from tiercel.units import format_bandwidth, format_latency, format_size

#: Two parts do the same work when bytes and calls differ by less than this factor: then a difference in time
#: is the storage's, not the program's.
SAME_WORK = 1.2
#: Parts to compare before the spread of the others says that one is slow by more than chance.
ENOUGH = 5
#: Where it does not (few ranks, or only the slowest and the fastest are known): one rank with the same to do
#: is by chance half as slow again, seldom twice.
SLOW = 2.0
#: Drishti's limit: the busiest rank moves 30 % more than the mean.
UNEVEN = 1.3
#: One rank of several that writes this part of all bytes writes for the others.
SINGLE_WRITER = 0.9
#: Processes that are no ranks are parts of one job when they live at least half as long as the longest.
LIVES = 0.5

_SHARE_OUT = (
    "Share the I/O out over more ranks (collective buffering, more aggregators), or let the other ranks "
    "compute on while this one does it."
)


def _loads(case: Case) -> pd.DataFrame:
    """Return the load of each rank (index: rank), without files that counters know of all ranks together."""
    own = case.top[case.top["rank"] >= 0]
    moved, calls = own["bytes_read"] + own["bytes_written"], own["reads"] + own["writes"]
    data = own["read_time"] + own["write_time"]
    metadata = own["metadata_time"] + own["sync_time"].fillna(0)
    table = pd.DataFrame({
        "bytes": moved, "calls": calls + own["metadata_calls"], "bytes_written": own["bytes_written"],
        "data_time": data, "metadata_time": metadata, "io_time": data + metadata,
    }).groupby(own["rank"]).sum()  # fmt: skip
    if case.numbered:
        return table[table.index.isin(_together(case))]
    return table.reindex(range(case.ranks or 0), fill_value=0).rename_axis("rank")


def _together(case: Case) -> list[int]:
    """Return the numbers of processes that work beside each other, rather than come and go."""
    lives = case.frame.query(
        "SELECT rank, max(time + coalesce(duration, 0)) - min(time) AS lived FROM events GROUP BY rank"
    )
    return [int(rank) for rank in lives.loc[lives["lived"] >= LIVES * lives["lived"].max(), "rank"]]


@rules.register("slow-part")
def slow_part(case: Case) -> Iterator[Finding]:
    """One host, else one rank, else one file is slow for the same work (paper 003, section VI.A)."""
    if (case.ranks or 0) > 1:
        for by, table in _parts(case):
            if found := list(_apart(case, table, by)):
                yield from found
                return
        yield from _slowest(case)
    yield from _slow_file(case)


def _parts(case: Case) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield hosts, where there are several with several ranks, and ranks."""
    ranks = _loads(case)
    if case.events and not case.numbered:
        hosts = case.frame.load_imbalance(by="host", api=case.layer)
        hosts = hosts[hosts.index.notna()]
        # With one rank on each host the two are the same, and the rank is named.
        if 1 < len(hosts) < len(ranks):
            yield "host", hosts
    ranks["ratio"], ranks["verdict"] = judged(ranks["io_time"].to_numpy(dtype=np.float64))
    if len(ranks) < ENOUGH:
        ranks.loc[(ranks["ratio"] < SLOW) & (ranks["ratio"] > 1 / SLOW), "verdict"] = ""
    yield "rank", ranks


def _apart(case: Case, table: pd.DataFrame, by: str) -> Iterator[Finding]:
    """Yield those that are slow for the same work; where none is, the one host that is fast."""
    slow = [name for name in table.index[table["verdict"] == "slow"] if _same_work(table, name)]
    if len(slow) > max(len(table) // 4, 1):
        return  # so many are no exception: times vary
    for name in slow:
        row, others = table.loc[name], table.drop(index=name)
        lost = (float(row["io_time"]) - float(others["io_time"].median())) * (case.ranks or 1)
        if row["io_time"] < WORTH:
            continue
        yield from case.says(
            "slow-part", lost,
            f"{by} {name} takes {row['ratio']:.2g} times as long for the same work as the other "
            f"{len(others)}: "
            f"{_against(row, others)}, most of the difference in {_dearest(row, others)}.",
            f"Run again with other nodes. If the slow {by} moves, the file system picks it (a token or "
            "metadata server for the folder); if it stays, look at that node's link, mount and health.",
            table.reset_index(),
        )  # fmt: skip
    fast = [name for name in table.index[table["verdict"] == "fast"] if _same_work(table, name)]
    if slow or len(fast) != 1 or by != "host" or table["io_time"].median() < WORTH:
        return
    row, others = table.loc[fast[0]], table.drop(index=fast[0])
    usual = others.median(numeric_only=True)
    lost = float(usual["io_time"]) - float(row["io_time"])
    yield from case.says(
        "slow-part", lost * float(others["ranks"].sum()),
        f"{by} {fast[0]} needs {row['ratio']:.2g} of the time that the other {len(others)} need for the same "
        f"work: {_against(row, others)}, most of the difference in {_dearest(usual, row)}.",
        f"What does this {by} have that the others lack: data in its cache, or the file system's metadata "
        "server for this folder (as PrismIO, 2023, with GPFS)? Files in folders of their own spread it.",
        table.reset_index(),
    )  # fmt: skip


def _same_work(table: pd.DataFrame, name: Hashable) -> bool:
    ranks = table.get("ranks", 1)
    mine = table.index == name
    for each in (table["bytes"] / ranks, table["calls"] / ranks):
        middle, value = float(each[~mine].median()), float(each[mine].iloc[0])
        if not (middle / SAME_WORK <= value <= middle * SAME_WORK):
            return False
    return True


def _against(row: Any, others: pd.DataFrame) -> str:
    mine, theirs = float(row["io_time"]), float(others["io_time"].median())
    return f"{format_latency(mine)} of I/O against {format_latency(theirs)}"


def _dearest(row: Any, others: Any) -> str:
    """Say where `row` takes most time more than `others` (one, or their median)."""
    middle = others.median(numeric_only=True) if isinstance(others, pd.DataFrame) else others
    metadata = float(row["metadata_time"]) - float(middle["metadata_time"])
    data = float(row["data_time"]) - float(middle["data_time"])
    return "metadata and syncs" if metadata > data else "reads and writes"


def _extremes(case: Case) -> pd.DataFrame:
    """Return shared files of which counters tell the slowest and the fastest rank, with the mean rank's time
    in calls; `uneven`: the slowest moves more than the fastest, `alike`: as much."""
    rows = case.top[(case.top["rank"] < 0)]
    rows = rows[rows["slowest_time"] > 0]
    fastest = rows["fastest_bytes"].clip(lower=1)
    whole = rows["read_time"] + rows["write_time"] + rows["metadata_time"]
    return rows.assign(
        uneven=rows["slowest_bytes"] >= UNEVEN * fastest,
        alike=rows["slowest_bytes"].between(fastest / SAME_WORK, fastest * SAME_WORK),
        mean_time=whole / (case.ranks or 1),
    )


def _slowest(case: Case) -> Iterator[Finding]:
    """On shared files, as far as counters tell: the slowest rank for as many bytes as the fastest."""
    rows = _extremes(case)
    rows = rows[rows["alike"].astype(bool)]
    rows = rows[rows["slowest_time"] >= SLOW * rows["mean_time"]]
    if rows.empty:
        return
    lost = float((rows["slowest_time"] - rows["mean_time"]).sum())
    yield from case.says(
        "slow-part", lost * (case.ranks or 1),
        f"On {count(len(rows), 'shared file')} the slowest rank takes {format_latency(lost)} longer than the "
        f"mean, for as many bytes as the fastest: {_pair(rows)}.",
        "Look at the slow rank's node, and at who shares its stripes.",
        _pairs(rows),
    )  # fmt: skip


def _pair(rows: pd.DataFrame) -> str:
    first = rows.sort_values("slowest_time", ascending=False).iloc[0]
    return (
        f"most on {first['file']}, rank {int(first['slowest_rank'])} "
        f"{format_latency(float(first['slowest_time']))} for {format_size(float(first['slowest_bytes']))}, "
        f"rank {int(first['fastest_rank'])} {format_latency(float(first['fastest_time']))} for "
        f"{format_size(float(first['fastest_bytes']))}"
    )


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    columns = ["file", "slowest_rank", "slowest_time", "slowest_bytes", "fastest_rank", "fastest_time",
               "fastest_bytes"]  # fmt: skip
    return rows[columns].sort_values("slowest_time", ascending=False).reset_index(drop=True)


def _slow_file(case: Case) -> Iterator[Finding]:
    """One of several like files is slow: then the server or disk behind it is, since the ranks are not."""
    for kind, rows, calls, moved, time in kinds(case.low):
        files = rows.groupby("file")[[moved, calls, time]].sum()
        files.columns = pd.Index(["bytes", "calls", "time"])
        middle = files[["bytes", "calls"]].median()
        alike = files[["bytes", "calls"]].div(middle).sub(1).abs().max(axis=1) < SAME_WORK - 1
        like = files[alike & (files["time"] > 0)].copy()
        if len(like) < ENOUGH:
            continue
        like["ratio"], like["verdict"] = judged(like["time"].to_numpy(dtype=np.float64))
        slow = like[(like["verdict"] == "slow") & (like["ratio"] >= SLOW) & (like["time"] >= WORTH)]
        if slow.empty or len(slow) > len(like) // 4:
            continue
        worst = slow.sort_values("ratio", ascending=False).iloc[0]
        usual = like["bytes"].median() / like["time"].median()
        yield from case.says(
            "slow-part", float((slow["time"] - like["time"].median()).sum()),
            f"{len(slow)} of {len(like)} files with the same {kind}s are slow: {worst.name} gets "
            f"{format_bandwidth(worst['bytes'] / worst['time'])}, the median file {format_bandwidth(usual)}.",
            "Look where the slow files lie (lfs getstripe, mmlsattr): one server, target or disk behind them "
            "is slow or full.",
            like.sort_values("time", ascending=False).reset_index(),
        )  # fmt: skip


@rules.register("imbalance")
@of_ranks
def imbalance(case: Case) -> Iterator[Finding]:
    """Some ranks have much more to do than others: the job waits for them."""
    assert case.ranks is not None
    loads = _loads(case)
    lone = _lone_writer(case)
    row = loads.sort_values("io_time").reset_index().iloc[-1] if len(loads) > 1 else None
    if row is not None and row["rank"] != (lone and lone[0]):
        mean = loads.mean()
        much = any(row[what] >= UNEVEN * mean[what] > 0 for what in ("bytes", "calls"))
        if much and row["io_time"] >= UNEVEN * mean["io_time"]:
            yield from case.says(
                "imbalance", float(row["io_time"] - mean["io_time"]) * case.ranks,
                f"Rank {int(row['rank'])} moves {format_size(float(row['bytes']))} in "
                f"{int(row['calls']):,} calls, the mean of {len(loads):,} ranks "
                f"{format_size(float(mean['bytes']))} in {mean['calls']:,.0f}; it is in I/O for "
                f"{format_latency(float(row['io_time']))}, the mean rank for "
                f"{format_latency(float(mean['io_time']))}: the job waits for it.",
                _SHARE_OUT,
                loads.sort_values("io_time", ascending=False).reset_index(),
            )  # fmt: skip
    rows = _extremes(case)
    rows = rows[rows["uneven"].astype(bool)]
    rows = rows[rows["slowest_time"] >= UNEVEN * rows["mean_time"]]
    if lone is not None and len(rows):
        rows = rows[rows["slowest_rank"] != lone[0]]
    if rows.empty:
        return
    lost = float((rows["slowest_time"] - rows["mean_time"]).sum())
    yield from case.says(
        "imbalance", lost * case.ranks,
        f"On {count(len(rows), 'shared file')} the slowest rank takes {format_latency(lost)} longer than the "
        f"mean: {_pair(rows)}.",
        "Give every rank as much to do.",
        _pairs(rows),
    )  # fmt: skip


def _lone_writer(case: Case) -> tuple[int, float, float] | None:
    """Return the rank that writes nearly everything, its bytes and its seconds; None where several write."""
    if not case.ranks or case.ranks < 2:
        return None
    total = float(case.top["bytes_written"].sum())
    own = case.top[case.top["rank"] >= 0]
    if case.numbered and len(_together(case)) < 2:
        return None
    alone = own[["rank", "bytes_written", "write_time"]]
    extremes = _extremes(case)
    if len(extremes):
        # On a file of all ranks together, one that moves nearly all of what is only written.
        written = extremes["bytes_written"]
        mine = extremes[(extremes["slowest_bytes"] >= SINGLE_WRITER * written) & (extremes["reads"] == 0)]
        alone = pd.concat([alone, pd.DataFrame({
            "rank": mine["slowest_rank"], "bytes_written": mine["slowest_bytes"],
            "write_time": mine["write_time"],
        })])  # fmt: skip
    by_rank = alone.groupby("rank").sum()
    if total < ENOUGH_BYTES or by_rank.empty:
        return None
    most = by_rank.sort_values("bytes_written").reset_index().iloc[-1]
    moved = float(most["bytes_written"])
    return (int(most["rank"]), moved, float(most["write_time"])) if moved >= SINGLE_WRITER * total else None


@rules.register("single-writer")
@of_ranks
def single_writer(case: Case) -> Iterator[Finding]:
    """One rank does the I/O that others wait for."""
    lone = _lone_writer(case)
    if lone is None:
        return
    rank, moved, seconds = lone
    assert case.ranks is not None
    rows = case.top[(case.top["rank"] == rank) | (case.top["rank"] < 0)]
    yield from case.says(
        "single-writer", seconds * case.ranks,
        f"Rank {rank} writes {percent(moved / float(case.top['bytes_written'].sum()))} of "
        f"{format_size(float(case.top['bytes_written'].sum()))} for {case.ranks:,} ranks, in "
        f"{format_latency(seconds)} while they can do nothing else with it.",
        "Let more ranks write (collective MPI-IO with an aggregator a node), or write while the others "
        "compute.",
        top(rows, "bytes_written", ("bytes_written", "writes", "write_time")),
    )  # fmt: skip
