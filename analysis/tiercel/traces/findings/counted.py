"""Findings from counters, where a log holds no events, or holds them for reads and writes alone (Darshan).

The same rules as those from events where both can tell, by the same names and thresholds; and some that only
counters tell. A rule here is a function from a `Counted` to findings, under ``@counted_rules.register``.

Severity is by the time that the pattern costs: its calls' part of the time in calls, as a share of what all
processes had (run time times ranks). A pattern that costs nothing is a note, however strong. References:
Drishti's triggers (S. Bez et al., ISC 2023; thresholds of its trigger list), Darshan's documentation, and the
papers that the rules of the same names cite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from tiercel.registry import Registry
from tiercel.traces.analysis.counters import counted, lowest
from tiercel.traces.findings.access import RANDOM
from tiercel.traces.findings.balance import UNEVEN
from tiercel.traces.findings.base import WORTH, Finding, Severity, percent
from tiercel.traces.findings.calls import (
    ENOUGH_CALLS,
    ENOUGH_METADATA,
    ENOUGH_SYNCS,
    METADATA_TIME,
    SMALL_CALLS,
    SYNCS_PER_WRITE,
)
from tiercel.units import format_latency, format_size

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Shares of the processes' time from which a pattern is a problem, and a hint.
PROBLEM, HINT = 0.05, 0.005
#: Drishti's limit: a tenth of the requests not aligned to the file system's unit.
MISALIGNED = 0.1
#: A file read more than once and a half over is read again; less may be a header.
AGAIN = 1.5
#: Bytes below which nothing is worth reading less of.
ENOUGH_BYTES = 1 << 20
#: A file opened so often by each of its processes is opened in a loop.
OPENS_EACH = 10
ENOUGH_OPENS = 100
#: Drishti's limit for buffered I/O: a tenth of the bytes through stdio.
STDIO = 0.1
#: One rank of several that writes this part of all bytes writes for the others.
SINGLE_WRITER = 0.9
#: Of the fastest and the slowest of many ranks with the same to do, one is by chance twice as slow.
SLOW = 2.0
#: Half of the MPI-IO calls on shared files being independent: collective buffering is not in use.
INDEPENDENT = 0.5


@dataclass(frozen=True)
class Counted:
    """What a rule looks at. `table`: see `analysis.counters.counted`; `low`: its lowest layers."""

    table: pd.DataFrame
    low: pd.DataFrame
    run: float | None = None
    ranks: int | None = None

    @property
    def shared(self) -> pd.DataFrame:
        """Rows of the lowest layers on files that several ranks used."""
        several = self.low.groupby("file")["rank"].transform("nunique") > 1
        return self.low[(self.low["rank"] < 0) | several]

    def share(self, seconds: float) -> float | None:
        """Return seconds in calls, over all ranks, as a share of what all processes had; None: not known."""
        return seconds / (self.run * self.ranks) if self.run and self.ranks else None

    def severity(self, seconds: float) -> Severity:
        """Return how grave something is that costs so many seconds in calls, over all ranks."""
        share = self.share(seconds)
        if share is None:
            return "hint"
        return "problem" if share >= PROBLEM else "hint" if share >= HINT else "note"

    def says(
        self, rule: str, seconds: float, sentence: str, advice: str, evidence: pd.DataFrame
    ) -> Iterator[Finding]:
        """Yield a finding on something that costs so many seconds in calls over all ranks; none where that is
        not worth a word."""
        if seconds >= WORTH:
            yield Finding(
                rule, self.severity(seconds), sentence, advice, evidence, seconds, self.share(seconds)
            )

    def costs(self, seconds: float) -> str:
        """Return that as words."""
        share = self.share(seconds)
        whole = "" if share is None else f", {percent(share)} of the processes' time"
        return f"{format_latency(seconds)} in calls{whole}"


CountedRule = Callable[[Counted], Iterable[Finding]]
counted_rules: Registry[CountedRule] = Registry("finding rule on counters")


def explain_counters(frame: IOFrame, only: Iterable[str] | None = None) -> list[Finding]:
    """Return what the rules on counters (all, or those named by `only`) find, in their order."""
    table = counted(frame)
    if table.empty:
        return []
    ranks = frame.metadata.get("ranks")
    case = Counted(
        table, lowest(table), frame.metadata.get("run_time"),
        int(ranks) if ranks else None,
    )  # fmt: skip
    names = [n for n in counted_rules.names() if only is None or n in set(only)]
    return [finding for name in names for finding in counted_rules.get(name)(case)]


def _kinds(case: Counted) -> Iterator[tuple[str, pd.DataFrame, str, str, str]]:
    """Yield (kind, rows that did it, column of calls, of bytes, of time)."""
    for kind, calls, moved, time in (("read", "reads", "bytes_read", "read_time"),
                                     ("write", "writes", "bytes_written", "write_time")):  # fmt: skip
        rows = case.low[case.low[calls] > 0]
        if len(rows):
            yield kind, rows, calls, moved, time


def _top(rows: pd.DataFrame, by: str, columns: Iterable[str]) -> pd.DataFrame:
    """Return evidence: files with the most of something first."""
    names = list(columns)
    return rows.groupby(["file", "rank"], as_index=False)[names].sum().sort_values(by, ascending=False)


@counted_rules.register("small-transfers")
def small_transfers(case: Counted) -> Iterator[Finding]:
    for kind, rows, calls, moved, time in _kinds(case):
        column = f"small_{kind}s"
        known = rows[rows[column].notna()]
        small, every = int(known[column].sum()), int(known[calls].sum())
        if small < ENOUGH_CALLS or small < SMALL_CALLS * every:
            continue
        # Of each file and rank the small calls are taken for as long as the others: no more is known.
        seconds = float((known[time] * known[column] / known[calls]).sum())
        yield from case.says(
            "small-transfers", seconds,
            f"{small:,} of {every:,} {kind}s move less than 1 MiB (on average "
            f"{format_size(float(known[moved].sum()) / every)}): {case.costs(seconds)} at most.",
            "Gather them: a larger buffer or transfer size, collective MPI-IO, HDF5 chunks and chunk "
            "cache of the size of an access, or a node-local layer that writes larger blocks.",
            _top(known[known[column] > 0], time, (column, calls, moved, time)),
        )  # fmt: skip


@counted_rules.register("misaligned")
def misaligned(case: Counted) -> Iterator[Finding]:
    rows = case.low[case.low["not_aligned"].notna() & (case.low["alignment"] > 1)]
    every = float((rows["reads"] + rows["writes"]).sum())
    off = float(rows["not_aligned"].sum())
    if off < ENOUGH_CALLS or off < MISALIGNED * every:
        return
    time = (rows["read_time"] + rows["write_time"]) * rows["not_aligned"] / (rows["reads"] + rows["writes"])
    seconds = float(time.fillna(0).sum())
    unit = int(rows.sort_values("not_aligned", ascending=False)["alignment"].iloc[0])
    yield from case.says(
        "misaligned", seconds,
        f"{int(off):,} of {int(every):,} reads and writes ({percent(off / every)}) do not begin at a "
        f"multiple of the file system's unit ({format_size(unit)}): {case.costs(seconds)} at most.",
        "Align each process's part of a file to the unit (HDF5: H5Pset_alignment; MPI-IO: "
        "striping_unit), or let collective buffering do so.",
        _top(rows, "not_aligned", ("not_aligned", "reads", "writes", "read_time", "write_time")),
    )  # fmt: skip


@counted_rules.register("random-access")
def random_access(case: Counted) -> Iterator[Finding]:
    for kind, rows, calls, moved, time in _kinds(case):
        known = rows[rows[f"sequential_{kind}s"].notna()]
        # A rank's first access of a file follows nothing; of a shared file all ranks have one.
        firsts = pd.Series(1, known.index).where(known["rank"] >= 0, case.ranks or 1)
        jumps = (known[calls] - known[f"sequential_{kind}s"] - firsts).clip(lower=0)
        total, every = int(jumps.sum()), int(known[calls].sum())
        if total < ENOUGH_CALLS or total < RANDOM * every:
            continue
        seconds = float((known[time] * jumps / known[calls]).sum())
        yield from case.says(
            "random-access", seconds,
            f"{total:,} of {every:,} {kind}s ({percent(total / every)}) jump backwards, "
            f"{format_size(float(known[moved].sum()) / every)} at a time: {case.costs(seconds)} at most.",
            "Sort accesses by offset, read whole blocks and pick from memory, use collective MPI-IO, or "
            "put these files on node-local flash or a burst buffer (paper 003: random access favours "
            "them).",
            _top(known.assign(jumps=jumps), "jumps", ("jumps", calls, moved, time)),
        )  # fmt: skip


@counted_rules.register("read-again")
def read_again(case: Counted) -> Iterator[Finding]:
    rows = case.low[(case.low["bytes_read"] > 0) & case.low["last_byte_read"].notna()]
    files = rows.groupby("file").agg(
        bytes_read=("bytes_read", "sum"), extent=("last_byte_read", "max"), read_time=("read_time", "sum")
    )
    files["extent"] += 1
    files["times"] = files["bytes_read"] / files["extent"]
    again = files[(files["times"] >= AGAIN) & (files["bytes_read"] - files["extent"] >= ENOUGH_BYTES)]
    if again.empty:
        return
    needless = float((again["bytes_read"] - again["extent"]).sum())
    seconds = float((again["read_time"] * (1 - 1 / again["times"])).sum())
    worst = again.sort_values("read_time", ascending=False)
    yield from case.says(
        "read-again", seconds,
        f"{len(again)} file(s) are read more often than once over: "
        f"{format_size(float(again['bytes_read'].sum()))} of {format_size(float(again['extent'].sum()))} "
        f"({worst['times'].iloc[0]:.3g} times {worst.index[0]}): {case.costs(seconds)} for what had been "
        "read before.",
        "Read once and broadcast (MPI_Bcast, one reader a node), keep it in memory between steps, or "
        f"cache it on node-local storage (cachevol for HDF5): {format_size(needless)} need not come from "
        "the shared storage.",
        worst.reset_index(),
    )  # fmt: skip


@counted_rules.register("metadata-bound")
def metadata_bound(case: Counted) -> Iterator[Finding]:
    low = case.low
    metadata = float(low["metadata_time"].sum())
    whole = metadata + float(low["read_time"].sum() + low["write_time"].sum())
    calls = int(low[["opens", "stats", "seeks", "syncs", "flushes"]].sum().sum())
    if calls < ENOUGH_METADATA or metadata <= 0 or metadata < METADATA_TIME * whole:
        return
    counts = {c: int(low[c].sum()) for c in ("opens", "stats", "seeks", "syncs", "flushes")}
    most = max(counts, key=lambda each: counts[each])
    yield from case.says(
        "metadata-bound", metadata,
        f"{percent(metadata / whole)} of the I/O time goes to metadata: {calls:,} calls on "
        f"{low['file'].nunique():,} files, {counts[most]:,} of them {most}: {case.costs(metadata)}.",
        "Open fewer files and open them once; spread files over folders (one each process); keep many "
        "small files in one container (HDF5, tar, TFRecord); put scratch files on node-local storage.",
        _top(low, "metadata_time", ("metadata_time", *counts)),
    )  # fmt: skip


@counted_rules.register("open-storm")
def open_storm(case: Counted) -> Iterator[Finding]:
    each = pd.Series(1, case.low.index).where(case.low["rank"] >= 0, case.ranks or 1)
    rows = case.low[(case.low["opens"] >= OPENS_EACH * each)]
    opens = int(rows["opens"].sum())
    if opens < ENOUGH_OPENS:
        return
    seconds = float(rows["metadata_time"].sum())
    yield from case.says(
        "open-storm", seconds,
        f"{rows['file'].nunique()} file(s) are opened {opens:,} times, {OPENS_EACH} times or more by each "
        f"process that uses them: {case.costs(seconds)} of metadata on them.",
        "Open once and keep the file open; with many files keep a pool of open ones.",
        _top(rows, "opens", ("opens", "metadata_time")),
    )  # fmt: skip


@counted_rules.register("fsync-storm")
def fsync_storm(case: Counted) -> Iterator[Finding]:
    rows = case.low[case.low["syncs"] > 0]
    syncs, writes = int(rows["syncs"].sum()), int(rows["writes"].sum())
    if syncs < ENOUGH_SYNCS or syncs < SYNCS_PER_WRITE * writes:
        return
    # Darshan counts the time of syncs with that of writes.
    seconds = float(rows["write_time"].sum())
    yield from case.says(
        "fsync-storm", seconds,
        f"{syncs:,} syncs for {writes:,} writes, one after "
        f"{format_size(float(rows['bytes_written'].sum()) / syncs)} on average: writes and syncs of these "
        f"files take {case.costs(seconds)}.",
        "Sync once at the end of a checkpoint instead of after each write, or write to a burst buffer or "
        "node-local storage with power-loss protection, where a sync costs little.",
        _top(rows, "syncs", ("syncs", "writes", "bytes_written", "write_time")),
    )  # fmt: skip


@counted_rules.register("stdio")
def stdio(case: Counted) -> Iterator[Finding]:
    moved = case.low.assign(moved=case.low["bytes_read"] + case.low["bytes_written"])
    rows = moved[moved["api"] == "stdio"]
    through, every = float(rows["moved"].sum()), float(moved["moved"].sum())
    if through < ENOUGH_BYTES or through < STDIO * every:
        return
    seconds = float(rows[["read_time", "write_time", "metadata_time"]].sum().sum())
    yield from case.says(
        "stdio", seconds,
        f"{percent(through / every)} of the bytes ({format_size(through)}) move through stdio (fread, "
        f"fprintf): {case.costs(seconds)}.",
        "For bulk data use POSIX or MPI-IO with large transfers, or give the stream a large buffer "
        "(setvbuf); stdio's own is 4 KiB.",
        _top(rows, "moved", ("moved", "reads", "writes", "read_time", "write_time")),
    )  # fmt: skip


@counted_rules.register("no-mpiio")
def no_mpiio(case: Counted) -> Iterator[Finding]:
    if not case.ranks or case.ranks < 2:
        return
    through = set(case.table.loc[case.table["api"] == "mpiio", "file"])
    rows = case.shared[~case.shared["file"].isin(through)]
    rows = rows.assign(moved=rows["bytes_read"] + rows["bytes_written"])
    moved = float(rows["moved"].sum())
    if moved < ENOUGH_BYTES:
        return
    seconds = float(rows["read_time"].sum() + rows["write_time"].sum())
    yield from case.says(
        "no-mpiio", seconds,
        f"{rows['file'].nunique()} file(s) are shared by several of {case.ranks:,} ranks without MPI-IO "
        f"({format_size(moved)}): {case.costs(seconds)}.",
        "Let MPI-IO (or HDF5, PnetCDF above it) gather what ranks read and write together: it knows the "
        "stripes and who has what.",
        _top(rows, "moved", ("moved", "reads", "writes", "read_time", "write_time")),
    )  # fmt: skip


@counted_rules.register("independent-io")
def independent_io(case: Counted) -> Iterator[Finding]:
    rows = case.table[(case.table["api"] == "mpiio") & case.table["file"].isin(set(case.shared["file"]))]
    alone, together = float(rows["independent"].sum()), float(rows["collective"].sum())
    if alone < ENOUGH_CALLS or alone < INDEPENDENT * (alone + together):
        return
    time = (
        (rows["read_time"] + rows["write_time"])
        * rows["independent"]
        / (rows["independent"] + rows["collective"])
    )
    seconds = float(time.fillna(0).sum())
    yield from case.says(
        "independent-io", seconds,
        f"{int(alone):,} of {int(alone + together):,} MPI-IO calls on shared files are independent: "
        f"{case.costs(seconds)}.",
        "Use the collective calls (MPI_File_write_at_all; HDF5: H5FD_MPIO_COLLECTIVE), so that a few "
        "aggregators write whole stripes.",
        _top(rows, "independent", ("independent", "collective", "read_time", "write_time")),
    )  # fmt: skip


@counted_rules.register("imbalance")
def imbalance(case: Counted) -> Iterator[Finding]:
    """Ranks that take much longer than others: on files of their own, and on shared ones."""
    if not case.ranks or case.ranks < 2:
        return
    own = case.low[case.low["rank"] >= 0]
    times = (own["read_time"] + own["write_time"] + own["metadata_time"]).groupby(own["rank"]).sum()
    times = times.reindex(range(case.ranks), fill_value=0.0)
    if times.sum() > 0 and float(times.max()) >= UNEVEN * float(times.mean()):
        lost = float(times.max() - times.mean())
        yield from case.says(
            "imbalance", lost * case.ranks,
            f"Rank {times.idxmax()} is in I/O for {format_latency(float(times.max()))} on files of its "
            f"own, the mean of {case.ranks:,} ranks for {format_latency(float(times.mean()))}: the job "
            "waits for it.",
            "Share the I/O out over more ranks (collective buffering, more aggregators), or let the "
            "other ranks compute on while this one writes.",
            times.rename("io_time").sort_values(ascending=False).reset_index(),
        )  # fmt: skip
    rows = case.low[(case.low["rank"] < 0) & (case.low["slowest_time"] > 0)]
    uneven = rows["slowest_bytes"] >= UNEVEN * rows["fastest_bytes"].clip(lower=1)
    limit = pd.Series(SLOW, rows.index).where(~uneven, UNEVEN)
    rows = rows[rows["slowest_time"] >= limit * rows["fastest_time"].clip(lower=0)]
    if rows.empty:
        return
    first = rows.sort_values("slowest_time", ascending=False).iloc[0]
    lost = float((rows["slowest_time"] - rows["fastest_time"].clip(lower=0)).sum())
    bytes_differ = float(first["slowest_bytes"]) >= UNEVEN * max(1.0, float(first["fastest_bytes"]))
    yield from case.says(
        "imbalance", lost * case.ranks,
        f"On {len(rows)} shared file(s) the slowest rank takes {format_latency(lost)} longer than the "
        f"fastest: most on {first['file']}, rank {int(first['slowest_rank'])} "
        f"{format_latency(float(first['slowest_time']))} for "
        f"{format_size(float(first['slowest_bytes']))}, rank {int(first['fastest_rank'])} "
        f"{format_latency(float(first['fastest_time']))} for {format_size(float(first['fastest_bytes']))}.",
        "Give every rank as much to do." if bytes_differ else
        "They move about as much: look at the slow rank's node, and at who shares its stripes.",
        rows[["file", "slowest_rank", "slowest_time", "slowest_bytes", "fastest_rank", "fastest_time",
              "fastest_bytes"]].sort_values("slowest_time", ascending=False).reset_index(drop=True),
    )  # fmt: skip


@counted_rules.register("single-writer")
def single_writer(case: Counted) -> Iterator[Finding]:
    if not case.ranks or case.ranks < 2:
        return
    total = float(case.low["bytes_written"].sum())
    own = case.low[case.low["rank"] >= 0]
    written = own.groupby("rank")["bytes_written"].sum()
    if total < ENOUGH_BYTES or written.empty or float(written.max()) < SINGLE_WRITER * total:
        return
    rank = int(written.sort_values(ascending=False).index[0])
    rows = own[own["rank"] == rank]
    seconds = float(rows["write_time"].sum())
    yield from case.says(
        "single-writer", seconds * case.ranks,
        f"Rank {rank} writes {percent(float(written.max()) / total)} of {format_size(total)} for "
        f"{case.ranks:,} ranks, in {format_latency(seconds)} while they can do nothing else with it.",
        "Let more ranks write (collective MPI-IO with an aggregator a node), or write while the others "
        "compute.",
        _top(rows, "bytes_written", ("bytes_written", "writes", "write_time")),
    )  # fmt: skip


@counted_rules.register("mapped")
def mapped(case: Counted) -> Iterator[Finding]:
    rows = case.low[case.low["maps"] > 0]
    if rows.empty:
        return
    yield Finding(
        "mapped", "note",
        f"{rows['file'].nunique()} file(s) are mapped into memory {int(rows['maps'].sum()):,} times: what "
        "is read and written there is in no counter.",
        "Take bytes and times here for a lower bound; strace and Darshan see none of it.",
        _top(rows, "maps", ("maps", "opens")),
    )  # fmt: skip
