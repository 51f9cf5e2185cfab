"""Reads that never reached the medium: true for the application, wrong as a measure of the storage."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tiercel.pages.words import count, percent
from tiercel.traces.findings.base import ENOUGH_BYTES, Case, Finding, Severity, rules, top
from tiercel.units import format_bandwidth, format_latency, format_size

#: No medium answers a read in less: the quickest (3D XPoint) needs some 10 µs, common NVMe 50 to 100 µs,
#: another node's storage a network round trip on top.
LATENCY = 10e-6
#: No single device feeds one call faster: four lanes of PCIe 5 carry 15.8 GB/s.
BANDWIDTH = 15.8e9
#: This part of the bytes has to come that fast before the phase is called cached.
SHARE = 0.5


@rules.register("cached-reads")
def cached_reads(case: Case) -> Iterator[Finding]:
    """Reads faster than the storage can be: they came from the page cache."""
    if case.events:
        yield from _by_event(case)
    else:
        yield from _by_file(case)


_ADVICE = (
    "Do not take these reads for the storage's speed. For a cold number evict first (iokernel --evict), read "
    "with O_DIRECT, read another node's data, or more data than the nodes' memory holds."
)


def _by_file(case: Case) -> Iterator[Finding]:
    """With counters the mean read of a file tells, where even that is faster than a medium."""
    rows = case.low[(case.low["bytes_read"] > 0) & (case.low["read_time"] > 0)]
    fast = rows[rows["read_time"] < rows["reads"] * LATENCY + rows["bytes_read"] / BANDWIDTH]
    moved, fast_bytes = float(rows["bytes_read"].sum()), float(fast["bytes_read"].sum())
    if moved < ENOUGH_BYTES or fast_bytes < SHARE * moved:
        return
    yield Finding(
        "cached-reads", _severity(case, fast.groupby("file")["bytes_read"].sum()),
        f"{percent(fast_bytes / moved)} of {format_size(moved)} are in files whose mean read came faster "
        f"than any medium answers ({_MEDIUM}): from memory, by the page cache or read-ahead.",
        _ADVICE,
        top(fast, "bytes_read", ("bytes_read", "reads", "read_time")),
    )  # fmt: skip


def _severity(case: Case, files: pd.Series) -> Severity:
    """Return how much it matters that reads of `files` (cached bytes by file) are no measure of the storage.

    It does where the program itself had just moved the same bytes, or where reads take time; little where it
    is an input that somebody read before.
    """
    low = case.low.groupby("file")[["bytes_read", "bytes_written"]].sum()
    again = case.places["read_again"].reindex(low.index).fillna(0)
    own = low.index[(low["bytes_written"] >= low["bytes_read"] / 2) | (again >= low["bytes_read"] / 2)]
    mine = float(files[files.index.isin(own)].sum()) >= SHARE * float(files.sum())
    spent = case.low[["read_time", "write_time"]].sum().sum() if mine else case.low["read_time"].sum()
    return "note" if case.severity(float(spent)) == "note" else "hint"


_MEDIUM = f"{format_latency(LATENCY)} plus the time on four PCIe 5 lanes"


def _by_event(case: Case) -> Iterator[Finding]:
    fast = f"duration < {LATENCY!r} + size / {BANDWIDTH!r}"
    table = case.frame.query(
        "SELECT file, count(*) AS reads, sum(size)::BIGINT AS bytes, sum(duration) AS time, "
        f"coalesce(sum(size) FILTER ({fast}), 0)::BIGINT AS fast_bytes, median(duration) AS median_duration, "
        'max(time + duration) - min(time) AS span, max("offset" + size)::BIGINT AS extent '
        f"FROM events WHERE kind = 'read' AND size > 0 AND file IS NOT NULL AND api = '{case.layer}' "
        "GROUP BY file ORDER BY fast_bytes DESC, file"
    )
    moved, fast_bytes = int(table["bytes"].sum()), int(table["fast_bytes"].sum())
    if moved < ENOUGH_BYTES:
        return
    whole = case.frame.query(
        "SELECT max(time + duration) - min(time) AS span FROM events WHERE kind = 'read' AND size > 0 "
        f"AND file IS NOT NULL AND api = '{case.layer}'"
    )
    span = float(whole["span"].iloc[0])
    limit = case.storage.read_bandwidth
    if limit is not None and span > 0 and moved / span > limit:
        yield Finding(
            "cached-reads",
            "problem",
            f"{format_size(moved)} were read in {format_latency(span)}: {format_bandwidth(moved / span)}, "
            f"{moved / span / limit:.3g} times what the storage delivers ({format_bandwidth(limit)}). The "
            "rest came from memory.",
            _ADVICE,
            table,
        )
    elif fast_bytes >= SHARE * moved:
        reads = int(table["reads"].sum())
        yield Finding(
            "cached-reads",
            _severity(case, table.set_index("file")["fast_bytes"]),
            f"{percent(fast_bytes / moved)} of {format_size(moved)} in {reads:,} reads came faster than any "
            f"medium answers ({_MEDIUM}): from memory, by the page cache or read-ahead.",
            _ADVICE,
            table[table["fast_bytes"] > 0].reset_index(drop=True),
        )


@rules.register("mapped")
def mapped(case: Case) -> Iterator[Finding]:
    """Files that are mapped into memory: what is moved there is in no call."""
    rows = case.low[case.low["maps"] > 0]
    if rows.empty:
        return
    yield Finding(
        "mapped", "note",
        f"{count(rows['file'].nunique(), 'file')} mapped into memory, {int(rows['maps'].sum()):,} times: "
        "what is read and written there is in no counter.",
        "Take bytes and times here for a lower bound; strace and Darshan see none of it.",
        top(rows, "maps", ("maps", "opens")),
    )  # fmt: skip
