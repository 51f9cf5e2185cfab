"""What the analyses share: which layer's calls count, and tables with units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tiercel.deferred import pd
from tiercel.errors import UserError, suggest
from tiercel.units import format_share

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

Key = TypeVar("Key")
Item = TypeVar("Item")
#: Layers from the system up. A call of a higher layer causes calls of lower ones, so bytes of several layers
#: must not be added up.
LAYERS = ("posix", "stdio", "mpiio", "hdf5")
#: Calls that are I/O; `other` (fork, wait) and spans of the program are not.
IO_KINDS = ("read", "write", "metadata", "sync")
IS_IO = f"kind IN {IO_KINDS}"
IS_DATA = "kind IN ('read', 'write')"
IS_READ, IS_WRITE = "kind = 'read'", "kind = 'write'"
DATA_KINDS = ("read", "write")
METADATA_KINDS = ("metadata", "sync")
#: Kinds of calls, and the columns that count them.
CALLS = {"read": "reads", "write": "writes", "metadata": "metadata_calls", "sync": "syncs"}
#: A read or write whose bytes the trace does not tell. One that failed moved none.
UNSIZED = f"{IS_DATA} AND size IS NULL AND failed IS NOT TRUE"


def bytes_of(condition: str) -> str:
    """Return SQL for the bytes that the reads and writes of a condition moved; null where one has no size."""
    return (
        f"CASE WHEN count(*) FILTER (({condition}) AND {UNSIZED}) = 0 THEN "
        f"coalesce(sum(size) FILTER ({condition}), 0)::BIGINT END"
    )


def seconds_of(condition: str, took: str = "duration") -> str:
    """Return SQL for the time in the calls of a condition; null where one has no duration."""
    return (
        f"CASE WHEN count(*) FILTER (({condition}) AND duration IS NULL) = 0 THEN "
        f"coalesce(sum({took}) FILTER ({condition}), 0.0) END"
    )


#: The columns that are sums over calls: counts, bytes and seconds by kind.
SUMS = ", ".join(
    [
        "count(*) AS calls",
        *(f"count(*) FILTER (kind = '{kind}') AS {column}" for kind, column in CALLS.items()),
        f"{bytes_of(IS_READ)} AS bytes_read",
        f"{bytes_of(IS_WRITE)} AS bytes_written",
        *(seconds_of(f"kind = '{kind}'") + f" AS {kind}_s" for kind in CALLS),
    ]
)


class Group(NamedTuple):
    """Events of one kind, process and layer. Each sum is over the events that have the number."""

    rank: int | None
    host: str | None
    process: int | None
    api: str | None
    kind: str | None
    nameless: bool
    """They name no file."""
    calls: int
    unsized: int
    """Reads and writes whose bytes are unknown."""
    untimed: int
    size: int
    seconds: float
    finished: float | None
    """When the last one ended (s)."""


class Totals(NamedTuple):
    """Calls, bytes of the reads and writes, and seconds; None where a call lacks the number."""

    calls: int
    bytes: int | None
    seconds: float | None


_GROUPS = f"""
SELECT rank, host, process, api, kind, file IS NULL AS nameless, count(*),
    count(*) FILTER ({UNSIZED}), count(*) FILTER (duration IS NULL),
    coalesce(sum(size), 0), coalesce(sum(duration), 0.0), max(time + duration)
FROM events GROUP BY ALL ORDER BY ALL
"""


def group_calls(frame: IOFrame) -> list[Group]:
    """Return sums over the events by who made them: most totals follow, and events are read once."""
    return frame.once("groups", lambda: _asked(frame))


def _asked(frame: IOFrame) -> list[Group]:
    groups = [Group(*row) for row in frame.rows(_GROUPS)]
    if (moved := sum(g.size for g in groups)) >= 1 << 63:
        raise UserError(f"the sizes of its calls cannot be: {moved:,} bytes in all")
    return groups


def keep_groups(frame: IOFrame, rows: Iterable[Sequence[Any]]) -> None:
    """Let `group_calls` return groups that were made before."""
    frame.once("groups", lambda: [Group(*row) for row in rows])


def io_calls(frame: IOFrame, api: str) -> list[Group]:
    """Return the groups of the I/O calls of a layer."""
    return [g for g in group_calls(frame) if g.kind in IO_KINDS and g.api == api]


def totals(groups: Iterable[Group], kinds: Sequence[str] = IO_KINDS) -> Totals:
    """Return what groups of some kinds add up to."""
    chosen = [g for g in groups if g.kind in kinds]
    return Totals(
        sum(g.calls for g in chosen),
        None if any(g.unsized for g in chosen) else sum(g.size for g in chosen if g.kind in DATA_KINDS),
        None if any(g.untimed for g in chosen) else sum((g.seconds for g in chosen), start=0.0),
    )


def by_key(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return items by what `key` returns for each."""
    found: dict[Key, list[Item]] = defaultdict(list)
    for item in items:
        found[key(item)].append(item)
    return found


def bin_width(frame: IOFrame, bins: int) -> float:
    """Return the length of one of `bins` equal parts of the job in seconds; of a job that took no time that
    could be told, a second has them all."""
    return (frame.job_time if frame.job_time > 0 else 1.0) / bins


def layer_of(frame: IOFrame, api: str | None) -> str:
    """Return the layer whose calls count: `api`, else the lowest one that moved bytes in this trace.

    UserError where there are counters alone: analyses of calls begin here.
    """
    frame.need_events("this")
    if api is not None:
        if api not in LAYERS:
            raise UserError(f"no layer named {api!r}: {suggest(api, LAYERS)}")
        return api
    return lowest_layer(layers(frame))


def layers(frame: IOFrame) -> dict[str, Totals]:
    """Return the sums of each layer that was called, the lowest first."""
    found = by_key(group_calls(frame), lambda g: g.api)
    return {api: sums for api in LAYERS if (sums := totals(found[api])).calls}


def lowest_layer(found: Mapping[str, Totals]) -> str:
    """Return the lowest layer that moved bytes (or may have), else the lowest that was called."""
    moved = (api for api, sums in found.items() if sums.bytes is None or sums.bytes > 0)
    return next(moved, next(iter(found), "posix"))


def total(values: pd.Series[float]) -> float | None:
    """Return the sum of some numbers; None where one of them is missing."""
    whole = float(values.sum(skipna=False))
    return whole if whole == whole else None  # noqa: PLR0124 -- NaN is not


def with_units(table: pd.DataFrame, units: Mapping[str, str]) -> pd.DataFrame:
    """Return `table` with the unit of each column in ``attrs["units"]``."""
    table.attrs["units"] = {str(column): units.get(str(column), "") for column in table.columns}
    return table


def listed(words: Sequence[str]) -> str:
    return ", ".join(words)


def mostly(counts: pd.DataFrame) -> list[str]:
    """Return the largest column's name for each row, with its share where there are others."""
    words = []
    for row in counts.to_dict("records"):
        total = sum(row.values())
        if not total:
            words.append("")
            continue
        name, value = max(row.items(), key=lambda item: item[1])
        words.append(str(name) if value == total else f"{format_share(value / total)} {name}")
    return words
