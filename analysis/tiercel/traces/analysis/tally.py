"""What was done to each file by each rank, in one table whatever the trace holds: counters or events.

The columns are those of `counters.counted`. Where there are counters they count (they are complete; DXT has
reads and writes alone), else events are summed up: then times of small calls and of syncs are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiercel.deferred import pd
from tiercel.traces.analysis import patterns
from tiercel.traces.analysis.common import IS_IO, UNSIZED, bytes_of, seconds_of
from tiercel.traces.analysis.counters import SINGLE, counted, has_counters, lowest, places_counted, topmost
from tiercel.traces.cluster import spread

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: The unit of file systems that are not known: a page, and the block of ext4 and XFS.
BLOCK = 4096
#: Transfers below 1 MiB are small: below the stripe of Lustre and the block of GPFS, and Drishti's limit.
SMALL = 1 << 20
#: Events that are so much of a file's accesses tell of all of them.
WHOLE = 0.9
#: What a call costs at least with strace is the tracer's doing; up to this much is taken off (s).
_TRACER = 100e-6

#: What moved bytes: how many, not every trace tells.
_MOVED = f"(size > 0 OR ({UNSIZED}))"
_READ = f"kind = 'read' AND {_MOVED}"
_WRITE = f"kind = 'write' AND {_MOVED}"
_OPENS = "regexp_matches(function, '(^|_)(f?open|f?open64|openat|openat64|open_async|creat|creat64)$')"
_COLLECTIVE = "api = 'mpiio' AND regexp_matches(lower(function), '(_all|_ordered)')"


def tally(frame: IOFrame, block: int = BLOCK) -> pd.DataFrame:
    """Return one row for each layer, file and rank: calls, bytes and seconds (see `counters.counted`)."""
    return counted(frame) if has_counters(frame) else _from_events(frame, block)


def places(frame: IOFrame, table: pd.DataFrame, layer: str) -> pd.DataFrame:
    """Return for each file how many accesses are consecutive and random, and bytes read again, or after
    another process wrote them (see `patterns.places`). `table`: the rows of `tally` that count."""
    if has_counters(frame):
        ranks = frame.metadata.get("ranks")
        found = places_counted(table, int(ranks) if ranks else None)
        return _turns_of_events(frame, found, layer) if len(frame) else found
    parts = spread(frame, "file", _places_of, layer)
    found = pd.concat([part for part in parts if len(part)] or parts[:1])
    # Who opens a file again begins anew: that is no jump.
    opens = table.groupby("file")["opens"].sum().reindex(found.index).fillna(0)
    jumps = [name for name in ("random_reads", "random_writes") if name in found]
    return found.assign(**{name: (found[name] - opens).clip(lower=0) for name in jumps})


def _turns_of_events(frame: IOFrame, found: pd.DataFrame, layer: str) -> pd.DataFrame:
    """Take whether ranks take turns, which counters only let one guess, from events (DXT) of those files
    whose accesses they have (nearly) all."""
    parts = [part for part in spread(frame, "file", _places_of, layer) if len(part)]
    if not parts:
        return found
    told = pd.concat(parts).reindex(found.index)
    for kind in ("reads", "writes"):
        whole = told[f"placed_{kind}"] >= WHOLE * found[f"placed_{kind}"]
        found[f"turns_{kind}"] = found[f"turns_{kind}"].mask(whole, told[f"turns_{kind}"])
    return found


def _places_of(frame: IOFrame, layer: str) -> pd.DataFrame:
    found = [patterns.places(accesses) for accesses in patterns.fetch(frame, layer)]
    return pd.concat(found) if found else pd.DataFrame(columns=["placed_reads", "placed_writes"])


def processes_time(frame: IOFrame) -> tuple[float, int] | None:
    """Return the seconds that all processes had together, and their number; None where it is not known.

    Ranks of an MPI job live as long as the job. Where ranks are only numbers of processes, each has the time
    from its first call to its last.
    """
    ranks, run = (frame.metadata.get(name) for name in ("ranks", "run_time"))
    if run and ranks:  # of a chosen part, and of a converted trace, too
        return float(run) * int(ranks), int(ranks)
    if has_counters(frame):
        return None
    lives = frame.query(
        "SELECT rank, min(time) AS began, max(time + coalesce(duration, 0)) AS ended FROM events "
        "GROUP BY rank"
    )
    if lives.empty:
        return None
    count = max(len(lives), int(ranks or 0))
    whole = float(lives["ended"].max() - lives["began"].min())
    each = float((lives["ended"] - lives["began"]).sum())
    took = each if frame.ranks_are_numbered else whole * count
    return (took, count) if took > 0 else None


def _from_events(frame: IOFrame, block: int) -> pd.DataFrame:
    floor = _floor(frame)
    took = f"greatest(duration - {floor!r}, 0)" if floor else "duration"

    def count(name: str, condition: str) -> str:
        return f"count(*) FILTER ({condition}) AS {name}"

    def time(name: str, condition: str) -> str:
        return f"{seconds_of(condition, took)} AS {name}"

    def size(name: str, condition: str) -> str:
        return f"{bytes_of(condition)} AS {name}"

    off = f"size >= {block} AND \"offset\" % {block} <> 0 AND kind IN ('read', 'write')"
    sums = ", ".join((
        count("reads", _READ), count("writes", _WRITE), size("bytes_read", _READ),
        size("bytes_written", _WRITE), count("opens", f"NOT coalesce(failed, FALSE) AND {_OPENS}"),
        count("stats", "function LIKE '%stat%'"), count("seeks", "function LIKE '%seek%'"),
        count("syncs", "kind = 'sync' AND function NOT LIKE '%flush'"),
        count("flushes", "kind = 'sync' AND function LIKE '%flush'"),
        time("read_time", "kind = 'read'"), time("write_time", "kind = 'write'"),
        time("metadata_time", "kind = 'metadata'"), time("sync_time", "kind = 'sync'"),
        count("metadata_calls", "kind = 'metadata'"), count("not_aligned", off),
        count("collective", f"({_READ} OR {_WRITE}) AND {_COLLECTIVE}"),
        *(part for kind, what in (("read", _READ), ("write", _WRITE)) for part in
          (count(f"small_{kind}s", f"{what} AND size < {SMALL}"),
           time(f"small_{kind}_time", f"{what} AND size < {SMALL}"),
           size(f"small_{kind}_bytes", f"{what} AND size < {SMALL}"),
           count(f"unsized_{kind}s", f"kind = '{kind}' AND {UNSIZED}"))),
        *(f"max(\"offset\" + size) FILTER ({what}) - 1 AS last_byte_{done}"
          for what, done in ((_READ, "read"), (_WRITE, "written"))),
    ))  # fmt: skip
    table = frame.query(
        f"SELECT api, file, rank, {sums} FROM events WHERE {IS_IO} AND api <> 'app' "
        "GROUP BY api, file, rank ORDER BY api, file, rank"
    )
    # How many are small is not known where one has no size.
    for kind in ("read", "write"):
        unsized = table.pop(f"unsized_{kind}s") > 0
        names = [f"small_{kind}{what}" for what in ("s", "_time", "_bytes")]
        table[names] = table[names].mask(unsized)
    ends = ["last_byte_read", "last_byte_written"]
    table[ends] = table[ends].astype("float64")
    table["independent"] = (table["reads"] + table["writes"] - table["collective"]).where(
        table["api"] == "mpiio", np.nan
    )
    # Of files that ranks share, events tell each rank's part: no row is of all together.
    table = _synced(frame, table.assign(maps=0, alignment=float(block)), took)
    return table.assign(**dict.fromkeys(set(SINGLE) - set(table), np.nan))


def _synced(frame: IOFrame, table: pd.DataFrame, took: str) -> pd.DataFrame:
    """Add which writes sync by themselves, where the tracer tells how files were opened: those after an open
    with O_SYNC or O_DSYNC, by the same rank, up to its next open of that file."""
    opens = f"kind = 'metadata' AND NOT coalesce(failed, FALSE) AND {_OPENS}"
    by_flag = "regexp_matches(flags, 'O_D?SYNC')"
    nothing = table.assign(synced_writes=0, synced_write_time=0.0)
    if not frame.query(f"SELECT 1 FROM events WHERE {opens} AND {by_flag} LIMIT 1").size:
        return nothing
    synced = frame.query(
        f"SELECT api, file, rank, count(*) AS synced_writes, sum({took}) AS synced_write_time FROM ("
        f"SELECT *, last_value(CASE WHEN {opens} THEN coalesce({by_flag}, FALSE) END IGNORE NULLS) OVER ("
        "PARTITION BY api, file, rank ORDER BY time ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) "
        "AS synced "
        f"FROM events WHERE ({opens}) OR ({_WRITE})) WHERE synced AND {_WRITE} GROUP BY api, file, rank"
    )
    merged = table.merge(synced, on=["api", "file", "rank"], how="left")
    return merged.fillna({"synced_writes": 0, "synced_write_time": 0.0})


def _floor(frame: IOFrame) -> float:
    """Return what the tracer adds to every call (s): with strace, what the quickest calls take."""
    if frame.metadata.get("format") != "strace":
        return 0.0
    quick = frame.query(f"SELECT quantile_cont(duration, 0.05) AS q FROM events WHERE {IS_IO}")["q"].iloc[0]
    return 0.0 if pd.isna(quick) else min(float(quick), _TRACER)


__all__ = ["BLOCK", "SMALL", "lowest", "places", "processes_time", "tally", "topmost"]
