"""Where files are accessed: at random, off the storage's units, again and again, and after whom."""

from __future__ import annotations

from collections.abc import Iterator

from tiercel.pages.words import count, percent
from tiercel.traces.analysis.tally import SMALL
from tiercel.traces.findings.base import ENOUGH_BYTES, Case, Finding, kinds, of_ranks, rules
from tiercel.traces.findings.base import top as most
from tiercel.units import format_size

#: Drishti's limit for random operations; some jumps (a header, a new phase) are in every program.
RANDOM = 0.2
#: Fewer jumps than this cost little.
ENOUGH = 100
#: Drishti's limit: a tenth of the requests not aligned to the file system's unit.
MISALIGNED = 0.1
#: Of a file of one process, the kernel gathers small transfers that come one after the other, if so many do.
GATHERED = 0.5
#: Fewer transfers off the unit than this are a header and a tail.
ENOUGH_OFF = 20
#: A file read more than once and a half over is read again; less may be a header.
AGAIN = 0.5
#: Of the bytes read, so much that another process has just written.
OF_OTHERS = 0.1


@rules.register("random-access")
def random_access(case: Case) -> Iterator[Finding]:
    """Accesses that jump about in large files."""
    for kind, rows, calls, moved, time in kinds(case.low):
        files = rows.groupby("file")[[calls, moved, time]].sum().join(case.places, how="inner")
        placed, jumps = files[f"placed_{kind}s"], files[f"random_{kind}s"]
        mean = files[moved] / files[calls]
        files = files.assign(jumps=jumps, mean_size=mean, part=jumps / placed.where(placed > 0))
        # A file that one read would hold is soon in memory, whatever the order.
        large = case.extents.reindex(files.index) >= ENOUGH_BYTES
        files = files[(files["part"] >= RANDOM) & (mean < case.storage.stripe) & large]
        total, every = int(files["jumps"].sum()), int(files[f"placed_{kind}s"].sum())
        if total < ENOUGH:
            continue
        seconds = case.lost(files.index, files[time] * files["part"], files[moved] * files["part"])
        shared = files.index.isin(case.shared["file"])
        whose = "shared by several ranks" if shared.all() else "of one rank each" if not shared.any() else ""
        whose = whose if case.ranks else ""
        yield from case.says(
            "random-access", seconds,
            f"{total:,} of {every:,} {kind}s ({percent(total / every)}) of {count(len(files), 'file')}"
            f"{' ' if whose else ''}{whose} jump backwards, "
            f"{format_size(float(files[moved].sum() / files[calls].sum()))} at a time, less than a stripe "
            f"({format_size(case.storage.stripe)}): {case.costs(seconds)} at most.",
            "Sort accesses by offset, read whole blocks and pick from memory, use collective MPI-IO, or put "
            "these files on node-local flash or a burst buffer (PrismIO, 2023: random access favours them).",
            files[["jumps", calls, moved, time, "mean_size"]]
            .sort_values("jumps", ascending=False, kind="stable").reset_index(),
        )  # fmt: skip


@rules.register("misaligned")
def misaligned(case: Case) -> Iterator[Finding]:
    """Accesses that begin off the file system's blocks."""
    known = case.low[case.low["not_aligned"].notna() & (case.low["alignment"] > 1)]
    if float(known["not_aligned"].sum()) < ENOUGH_OFF:
        return
    places = case.places
    one_by_one = (places["consecutive_reads"] + places["consecutive_writes"]) >= GATHERED * (
        places["placed_reads"] + places["placed_writes"]
    )
    calls = known["reads"] + known["writes"]
    gathered = known["file"].isin(places.index[one_by_one]) & ~known["file"].isin(case.shared["file"])
    gathered &= known["bytes_read"] + known["bytes_written"] < SMALL / 2 * calls
    rows = known[~gathered & (known["not_aligned"] >= MISALIGNED * calls)]
    every, off = float((rows["reads"] + rows["writes"]).sum()), float(rows["not_aligned"].sum())
    if off < ENOUGH_OFF:
        return
    part = rows["not_aligned"] / (rows["reads"] + rows["writes"])
    moved = rows["bytes_read"] + rows["bytes_written"]
    seconds = case.lost(rows["file"], (rows["read_time"] + rows["write_time"]) * part, moved * part)
    unit = int(rows.sort_values("not_aligned", ascending=False)["alignment"].iloc[0])
    yield from case.says(
        "misaligned", seconds,
        f"{int(off):,} of {int(every):,} reads and writes ({percent(off / every)}) do not begin at a "
        f"multiple of the file system's unit ({format_size(unit)}): {case.costs(seconds)} at most.",
        "Align each process's part of a file to the unit (HDF5: H5Pset_alignment; MPI-IO: "
        "striping_unit), or let collective buffering do so.",
        most(rows, "not_aligned", ("not_aligned", "reads", "writes", "read_time", "write_time")),
    )  # fmt: skip


@rules.register("read-again")
def read_again(case: Case) -> Iterator[Finding]:
    """Bytes that are read more often than once."""
    files = case.low.groupby("file")[["bytes_read", "read_time"]].sum().join(case.places, how="inner")
    needless = files["read_again"]
    files = files[(needless >= ENOUGH_BYTES) & (needless >= AGAIN * (files["bytes_read"] - needless))]
    if files.empty:
        return
    once = files["bytes_read"] - files["read_again"]
    files = files.assign(once=once, times=files["bytes_read"] / once.clip(lower=1))
    seconds = case.lost(files.index, files["read_time"] * files["read_again"] / files["bytes_read"])
    worst = files.sort_values("read_time", ascending=False, kind="stable")
    yield from case.says(
        "read-again", seconds,
        f"{count(len(files), 'file')} read more often than once over: "
        f"{format_size(float(files['bytes_read'].sum()))} of {format_size(float(once.sum()))} "
        f"({worst['times'].iloc[0]:.3g} times {worst.index[0]}): {case.costs(seconds)} for what had been "
        "read before.",
        "Read once and broadcast (MPI_Bcast, one reader a node), keep it in memory between steps, or cache "
        f"it on node-local storage (cachevol for HDF5): {format_size(float(files['read_again'].sum()))} need "
        "not come from the shared storage.",
        worst[["bytes_read", "once", "times", "read_time"]].reset_index(),
    )  # fmt: skip


@rules.register("read-after-write")
@of_ranks
def read_after_write(case: Case) -> Iterator[Finding]:
    """What one rank reads, another has just written: on several nodes its cache is of no use."""
    files = case.low.groupby("file")[["bytes_read", "read_time"]].sum().join(case.places, how="inner")
    files = files[files["read_of_others"] >= ENOUGH_BYTES]
    moved, read = float(files["read_of_others"].sum()), float(case.low["bytes_read"].sum())
    if not moved or moved < OF_OTHERS * read:
        return
    seconds = float((files["read_time"] * files["read_of_others"] / files["bytes_read"]).sum())
    yield from case.says(
        "read-after-write", seconds,
        f"{format_size(moved)} ({percent(moved / read)} of what is read) are read by another process than "
        f"wrote them, from {count(len(files), 'file')}: {case.costs(seconds)}. On several nodes the writer's "
        "data must reach the storage first.",
        "Send it (MPI) instead of a file, let the rank read that wrote it, or keep both on one node and the "
        "file on its local storage.",
        files[["read_of_others", "bytes_read", "read_time"]]
        .sort_values("read_of_others", ascending=False, kind="stable").reset_index(),
    )  # fmt: skip
