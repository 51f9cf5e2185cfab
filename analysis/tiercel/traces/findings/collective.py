"""Whether MPI-IO gathers what ranks move in shared files, and what the gathering costs."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tiercel.pages.words import count
from tiercel.traces.analysis.tally import SMALL
from tiercel.traces.findings.access import RANDOM
from tiercel.traces.findings.base import ENOUGH_BYTES, Case, Finding, of_ranks, rules, top
from tiercel.units import format_latency, format_size

#: Calls of each rank below which gathering them is not worth a word.
ENOUGH_CALLS = 10
#: Half of the MPI-IO calls on shared files being independent: collective buffering is not in use.
INDEPENDENT = 0.5
#: Half of the transfers lying in turn with those of other ranks.
IN_TURN = 0.5
#: Ranks that one node seldom has: below it, one aggregator is what MPI-IO takes by itself.
SEVERAL_NODES = 256
#: One rank moves this part of what a collective call moves, of files of this size (B).
ALONE = 0.9
WIDE = 1 << 30
#: More bytes than asked for by half: alignment to blocks is no more than a few per cent.
SIEVED = 1.5
#: Half of the time in collective calls being spent beside the storage.
EXCHANGED = 0.5


@rules.register("no-mpiio")
@of_ranks
def no_mpiio(case: Case) -> Iterator[Finding]:
    """Ranks take turns in a shared file, piece by piece, without MPI-IO."""
    through = set(case.table.loc[case.table["api"] == "mpiio", "file"])
    rows = case.shared[~case.shared["file"].isin(through)]
    # A file that one writes and another reads is handed on, not shared.
    each = rows.assign(all_=rows["rank"] < 0, r=rows["reads"] > 0, w=rows["writes"] > 0).groupby("file")
    sums = each[["all_", "r", "w"]].sum()
    rows = rows[rows["file"].isin(sums.index[(sums["all_"] > 0) | (sums["r"] > 1) | (sums["w"] > 1)])]
    rows = rows.assign(moved=rows["bytes_read"] + rows["bytes_written"])
    rows = rows[rows["file"].isin(_in_pieces(case, rows))]
    moved = float(rows["moved"].sum())
    if moved < ENOUGH_BYTES:
        return
    seconds = float(rows["read_time"].sum() + rows["write_time"].sum())
    yield from case.says(
        "no-mpiio", seconds,
        f"{count(rows['file'].nunique(), 'file')} shared by several of {case.ranks:,} ranks, "
        f"{'without MPI-IO' if case.sees_mpiio else 'through MPI-IO or not, which this tracer does not see'} "
        f"({format_size(moved)}): {case.costs(seconds)}.",
        "Let collective calls of MPI-IO (or HDF5, PnetCDF above it) gather what ranks read and write "
        "together: it knows the stripes and who has what.",
        top(rows, "moved", ("moved", "reads", "writes", "read_time", "write_time")),
        sure=case.sees_mpiio,
    )  # fmt: skip


def _in_pieces(case: Case, rows: pd.DataFrame) -> pd.Index:
    """Return the files of `rows` that ranks take turns in, piece by piece: there is something to gather.

    Not those in which each rank moves whole stripes, or one long run of its own, or jumps about: of these
    MPI-IO would make nothing better, or another rule speaks of them.
    """
    names = ["moved", "reads", "writes"]
    files = rows.groupby("file")[names].sum().join(case.places, how="left")
    small = files["moved"] < SMALL * (files["reads"] + files["writes"])
    by_turns = files["placed_reads"] + files["placed_writes"] == 0  # not known
    for kind in ("reads", "writes"):
        placed = files[f"placed_{kind}"]
        jumping = files[f"random_{kind}"] >= RANDOM * placed
        by_turns = by_turns | ((placed > 0) & ~jumping & (files[f"turns_{kind}"] >= IN_TURN * placed))
    return files.index[small & by_turns]


@rules.register("independent-io")
@of_ranks
def independent_io(case: Case) -> Iterator[Finding]:
    """Ranks move pieces of a shared file through MPI-IO, and nothing gathers them."""
    assert case.ranks is not None
    rows = case.table[(case.table["api"] == "mpiio") & case.table["file"].isin(case.shared["file"])]
    alone, together = float(rows["independent"].sum()), float(rows["collective"].sum())
    if alone < ENOUGH_CALLS * case.ranks or alone < INDEPENDENT * (alone + together):
        return
    moved = rows["bytes_read"] + rows["bytes_written"]
    if float(moved.sum()) >= SMALL * (alone + together):
        return  # whole stripes each: nothing to gather
    seconds = float((rows["read_time"] + rows["write_time"]).sum())
    yield from case.says(
        "independent-io", seconds,
        f"{int(alone):,} of {int(alone + together):,} MPI-IO calls on shared files are independent, "
        f"{format_size(float(moved.sum()) / (alone + together))} each: {case.costs(seconds)}.",
        "Use the collective calls (MPI_File_write_at_all; HDF5: H5FD_MPIO_COLLECTIVE), so that a few "
        "aggregators write whole stripes.",
        top(rows, "independent", ("independent", "collective", "read_time", "write_time")),
    )  # fmt: skip


def _gathered(case: Case) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of files with collective calls: of MPI-IO, and below it (`moved`: bytes)."""
    together = case.table[(case.table["api"] == "mpiio") & (case.table["collective"] > 0)]
    low = case.low[case.low["file"].isin(together["file"])]
    return together, low.assign(moved=low["bytes_read"] + low["bytes_written"])


@rules.register("few-aggregators")
@of_ranks
def few_aggregators(case: Case) -> Iterator[Finding]:
    """Collective I/O of many ranks that one of them does for all."""
    assert case.ranks is not None
    if case.ranks < SEVERAL_NODES:
        return
    _, rows = _gathered(case)
    files = rows.groupby("file").agg(
        moved=("moved", "sum"), rank=("rank", "max"), most=("moved", "max"),
        slowest=("slowest_bytes", "max"),
    )  # fmt: skip
    most = files["most"].where(files["rank"] >= 0, files["slowest"])
    files = files[(files["moved"] >= WIDE) & (most >= ALONE * files["moved"])]
    if files.empty:
        return
    rows = rows[rows["file"].isin(files.index)]
    seconds = case.held_up(rows)
    yield from case.says(
        "few-aggregators", seconds,
        f"In collective calls of {case.ranks:,} ranks one rank moves all of "
        f"{format_size(float(files['moved'].sum()))} ({files.index[0]}), and the others wait: "
        f"{case.costs(seconds)} at most.",
        "Stripe the file wider (ROMIO takes an aggregator for each stripe on Lustre) or ask for more (hints "
        "cb_nodes, cb_config_list; Cray MPICH: cb_nodes with striping_factor).",
        top(rows, "moved", ("moved", "read_time", "write_time")),
    )  # fmt: skip


@rules.register("exchange")
@of_ranks
def exchange(case: Case) -> Iterator[Finding]:
    """Collective calls that take much longer than the storage took for their aggregators."""
    assert case.ranks is not None
    if case.ranks < SEVERAL_NODES:
        return
    together, low = _gathered(case)
    above = together.assign(above=together["read_time"] + together["write_time"])
    low = low.assign(below=low["read_time"] + low["write_time"])
    files = low.groupby("file").agg(
        moved=("moved", "sum"), below=("below", "sum"), slowest=("slowest_bytes", "max"), own=("moved", "max")
    )
    # The slowest aggregator moved its part or more: so there are as many, or more of them.
    part = files["slowest"].where(files["slowest"] > 0, files["own"])
    files = files.assign(aggregators=(files["moved"] / part).where(part > 0, 1).clip(lower=1))
    files = files.join(above.groupby("file")["above"].sum())
    files["storage"] = files["below"] / files["aggregators"] * case.ranks
    files = files[files["above"] - files["storage"] >= EXCHANGED * files["above"]]
    if files.empty:
        return
    seconds = float((files["above"] - files["storage"]).sum())
    whole = float(files["above"].sum())
    yield from case.says(
        "exchange", seconds,
        f"Collective calls of {case.ranks:,} ranks take {format_latency(whole / case.ranks)} a rank, their "
        f"aggregators' reads and writes {format_latency(float(files['storage'].sum()) / case.ranks)}: the "
        f"rest goes to passing data between ranks, and to waiting for the last one: {case.costs(seconds)}.",
        "Pass less: larger collective calls (cb_buffer_size), an aggregator on each node (cb_nodes), file "
        "domains on stripes; or write in parts that are one rank's already, independently.",
        files[["moved", "above", "below", "aggregators"]].reset_index(),
    )  # fmt: skip


@rules.register("sieving")
def sieving(case: Case) -> Iterator[Finding]:
    """MPI-IO moves more on the storage than the ranks asked for: data sieving, and blocks written whole."""
    names = ["bytes_read", "bytes_written"]
    above = case.table[case.table["api"] == "mpiio"].groupby("file")[names].sum()
    if above.empty:
        return
    low = case.low[case.low["api"] != "mpiio"]
    below = low.groupby("file")[[*names, "read_time", "write_time"]].sum()
    files = below.join(above.add_suffix("_asked"), how="inner")
    for moved, time, kind in (
        ("bytes_read", "read_time", "read"),
        ("bytes_written", "write_time", "written"),
    ):
        asked = files[f"{moved}_asked"]
        rows = files[(files[moved] >= SIEVED * asked) & (files[moved] - asked >= ENOUGH_BYTES) & (asked > 0)]
        if rows.empty:
            continue
        needless = rows[moved] - rows[f"{moved}_asked"]
        seconds = case.lost(rows.index, rows[time] * needless / rows[moved])
        yield from case.says(
            "sieving", seconds,
            f"{format_size(float(rows[moved].sum()))} are {kind} on the storage for "
            f"{format_size(float(rows[f'{moved}_asked'].sum()))} that ranks asked MPI-IO for "
            f"({count(len(rows), 'file')}): {case.costs(seconds)} for the rest.",
            "MPI-IO moves whole blocks around holes: describe what a rank moves with a file view and a "
            "collective call, or switch data sieving off where pieces are large (hints romio_ds_write, "
            "romio_ds_read, romio_cb_write).",
            rows[[moved, f"{moved}_asked", time]].reset_index(),
        )  # fmt: skip
