"""Ranks that write to the same piece of a shared file at the same time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tiercel.traces.findings.base import Case, Finding, percent, rules
from tiercel.units import format_latency, format_size

#: This part of a file's writes meets another rank's write in the same stripe: locks keep changing hands.
SHARE = 0.1
ENOUGH = 10


@rules.register("shared-file-contention")
def contention(case: Case) -> Iterator[Finding]:
    """Compare each write with the one before it (in time) in the same stripe of the same file.

    A write counts by its first stripe. It meets another when that one is of another rank and has not ended.
    """
    stripe = case.storage.stripe
    table = case.frame.query(
        ", writes AS (SELECT file, rank, time, duration, lag(rank) OVER same AS before, "
        "lag(time + duration) OVER same AS until FROM events WHERE kind = 'write' AND size > 0 "
        f"AND \"offset\" IS NOT NULL AND file IS NOT NULL AND api = '{case.layer}' "
        f'WINDOW same AS (PARTITION BY file, "offset" // {stripe} ORDER BY time, rank)) '
        "SELECT file, count(*) AS writes, count(DISTINCT rank) AS ranks, "
        "count(*) FILTER (before <> rank AND until > time) AS met, "
        "avg(duration) FILTER (before <> rank AND until > time) AS met_time, "
        "avg(duration) FILTER (NOT coalesce(before <> rank AND until > time, FALSE)) AS other_time "
        "FROM writes GROUP BY file HAVING ranks > 1 ORDER BY met DESC, file"
    )
    table = table[(table["met"] >= ENOUGH) & (table["met"] >= SHARE * table["writes"])].reset_index(drop=True)
    if table.empty:
        return
    first = table.iloc[0]
    slower = float(first["met_time"]) / float(first["other_time"]) if first["other_time"] else float("nan")
    met, writes = int(table["met"].sum()), int(table["writes"].sum())
    compared = (
        f"; in {first['file']} they take {format_latency(float(first['met_time']))}, the others "
        f"{format_latency(float(first['other_time']))}"
        if math.isfinite(slower)
        else ""
    )
    yield Finding(
        "shared-file-contention",
        "problem" if slower >= 1.5 else "hint",
        f"{met:,} of {writes:,} writes ({percent(met / writes)}) to {len(table)} shared file(s) start while "
        f"another rank writes in the same {format_size(stripe)}{compared}.",
        "Align each rank's part to the stripe, use collective MPI-IO (one writer a stripe), or one file "
        "for each process or node.",
        table,
    )
