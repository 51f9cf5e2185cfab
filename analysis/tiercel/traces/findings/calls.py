"""Many calls that move little, or nothing: small transfers, stdio, metadata, opens, fsync."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tiercel.pages.words import count, percent
from tiercel.traces.analysis.tally import SMALL
from tiercel.traces.findings.base import ENOUGH_BYTES, Case, Finding, kinds, rules, top
from tiercel.units import format_latency, format_size

#: Drishti speaks up when a tenth of the requests are small (below 1 MiB); fewer are seldom worth a change.
SMALL_CALLS = 0.1
#: Small transfers matter when they take a good part of the time in reads and writes.
SMALL_TIME = 0.3
#: Calls for each opening with which a small file is read or written as a whole.
FEW = 4
#: Fewer calls than this cost nothing that would be noticed, whatever their size.
ENOUGH_CALLS = 100
#: Paper 003 (section VI.A) found a sick run by 37.8 % of its I/O time in metadata.
METADATA_TIME = 0.3
ENOUGH_METADATA = 10
#: A file opened so often by each of its processes is opened in a loop.
OPENS_EACH = 10
ENOUGH_OPENS = 100
#: One sync in ten writes or more: with a sync for each checkpoint it is one in hundreds.
SYNCS_PER_WRITE = 0.1
ENOUGH_SYNCS = 10
#: A sync after more than this (B) is a checkpoint's: its bytes have to reach the medium anyway.
CHECKPOINT = 4 << 20
#: Syncs are a storm when they take this part of the time to write and sync.
SYNC_TIME = 0.2
#: Drishti's limit for buffered I/O: a tenth of the bytes through stdio.
STDIO = 0.1


@rules.register("small-transfers")
def small_transfers(case: Case) -> Iterator[Finding]:
    """Many reads or writes of few bytes each."""
    # What goes through stdio is gathered in its buffer: another rule's.
    for kind, rows, calls, moved, time in kinds(case.low[case.low["api"] != "stdio"]):
        known = rows[rows[f"small_{kind}s"].notna()]
        small, every = known[f"small_{kind}s"], int(known[calls].sum())
        count, small_time = int(small.sum()), known[f"small_{kind}_time"]
        if count < ENOUGH_CALLS or count < SMALL_CALLS * every:
            continue
        whole, took = float(known[time].sum()), float(small_time.sum())
        if took <= 0 or took < SMALL_TIME * whole:
            continue
        small_bytes = known[f"small_{kind}_bytes"]
        if float(small_bytes.sum()) >= SMALL / 2 * count:
            continue  # nearly 1 MiB each
        seconds = case.lost(known["file"], small_time, small_bytes)
        yield from case.says(
            "small-transfers", seconds,
            f"{count:,} of {every:,} {kind}s move less than {format_size(SMALL)} (on average "
            f"{format_size(float(known[moved].sum()) / every)}) and take {percent(took / whole)} of the time "
            f"in {kind}s, {format_latency(took / count)} each: {case.costs(seconds)} at most.",
            _SMALL_FILES if _whole_files(case, known, small) else _GATHER,
            top(known[small > 0], f"small_{kind}_time",
                (calls, f"small_{kind}s", f"small_{kind}_time", moved, time)),
        )  # fmt: skip


_GATHER = (
    "Gather them: a larger buffer or transfer size, collective MPI-IO, HDF5 chunks and chunk cache of the "
    "size of an access, or a node-local layer that writes larger blocks."
)
_SMALL_FILES = (
    "Most of these are whole files, which no buffer makes larger: keep many small files in one container "
    "(HDF5, tar, TFRecord, a squashed image of an environment), or on node-local storage."
)


def _whole_files(case: Case, rows: pd.DataFrame, small: pd.Series) -> bool:
    """Say whether most small calls move small files as a whole, in a few calls each time they are opened."""
    extent = case.extents.reindex(rows["file"]).to_numpy()
    few = rows["reads"] + rows["writes"] <= FEW * rows["opens"].clip(lower=1)
    return float(small[few & (extent < SMALL)].sum()) > float(small.sum()) / 2


@rules.register("stdio")
def stdio(case: Case) -> Iterator[Finding]:
    """Bulk data through a stream, in pieces that its buffer cuts to 4 KiB."""
    moved = case.low.assign(moved=case.low["bytes_read"] + case.low["bytes_written"])
    rows = moved[moved["api"] == "stdio"]
    through, every = float(rows["moved"].sum()), float(moved["moved"].sum())
    calls = float((rows["reads"] + rows["writes"]).sum())
    # A stream passes on at once what is as large as its buffer.
    if through < ENOUGH_BYTES or through < STDIO * every or through >= SMALL * calls:
        return
    data = case.lost(rows["file"], rows["read_time"] + rows["write_time"], rows["moved"])
    seconds = data + float(rows["metadata_time"].sum())
    yield from case.says(
        "stdio", seconds,
        f"{percent(through / every)} of the bytes ({format_size(through)}) move through stdio (fread, "
        f"fprintf), {format_size(through / calls)} at a time: {case.costs(seconds)}.",
        "For bulk data use POSIX or MPI-IO with large transfers, or give the stream a large buffer "
        "(setvbuf); stdio's own is 4 KiB.",
        top(rows, "moved", ("moved", "reads", "writes", "read_time", "write_time")),
    )  # fmt: skip


@rules.register("metadata-bound")
def metadata_bound(case: Case) -> Iterator[Finding]:
    """Most of the time in I/O goes to metadata, not to data."""
    low = case.low
    metadata = float(low["metadata_time"].sum())
    whole = float(low[["metadata_time", "read_time", "write_time", "sync_time"]].sum().sum())
    calls = int(low["metadata_calls"].sum())
    if calls < ENOUGH_METADATA or metadata <= 0 or metadata < METADATA_TIME * whole:
        return
    counts = ("opens", "stats", "seeks", "syncs", "flushes")
    yield from case.says(
        "metadata-bound", metadata,
        f"{percent(metadata / whole)} of the I/O time goes to metadata: {calls:,} calls on "
        f"{low['file'].nunique():,} files, {_most(case)}: {case.costs(metadata)}.",
        "Open fewer files and open them once; spread files over folders (one each process); keep many small "
        "files in one container (HDF5, tar, TFRecord); put scratch files on node-local storage.",
        top(low, "metadata_time", ("metadata_time", "metadata_calls", *counts)),
    )  # fmt: skip


def _most(case: Case) -> str:
    """Say which call takes most of the time, where that is known, else which is commonest."""
    if (case.low["sync_time"]).isna().any():  # from counters
        counts = {c: int(case.low[c].sum()) for c in ("opens", "stats", "seeks", "syncs", "flushes")}
        most = max(counts, key=lambda each: counts[each])
        return f"{counts[most]:,} of them {most}"
    first = case.frame.query(
        "SELECT function, count(*) AS calls, sum(duration) AS time, max(duration) AS longest FROM events "
        "WHERE kind = 'metadata' GROUP BY function ORDER BY time DESC, function LIMIT 1"
    ).iloc[0]
    return (
        f"most of it in {first['function']} ({int(first['calls']):,} calls, "
        f"{format_latency(float(first['time']))} in sum, at most {format_latency(float(first['longest']))})"
    )


@rules.register("open-storm")
def open_storm(case: Case) -> Iterator[Finding]:
    """Files that are opened over and over."""
    each = pd.Series(1, case.low.index).where(case.low["rank"] >= 0, case.ranks or 1)
    rows = case.low[(case.low["opens"] >= OPENS_EACH * each)]
    opens = int(rows["opens"].sum())
    if opens < ENOUGH_OPENS:
        return
    seconds = float(rows["metadata_time"].sum())
    yield from case.says(
        "open-storm", seconds,
        f"{count(rows['file'].nunique(), 'file')} opened {opens:,} times, {OPENS_EACH} times or more by each "
        f"process that uses them: {case.costs(seconds)} of metadata on them.",
        "Open once and keep the file open; with many files keep a pool of open ones.",
        top(rows, "opens", ("opens", "metadata_time")),
    )  # fmt: skip


@rules.register("fsync-storm")
def fsync_storm(case: Case) -> Iterator[Finding]:
    """Syncs so often that the medium is waited for again and again."""
    rows = case.low[case.low["syncs"] + case.low["synced_writes"] > 0]
    by_flag, writes = int(rows["synced_writes"].sum()), int(rows["writes"].sum())
    syncs = int(rows["syncs"].sum()) + by_flag
    written = float(rows["bytes_written"].sum())
    if syncs < ENOUGH_SYNCS or syncs < SYNCS_PER_WRITE * writes or written > CHECKPOINT * syncs:
        return
    known = bool(rows["sync_time"].notna().all())
    sync_time = float((rows["sync_time"] + rows["synced_write_time"]).sum())
    write_time = float((rows["write_time"] - rows["synced_write_time"]).sum())
    both = sync_time + write_time
    if both <= 0 or (known and sync_time < SYNC_TIME * both):
        return
    seconds = sync_time if known else both
    each = format_size(written / syncs)
    what = (
        f"they take {percent(sync_time / both)} of the time to write and sync, "
        f"{format_latency(sync_time / syncs)} each"
        if known
        else "writes and syncs of these files together take"  # Darshan does not tell them apart
    )
    yield from case.says(
        "fsync-storm", seconds,
        f"{syncs:,} syncs for {writes:,} writes{_flagged(by_flag)}, one after {each} on average; {what}: "
        f"{case.costs(seconds)}.",
        "Sync once at the end of a checkpoint instead of after each write, or write to a burst buffer or "
        "node-local storage with power-loss protection, where a sync costs little.",
        top(rows.assign(syncs=rows["syncs"] + rows["synced_writes"]), "syncs",
            ("syncs", "synced_writes", "writes", "bytes_written", "write_time", "sync_time")),
    )  # fmt: skip


def _flagged(writes: int) -> str:
    return f" ({writes:,} are writes of files opened with O_SYNC or O_DSYNC)" if writes else ""
