"""Overlap of I/O with computation, and the two throughputs of paper 004, section VI.

For each rank, with I the time in its I/O calls and C the time in its computation (unions of intervals, the
threads and forked workers of the rank together):

* overlapping I/O is |I and C|, non-overlapping I/O is |I minus C|, compute alone is |C minus I|;
* **application throughput** is bytes over non-overlapping I/O: what the application perceives, as only that
  time stalls it; **system throughput** is bytes over total I/O, the time in which the storage is occupied.

For the whole job the times are wall-clock time: total I/O is the time in which at least one rank does I/O;
non-overlapping I/O the time in which at least one rank does I/O that its own computation does not hide; the
overlapping I/O is the rest of total I/O. (Sums over ranks would give a mean throughput of one rank, and means
over ranks are wrong when ranks take turns or one writes for all.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from tiercel.deferred import pd
from tiercel.errors import UserError
from tiercel.traces.analysis.common import (
    DATA_KINDS,
    IS_IO,
    Group,
    Totals,
    bin_width,
    by_key,
    group_calls,
    io_calls,
    layer_of,
    layers,
    lowest_layer,
    with_units,
)
from tiercel.traces.analysis.counters import only_data, refuse_counters
from tiercel.traces.analysis.intervals import (
    EMPTY,
    Floats,
    Intervals,
    Ints,
    difference,
    joined,
    shifted,
    union,
)
from tiercel.traces.arrays import to_numpy
from tiercel.traces.cluster import spread

if TYPE_CHECKING:
    from tiercel.traces.frame import Filter, IOFrame, Ranks

ALL = "all"
_UNITS = {
    "bytes": "B", "io_time": "s", "overlapped_io": "s", "nonoverlapped_io": "s", "compute": "s",
    "compute_alone": "s", "app_throughput": "B/s", "system_throughput": "B/s",
}  # fmt: skip
_NANO = 1e9
#: Memory that one event needs at the worst point.
_BYTES_PER_EVENT = 160
#: Pieces of unions that wait before they are merged again.
_MERGE_AT = 1 << 21


@dataclass(frozen=True)
class Split:
    """I/O and computation of some ranks as unions of intervals; rank number i begins at i * `group` ns."""

    ranks: list[int]
    group: int
    io: Intervals
    compute: Intervals
    bytes: Ints
    unsized: Ints
    """Reads and writes of each rank whose bytes are not known."""
    untimed: Ints
    """Calls of each rank whose duration is not known."""


def overlap(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, api: str | None = None
) -> pd.DataFrame:
    """Return one row for each rank and a last one, ``all``, for the job.

    `filter` chooses among I/O calls; computation always counts whole. `api` is the layer whose calls are the
    I/O (default: the lowest one that moved bytes).
    """
    chosen = frame.select(rank)
    ranks, columns = _measured(chosen, layer_of(chosen, api), filter)
    index = pd.Index([*ranks, ALL], name="rank", dtype=object)
    return with_units(pd.DataFrame(columns, index=index), _UNITS)


def _measured(frame: IOFrame, layer: str, filter: Filter = None) -> tuple[list[int], dict[str, Any]]:
    """Return the ranks, and the columns of `overlap`, whose last number is the job's; NaN: not known."""
    found = reduce(_added, spread(frame, "rank", _of_ranks, layer, filter))
    order = np.argsort(found.ranks, kind="stable")
    moved, io, compute, shared, unsized, untimed = found.numbers[:, order]
    all_io, all_stalled, all_compute, all_alone = (line.length for line in found.lines)
    times = {
        "io_time": np.append(io, all_io),
        "overlapped_io": np.append(shared, all_io - all_stalled),
        "nonoverlapped_io": np.append(io - shared, all_stalled),
        "compute": np.append(compute, all_compute),
        "compute_alone": np.append(compute - shared, all_alone),
    }
    gone = np.append(unsized, unsized.sum()) > 0, np.append(untimed, untimed.sum()) > 0
    sizes = np.append(moved, moved.sum())
    columns = {"bytes": np.where(gone[0], np.nan, sizes) if gone[0].any() else sizes}
    columns |= {name: np.where(gone[1], np.nan, each / _NANO) for name, each in times.items()}
    # Bytes that cost no time that the application could feel have no throughput: missing, not infinite.
    for name, spent in (("app_throughput", "nonoverlapped_io"), ("system_throughput", "io_time")):
        seconds = columns[spent]
        columns[name] = columns["bytes"] / np.where(seconds > 0, seconds, np.nan)
    return found.ranks[order].tolist(), columns


@dataclass(frozen=True)
class Partial:
    """What some ranks add to the whole: numbers by rank, and what they cover of the job's time line."""

    ranks: Ints
    #: Rows: bytes; nanoseconds of I/O, of computation, of both; calls without size, and without duration. One
    #: column for each rank.
    numbers: Ints
    lines: tuple[
        Intervals, Intervals, Intervals, Intervals
    ]  # I/O, stalled I/O, computation, computation alone


def _of_ranks(frame: IOFrame, layer: str, filter: Filter) -> Partial:
    return reduce(_added, (_partial(part, layer, filter) for part in _fitting(frame)))


def _added(one: Partial, other: Partial) -> Partial:
    """Return both as one. What the ranks cover together has far fewer pieces than what each does."""
    lines = [joined([a, b]) for a, b in zip(one.lines, other.lines, strict=True)]
    return Partial(
        np.concatenate([one.ranks, other.ranks]), np.concatenate([one.numbers, other.numbers], axis=1),
        (lines[0], lines[1], lines[2], lines[3]),
    )  # fmt: skip


def _fitting(frame: IOFrame) -> list[IOFrame]:
    """Return parts of the frame, some ranks in each, as many as fit into its memory."""
    rows = sum(pq.read_metadata(path).num_rows for path in frame.paths)
    parts = -(-rows * _BYTES_PER_EVENT // max(frame.memory // 2, 1))  # the other half is the database's
    if parts <= 1:
        return [frame]
    ranks = [rank for (rank,) in frame.rows("SELECT DISTINCT rank FROM events ORDER BY rank")]
    each = max(len(ranks) // parts, 1)
    chosen = (ranks[low : low + each] for low in range(0, len(ranks), each))
    return [frame.select(rank=some) for some in chosen] or [frame]


def _partial(frame: IOFrame, layer: str, filter: Filter) -> Partial:
    split = collect(frame, layer, filter)
    group, count = split.group, len(split.ranks)
    io, compute = split.io.lengths(group, count), split.compute.lengths(group, count)
    stalled, alone = difference(split.io, split.compute), difference(split.compute, split.io)
    shared = io - stalled.lengths(group, count)
    lines = tuple(shifted(each, group) for each in (split.io, stalled, split.compute, alone))
    numbers = np.stack([split.bytes, io, compute, shared, split.unsized, split.untimed])
    return Partial(np.array(split.ranks, dtype=np.int64), numbers, (lines[0], lines[1], lines[2], lines[3]))


def overlap_over_time(
    frame: IOFrame, rank: Ranks = None, filter: Filter = None, bins: int = 100, api: str | None = None
) -> pd.DataFrame:
    """Return what the ranks do in each of `bins` equal parts of the job (index: time, s), as shares of them.

    `felt_io` is I/O that the rank's own computation does not hide, `hidden_io` I/O that it does, `compute`
    computation without I/O; means over the ranks, so that the three add up to 1 where no rank idles.
    UserError where there are counters alone.
    """
    if bins < 1:
        raise UserError(f"bins: must be 1 or more, not {bins}")
    refuse_counters(frame, "overlap over time")
    chosen = frame.select(rank)
    found = spread(chosen, "rank", _shares, layer_of(chosen, api), filter, bins)
    ranks = sum(count for count, _ in found)
    covered = sum((part for _, part in found), start=np.zeros((3, bins)))
    width = bin_width(frame, bins)
    shares = np.clip(covered / (max(ranks, 1) * width * _NANO), 0.0, 1.0)
    index = pd.Index(np.arange(bins) * width, name="time")
    table = pd.DataFrame(dict(zip(("felt_io", "hidden_io", "compute"), shares, strict=True)), index=index)
    return with_units(table, dict.fromkeys(table.columns, "1"))


def _shares(frame: IOFrame, layer: str, filter: Filter, bins: int) -> tuple[int, Floats]:
    """Return the number of ranks, and nanoseconds of the three kinds in each bin, summed over them."""
    ranks, found = 0, np.zeros((3, bins))
    width = bin_width(frame, bins)
    for part in _fitting(frame):
        split = collect(part, layer, filter)
        edges = np.arange(bins + 1) * width * _NANO
        felt, alone = difference(split.io, split.compute), difference(split.compute, split.io)
        for number in range(len(split.ranks)):
            own = edges + number * split.group
            felt_ns, io_ns, alone_ns = (each.covered(own) for each in (felt, split.io, alone))
            found += np.stack([felt_ns, io_ns - felt_ns, alone_ns])
        ranks += len(split.ranks)
    return ranks, found


def collect(frame: IOFrame, api: str, filter: Filter = None) -> Split:
    """Read the intervals of all ranks in one pass, merging as they come: memory holds unions, not events."""
    group = int((frame.job_time + 1) * _NANO)
    is_io = f"api = '{api}' AND {IS_IO}"
    if filter is None:
        chosen, parts = frame, [(frame, f"({is_io}) OR kind = 'compute'")]
    else:
        chosen = frame.select(filter=filter)
        parts = [(chosen, is_io), (frame, "kind = 'compute'")]
    computing = [g for g in group_calls(frame) if g.kind == "compute"]
    sums = by_key([*io_calls(chosen, api), *computing], lambda g: -1 if g.rank is None else g.rank)
    ranks = sorted(sums)
    io, compute = _Growing(), _Growing()
    for source, condition in parts:
        query = (
            "SELECT coalesce(rank, -1) AS rank, time, coalesce(duration, 0) AS lasted, "
            f"kind = 'compute' AS computing FROM events WHERE {condition}"
        )
        for batch in source.batches(query):
            rank, time, lasted, computes = (to_numpy(each)[0] for each in batch.columns)
            starts = np.rint(time * _NANO).astype(np.int64) + np.searchsorted(ranks, rank) * group
            ends = starts + np.rint(lasted * _NANO).astype(np.int64)
            compute.add(starts[computes], ends[computes])
            io.add(starts[~computes], ends[~computes])

    def each(count: Callable[[Group], int]) -> Ints:
        return np.array([sum(count(g) for g in sums[rank]) for rank in ranks], dtype=np.int64)

    return Split(
        ranks, group, io.union(), compute.union(), each(lambda g: g.size if g.kind in DATA_KINDS else 0),
        each(lambda g: g.unsized), each(lambda g: g.untimed),
    )  # fmt: skip


class _Growing:
    """A union to which intervals are added in bulk."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints]] = []
        self._waiting = 0
        self._limit = _MERGE_AT

    def add(self, starts: Ints, ends: Ints) -> None:
        self._parts.append((starts, ends))
        self._waiting += len(starts)
        if self._waiting > self._limit:
            merged = self.union()
            self._parts, self._waiting = [(merged.starts, merged.ends)], len(merged.starts)
            self._limit = self._waiting + _MERGE_AT

    def union(self) -> Intervals:
        if not self._parts:
            return EMPTY
        starts, ends = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return union(starts, ends)


def evidence(frame: IOFrame, api: str | None = None) -> dict[str, object]:
    """Return the job's numbers as plain JSON values (missing ones None)."""
    found = layers(frame)
    layer = layer_of(frame, api) if api else lowest_layer(found)
    ranks, columns = _measured(frame, layer)
    job = {name: float(values[-1]) for name, values in columns.items()}

    def value(column: str) -> float | None:
        return job[column] if np.isfinite(job[column]) else None

    # Where no computation is marked, what it would hide is not known.
    computes = job["compute"] > 0
    return {
        "events": len(frame),
        "job_time_s": frame.job_time,
        "posix_bytes": None if np.isnan(job["bytes"]) else int(columns["bytes"][-1]),
        "io_s": value("io_time"),
        "overlapped_io_s": value("overlapped_io") if computes else None,
        "nonoverlapped_io_s": value("nonoverlapped_io"),
        "compute_s": value("compute") if computes else None,
        "app_throughput_bytes_s": value("app_throughput"),
        "system_throughput_bytes_s": value("system_throughput"),
        "ranks": len(ranks),
        "warnings": [*frame.warnings, *_other_layers(found, layer), *_only_data(frame)],
    }


def _other_layers(found: Mapping[str, Totals], layer: str) -> list[str]:
    """Say when bytes are not those of POSIX, or when libc's buffered calls moved bytes beside them."""
    notes = []
    if layer != "posix" and layer in found:
        notes.append(f"no POSIX call in this trace moved bytes: bytes and I/O time are those of {layer}")
    moved = found["stdio"].bytes if "stdio" in found else 0
    if layer == "posix" and moved != 0:
        bytes_ = "bytes" if moved is None else f"{moved} bytes"
        notes.append(f"{bytes_} moved by buffered calls (STDIO) are not counted: see --api stdio")
    return notes


def _only_data(frame: IOFrame) -> list[str]:
    """Say what the events of a log lack whose counters have it: Darshan's DXT traces reads and writes."""
    if not only_data(frame):
        return []
    return ["events are reads and writes alone (DXT): no wall-clock time here has metadata calls or syncs"]
