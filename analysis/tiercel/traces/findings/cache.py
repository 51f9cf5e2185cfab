"""Reads that never reached the medium: true for the application, wrong as a measure of the storage."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.traces.findings.base import Case, Finding, percent, rules
from tiercel.units import format_bandwidth, format_latency, format_size

#: No medium answers a read in less: the quickest (3D XPoint) needs some 10 µs, common NVMe 50 to 100 µs,
#: another node's storage a network round trip on top.
LATENCY = 10e-6
#: No single device feeds one call faster: four lanes of PCIe 5 carry 15.8 GB/s.
BANDWIDTH = 15.8e9
#: This part of the bytes has to come that fast before the phase is called cached.
SHARE = 0.5
#: Fewer bytes say nothing of a phase.
ENOUGH_BYTES = 1 << 20


@rules.register("cached-reads")
def cached_reads(case: Case) -> Iterator[Finding]:
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
    advice = (
        "Do not take these reads for the storage's speed. For a cold number evict first (iokernel --evict), "
        "read with O_DIRECT, read another node's data, or more data than the nodes' memory holds."
    )
    if limit is not None and span > 0 and moved / span > limit:
        yield Finding(
            "cached-reads",
            "problem",
            f"{format_size(moved)} were read in {format_latency(span)}: {format_bandwidth(moved / span)}, "
            f"{moved / span / limit:.3g} times what the storage delivers ({format_bandwidth(limit)}). The "
            "rest came from memory.",
            advice,
            table,
        )
    elif fast_bytes >= SHARE * moved:
        reads = int(table["reads"].sum())
        yield Finding(
            "cached-reads",
            "hint",
            f"{percent(fast_bytes / moved)} of {format_size(moved)} in {reads:,} reads came faster than any "
            f"medium answers ({format_latency(LATENCY)} plus the time on four PCIe 5 lanes): from memory, by "
            "the page cache or read-ahead.",
            advice,
            table[table["fast_bytes"] > 0].reset_index(drop=True),
        )
