"""What of a trace is replayed: calls on files, and the calls by which threads wake each other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import pandas as pd

from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.placement.letters import CALLS, allocation_letter, lock_letter
from tiercel.traces import IOFrame

#: Calls by which threads wake each other: futexes, and reads and writes of pipes and socket pairs.
_HANDS_OVER = "kind = 'other' AND flags IS NOT NULL AND target IS NOT NULL"
_PASSES = (
    "kind = 'other' AND (function = 'futex' OR regexp_matches(file, '^(pipe|socket|UNIX[^/]*|TCP[^/]*):'))"
)
_CALLS_OF_TRACE = (
    'SELECT file, api, kind, function, "offset", size, failed, flags, target, time, duration, rank, '
    "coalesce(process, rank, 0) AS process, coalesce(thread, process, rank, 0) AS thread "
    "FROM events WHERE api IN ('posix', 'stdio', 'mpiio', 'hdf5')"
)


def events_of(frame: IOFrame, data: str, only: Collection[str] | None) -> pd.DataFrame:
    """Return the calls on files, in the order of their begin, with column letter (NaN: not replayed)."""
    prefix = data.rstrip("/") + "/"
    below = f"starts_with(file, '{prefix.replace(chr(39), chr(39) * 2)}')" if prefix != "/" else "true"
    table = frame.query(
        f"SELECT * REPLACE (coalesce(duration, 0) AS duration) FROM ({_CALLS_OF_TRACE}) "
        f"WHERE file IS NOT NULL AND {below} AND NOT ({_PASSES}) ORDER BY time"
    )
    table = table.assign(file=_plain_names(table["file"]), target=_plain_names(table["target"]))
    table = table[~table["file"].str.startswith(SYSTEM_FOLDERS)]
    if only is not None:
        table = table[table["file"].isin(set(only))]
    if table.empty:
        return table
    # Calls of one layer cause those of the next: of each file the lowest layer that moved bytes is replayed.
    height = {"posix": 0, "stdio": 1, "mpiio": 2, "hdf5": 3}
    moves = table[table["kind"].isin(["read", "write"])]
    lowest = moves.assign(height=moves["api"].map(height)).groupby("file")["height"].min()
    wanted = table["file"].map(lowest)
    table = table[wanted.isna() & (table["api"] == "posix") | (table["api"].map(height) == wanted)]
    letter = table["function"].str.replace(r"^_+", "", regex=True).map(CALLS)
    letter = letter.where(table["kind"] != "read", "R").where(table["kind"] != "write", "W")
    letter = letter.where(letter != "E", table.loc[letter == "E", "flags"].map(lock_letter))
    letter = letter.where(letter != "P", table.loc[letter == "P", "flags"].map(allocation_letter))
    table = table.assign(letter=letter)
    if not table["letter"].isin(["R", "W"]).any():
        return table.iloc[:0]
    return table


def handovers_of(frame: IOFrame) -> Iterator[Any]:
    """Yield the calls by which threads wake each other, in the order of their begin: channel, side..."""
    table = frame.query(
        "SELECT process, thread, "
        "CASE flags WHEN 'collects' THEN time + coalesce(duration, 0) ELSE time END AS time, "
        "coalesce(duration, 0) AS duration, target AS channel, split_part(flags, '|', 1) AS side, "
        f"coalesce(TRY_CAST(split_part(flags, '|', 2) AS BIGINT), 0) AS moved FROM ({_CALLS_OF_TRACE}) "
        f"WHERE {_HANDS_OVER} AND failed IS NOT TRUE ORDER BY time"
    )
    rows: Iterator[Any] = table.itertuples()
    return rows


def _plain_names(names: pd.Series) -> pd.Series:
    """Return paths without what changes nothing in them: ``/./``, ``//`` and a slash at the end."""
    odd = names.str.contains(r"//|/\./|/\.?$", na=False)
    changed = (
        names[odd].str.replace(r"/(?:\.?/)+", "/", regex=True).str.replace(r"(?<=.)/\.?$", "", regex=True)
    )
    return names.where(~odd, changed.reindex(names.index))


def failed_opens(events: pd.DataFrame) -> frozenset[int]:
    """Return the opens that cannot have worked, of tracers that do not tell: nothing else is done
    to the file.

    A search along a path opens many names that are not there; replayed as opens they would make files.
    """
    opens = events[(events["letter"] == "O") & events["failed"].isna() & events["flags"].isna()]
    others = events[events["letter"].notna() & ~events["letter"].isin(["O", "T"])]
    return frozenset(opens.index[~opens["file"].isin(set(others["file"]))])


def lives(replayed: pd.DataFrame) -> Any:
    """Yield for each thread (process, thread), begin of its first and end of its last replayed call."""
    ends = replayed["time"] + replayed["duration"]
    by = [replayed["process"], replayed["thread"]]
    both = pd.DataFrame({"first": replayed["time"].groupby(by).min(), "last": ends.groupby(by).max()})
    return both.itertuples(name=None)
