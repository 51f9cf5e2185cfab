"""Files that several ranks share: who meets whom in a stripe, and on how many servers they lie."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tiercel.pages.words import count, percent
from tiercel.traces.findings.base import Case, Finding, of_ranks, rules, top
from tiercel.units import format_latency, format_size

#: This part of a file's writes meets another rank's write in the same stripe: locks keep changing hands.
SHARE = 0.1
ENOUGH = 10
#: Writes of a file of which this part lie in turn with others', or jump about, come from ranks by turns.
BY_TURNS = 0.5
#: Bytes from which a shared file deserves more than one server.
WIDE = 1 << 30
_MANY = 4


@rules.register("shared-file-contention")
@of_ranks
def contention(case: Case) -> Iterator[Finding]:
    """Ranks write pieces of a shared file so close together that they wait for its locks."""
    yield from _met(case) if case.events else _interleaved(case)


def _met(case: Case) -> Iterator[Finding]:
    """Compare each write with the one before it (in time) in the same stripe of the same file.

    A write counts by its first stripe. Two meet when they are of unlike ranks, and the first has not ended
    when the second begins. Both wait, so they are compared with writes that meet none.
    """
    stripe = case.storage.stripe
    table = case.frame.query(
        ", writes AS (SELECT file, rank, duration, "
        "coalesce(lag(rank) OVER same <> rank AND lag(time + duration) OVER same > time, FALSE) AS late, "
        "coalesce(lead(rank) OVER same <> rank AND lead(time) OVER same < time + duration, FALSE) AS early "
        "FROM events WHERE kind = 'write' AND size > 0 "
        f"AND \"offset\" IS NOT NULL AND file IS NOT NULL AND api = '{case.layer}' "
        f'WINDOW same AS (PARTITION BY file, "offset" // {stripe} ORDER BY time, rank)) '
        "SELECT file, count(*) AS writes, count(DISTINCT rank) AS ranks, "
        "count(*) FILTER (late) AS met, sum(duration) FILTER (late OR early) AS met_time, "
        "count(*) FILTER (late OR early) AS both, "
        "avg(duration) FILTER (NOT late AND NOT early) AS other_time "
        "FROM writes GROUP BY file HAVING ranks > 1 ORDER BY met DESC, file"
    )
    table = table[(table["met"] >= ENOUGH) & (table["met"] >= SHARE * table["writes"])].reset_index(drop=True)
    if table.empty:
        return
    first = table.iloc[0]
    each, other = float(first["met_time"]) / float(first["both"]), float(first["other_time"])
    met, writes = int(table["met"].sum()), int(table["writes"].sum())
    compared = (
        f"; in {first['file']} they take {format_latency(each)}, the others {format_latency(other)}"
        if math.isfinite(other)
        else ""
    )
    # What they take beyond the others is lost. Where most meet, the others have just missed each other and
    # are no measure: then at most all of it.
    without = (table["both"] * table["other_time"].fillna(0)).where(table["both"] <= table["writes"] / 2, 0)
    seconds = case.lost(table["file"], (table["met_time"] - without).clip(lower=0))
    yield from case.says(
        "shared-file-contention", seconds,
        f"{met:,} of {writes:,} writes ({percent(met / writes)}) to {count(len(table), 'shared file')} start "
        f"while another rank writes in the same {format_size(stripe)}{compared}: "
        f"{case.costs(seconds)} at most.",
        _APART,
        table,
    )  # fmt: skip


_APART = (
    "Align each rank's part to the stripe, use collective MPI-IO (one writer a stripe), or one file for each "
    "process or node."
)


def _interleaved(case: Case) -> Iterator[Finding]:
    """Counters do not tell who met whom, but where ranks write by turns, less than a stripe at a time: no
    more than a hint."""
    rows = case.shared[case.shared["writes"] > 0]
    files = rows.groupby("file")[["writes", "bytes_written", "write_time"]].sum().join(case.places)
    mean = files["bytes_written"] / files["writes"]
    apart = files["turns_writes"] + files["random_writes"] >= BY_TURNS * files["placed_writes"]
    apart &= files["placed_writes"] > 0
    several = files["writes"] >= ENOUGH * (case.ranks or 2)
    files = files[apart & several & (mean < case.storage.stripe)]
    if files.empty:
        return
    seconds = case.lost(files.index, files["write_time"])
    writes = int(files["writes"].sum())
    yield from case.says(
        "shared-file-contention", seconds,
        f"{writes:,} writes to {count(len(files), 'shared file')} are smaller than a stripe "
        f"({format_size(case.storage.stripe)}) and lie between each other: where ranks write in the same "
        f"stripes at once, its locks change hands: {case.costs(seconds)} at most.",
        _APART,
        files[["writes", "bytes_written", "write_time"]]
        .sort_values("write_time", ascending=False, kind="stable").reset_index(),
        sure=False,
    )  # fmt: skip


@rules.register("narrow-stripes")
@of_ranks
def narrow_stripes(case: Case) -> Iterator[Finding]:
    """A large file of many ranks on one server (Darshan's module LUSTRE)."""
    stripes = case.frame.metadata.get("stripes") or {}
    if not stripes or (case.ranks or 0) < _MANY:
        return
    rows = case.shared.assign(moved=case.shared["bytes_read"] + case.shared["bytes_written"])
    rows = rows[rows["file"].map(lambda file: stripes.get(file, {}).get("width", 0)) == 1]
    files = rows.groupby("file")["moved"].sum()
    rows = rows[rows["file"].isin(files.index[files >= WIDE])]
    if rows.empty:
        return
    seconds = case.held_up(rows)
    yield from case.says(
        "narrow-stripes", seconds,
        f"{count(rows['file'].nunique(), 'shared file')} of {case.ranks:,} ranks "
        f"({format_size(float(rows['moved'].sum()))}) on one storage target each: "
        f"{case.costs(seconds)} at most.",
        "Stripe the folder before the file is made (lfs setstripe -c 8 or more): every target adds its "
        "bandwidth.",
        top(rows, "moved", ("moved", "read_time", "write_time")),
    )  # fmt: skip
