"""Who waits for whom: one slow host, rank or file, and work that is shared out unevenly."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from tiercel.traces.analysis.imbalance import judged
from tiercel.traces.findings.base import WORTH, Case, Finding, rules
from tiercel.units import format_bandwidth, format_latency, format_size

#: Two parts do the same work when bytes and calls differ by less than this factor: then a difference in time
#: is the storage's, not the program's.
SAME_WORK = 1.2
#: Files to compare before one of them can be called slow: with fewer, the median means little.
ENOUGH_FILES = 5
#: Drishti's limit: the busiest rank moves 30 % more than the mean.
UNEVEN = 1.3


@rules.register("slow-part")
def slow_part(case: Case) -> Iterator[Finding]:
    """One host, else one rank, else one file is slow for the same work (paper 003, section VI.A)."""
    ranks = case.frame.load_imbalance(api=case.layer)
    hosts = case.frame.load_imbalance(by="host", api=case.layer)
    hosts = hosts[hosts.index.notna()]
    # With one rank on each host the two are the same, and the rank is named.
    parts = [("host", hosts)] if 1 < len(hosts) < len(ranks) else []
    for by, table in [*parts, ("rank", ranks)]:
        if found := list(_apart(table, by)):
            yield from found
            return
    yield from _slow_file(case)


def _apart(table: pd.DataFrame, by: str) -> Iterator[Finding]:
    """Yield those that are slow for the same work; where none is, the one that is fast."""
    slow = [name for name in table.index[table["verdict"] == "slow"] if _same_work(table, name)]
    for name in slow:
        row, others = table.loc[name], table.drop(index=name)
        if row["io_time"] < WORTH:
            continue
        yield Finding(
            "slow-part",
            "problem",
            f"{by} {name} takes {row['ratio']:.2g} times as long for the same work as the other "
            f"{len(others)}: "
            f"{_against(row, others)}, most of the difference in {_dearest(row, others)}.",
            f"Run again with other nodes. If the slow {by} moves, the file system picks it (a token or "
            "metadata server for the folder); if it stays, look at that node's link, mount and health.",
            table.reset_index(),
        )
    fast = [name for name in table.index[table["verdict"] == "fast"] if _same_work(table, name)]
    if slow or len(fast) != 1 or table["io_time"].median() < WORTH:
        return
    row, others = table.loc[fast[0]], table.drop(index=fast[0])
    usual = others.median(numeric_only=True)
    yield Finding(
        "slow-part",
        "hint",
        f"{by} {fast[0]} needs {row['ratio']:.2g} of the time that the other {len(others)} need for the same "
        f"work: {_against(row, others)}, most of the difference in {_dearest(usual, row)}.",
        f"What does this {by} have that the others lack: data in its cache, or the file system's metadata "
        "server for this folder (paper 003 found that with GPFS)? Files in folders of their own spread it.",
        table.reset_index(),
    )


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


def _slow_file(case: Case) -> Iterator[Finding]:
    """One of several like files is slow: then the server or disk behind it is, since the ranks are not."""
    files = case.frame.query(
        "SELECT file, kind, sum(size)::BIGINT AS bytes, count(*) AS calls, sum(duration) AS time FROM events "
        f"WHERE kind IN ('read', 'write') AND size > 0 AND file IS NOT NULL AND api = '{case.layer}' "
        "GROUP BY file, kind ORDER BY file"
    )
    for kind, rows in files.groupby("kind", observed=True):
        middle = rows[["bytes", "calls"]].median()
        alike = rows[["bytes", "calls"]].div(middle).sub(1).abs().max(axis=1) < SAME_WORK - 1
        like = rows[alike & (rows["time"] > 0)].copy()
        if len(like) < ENOUGH_FILES:
            continue
        like["ratio"], like["verdict"] = judged(like["time"].to_numpy(dtype=np.float64))
        slow = like[(like["verdict"] == "slow") & (like["time"] >= WORTH)]
        if slow.empty or len(slow) > len(like) // 4:
            continue
        worst = slow.sort_values("ratio", ascending=False).iloc[0]
        usual = like["bytes"].median() / like["time"].median()
        yield Finding(
            "slow-part",
            "hint",
            f"{len(slow)} of {len(like)} files with the same {kind}s are slow: {worst['file']} gets "
            f"{format_bandwidth(worst['bytes'] / worst['time'])}, the median file {format_bandwidth(usual)}.",
            "Look where the slow files lie (lfs getstripe, mmlsattr): one server, target or disk behind them "
            "is slow or full.",
            like.sort_values("time", ascending=False).reset_index(drop=True),
        )


@rules.register("imbalance")
def imbalance(case: Case) -> Iterator[Finding]:
    """Some ranks move much more than others: the job waits for them."""
    table = case.frame.load_imbalance(api=case.layer)
    mean = float(table["bytes"].mean()) if len(table) else 0.0
    if len(table) < 2 or mean <= 0 or float(table["io_time"].max()) < WORTH:
        return
    most = float(table["bytes"].max())
    if most < UNEVEN * mean:
        return
    busiest = table.sort_values("bytes", ascending=False).reset_index().iloc[0]
    waits = float(busiest["io_time"]) >= UNEVEN * float(table["io_time"].mean())
    yield Finding(
        "imbalance",
        "problem" if waits else "note",
        f"Rank {busiest['rank']} moves {format_size(most)}, {most / mean:.3g} times the mean of "
        f"{len(table)} ranks; "
        f"it is in I/O for {format_latency(float(busiest['io_time']))}, the mean rank for "
        f"{format_latency(float(table['io_time'].mean()))}.",
        "Share the I/O out over more ranks (collective buffering, more aggregators), or let the other ranks "
        "compute on while this one writes.",
        table.reset_index(),
    )
