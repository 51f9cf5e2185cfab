"""Many calls that move little, or nothing: small transfers, metadata, fsync."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.traces.findings.base import WORTH, Case, Finding, percent, rules
from tiercel.units import format_latency, format_size

#: A transfer below 1 MiB is small: below the stripe of Lustre and the block of GPFS, and the limit that
#: Drishti uses. Below it, what a request costs by itself (a round trip) weighs more than its bytes.
SMALL = 1 << 20
#: Drishti speaks up when a tenth of the requests are small; fewer are seldom worth a change.
SMALL_CALLS = 0.1
#: Small transfers matter when they take a good part of the time in reads and writes.
SMALL_TIME = 0.3
#: Fewer calls than this cost nothing that would be noticed, whatever their size.
ENOUGH_CALLS = 100
#: Paper 003 (section VI.A) found a sick run by 37.8 % of its I/O time in metadata.
METADATA_TIME = 0.3
ENOUGH_METADATA = 10
#: One sync in ten writes or more: with a sync for each checkpoint it is one in hundreds.
SYNCS_PER_WRITE = 0.1
ENOUGH_SYNCS = 10
#: Syncs are a storm when they take this part of the time to write and sync.
SYNC_TIME = 0.2


@rules.register("small-transfers")
def small_transfers(case: Case) -> Iterator[Finding]:
    table = case.frame.query(
        "SELECT file, kind, count(*) AS calls, sum(duration) AS time, "
        f"count(*) FILTER (size < {SMALL}) AS small_calls, "
        f"coalesce(sum(duration) FILTER (size < {SMALL}), 0.0) AS small_time, "
        "coalesce(sum(size), 0)::BIGINT AS bytes, median(size) AS median_size "
        f"FROM events WHERE kind IN ('read', 'write') AND size > 0 AND api = '{case.layer}' "
        "GROUP BY file, kind ORDER BY small_time DESC, file, kind"
    )
    for kind, rows in table.groupby("kind", observed=True, sort=False):
        calls, small = int(rows["calls"].sum()), int(rows["small_calls"].sum())
        time, small_time = float(rows["time"].sum()), float(rows["small_time"].sum())
        if (
            small < ENOUGH_CALLS
            or small < SMALL_CALLS * calls
            or small_time < WORTH
            or small_time < SMALL_TIME * time
        ):
            continue
        moved = int(rows["bytes"].sum())
        yield Finding(
            "small-transfers",
            "problem" if small_time >= 0.5 * time else "hint",
            f"{small:,} of {calls:,} {kind}s move less than {format_size(SMALL)} (on average "
            f"{format_size(moved / calls)}) and take {percent(small_time / time)} of the time in {kind}s, "
            f"{format_latency(small_time / small)} each.",
            "Gather them: a larger buffer or transfer size, collective MPI-IO, HDF5 chunks and chunk cache "
            "of the size of an access, or a node-local layer that writes larger blocks.",
            rows[rows["small_calls"] > 0].reset_index(drop=True),
        )


@rules.register("metadata-bound")
def metadata_bound(case: Case) -> Iterator[Finding]:
    table = case.frame.query(
        "SELECT function, kind, count(*) AS calls, sum(duration) AS time, max(duration) AS longest, "
        "count(DISTINCT file) AS files FROM events WHERE kind IN ('read', 'write', 'metadata', 'sync') "
        f"AND api = '{case.layer}' GROUP BY function, kind ORDER BY time DESC, function"
    )
    metadata = table[table["kind"] == "metadata"].reset_index(drop=True)
    whole, time, calls = (
        float(table["time"].sum()),
        float(metadata["time"].sum()),
        int(metadata["calls"].sum()),
    )
    if calls < ENOUGH_METADATA or time < WORTH or time < METADATA_TIME * whole:
        return
    first = metadata.iloc[0]
    yield Finding(
        "metadata-bound",
        "problem" if time >= 0.5 * whole else "hint",
        f"{percent(time / whole)} of the I/O time goes to metadata: {calls:,} calls, most of it in "
        f"{first['function']} ({int(first['calls']):,} calls, {format_latency(float(first['time']))} in sum, "
        f"at most {format_latency(float(first['longest']))}).",
        "Open fewer files and open them once; spread files over folders (one each process); keep many small "
        "files in one container (HDF5, tar, TFRecord); put scratch files on node-local storage.",
        metadata,
    )


@rules.register("fsync-storm")
def fsync_storm(case: Case) -> Iterator[Finding]:
    table = case.frame.query(
        "SELECT file, count(*) FILTER (kind = 'sync') AS syncs, count(*) FILTER (kind = 'write') AS writes, "
        "coalesce(sum(duration) FILTER (kind = 'sync'), 0.0) AS sync_time, "
        "coalesce(sum(duration) FILTER (kind = 'write'), 0.0) AS write_time, "
        "coalesce(sum(size) FILTER (kind = 'write'), 0)::BIGINT AS bytes "
        f"FROM events WHERE kind IN ('sync', 'write') AND api = '{case.layer}' GROUP BY file "
        "HAVING syncs > 0 ORDER BY sync_time DESC, file"
    )
    syncs, writes = int(table["syncs"].sum()), int(table["writes"].sum())
    sync_time, write_time = float(table["sync_time"].sum()), float(table["write_time"].sum())
    both = sync_time + write_time
    if (
        syncs < ENOUGH_SYNCS
        or syncs < SYNCS_PER_WRITE * writes
        or sync_time < WORTH
        or sync_time < SYNC_TIME * both
    ):
        return
    each = format_size(int(table["bytes"].sum()) / syncs)
    yield Finding(
        "fsync-storm",
        "problem" if sync_time >= 0.5 * both else "hint",
        f"{syncs:,} syncs for {writes:,} writes, one after {each} on average, take "
        f"{percent(sync_time / both)} of the time to write and sync, "
        f"{format_latency(sync_time / syncs)} each.",
        "Sync once at the end of a checkpoint instead of after each write, or write to a burst buffer or "
        "node-local storage with power-loss protection, where a sync costs little.",
        table,
    )
