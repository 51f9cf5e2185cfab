"""What the analyses share: which layer's calls count, and tables with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from tiercel.errors import UserError, suggest
from tiercel.units import format_share

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Layers from the system up. A call of a higher layer causes calls of lower ones, so bytes of several layers
#: must not be added up.
LAYERS = ("posix", "stdio", "mpiio", "hdf5")
#: Calls that are I/O; `other` (fork, wait) and spans of the program are not.
IO_KINDS = ("read", "write", "metadata", "sync")
IS_IO = f"kind IN {IO_KINDS}"
IS_DATA = "kind IN ('read', 'write')"
IS_READ, IS_WRITE = "kind = 'read'", "kind = 'write'"
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


def layers(frame: IOFrame) -> pd.DataFrame:
    """Return bytes (NaN: not known) and calls of each layer (index: api)."""
    table = frame.query(
        f"SELECT api, {bytes_of(IS_DATA)} AS bytes, count(*) AS calls FROM events "
        f"WHERE {IS_IO} AND api <> 'app' GROUP BY api"
    )
    return table.set_index("api")


def lowest_layer(found: pd.DataFrame) -> str:
    moved = found[(found["bytes"] > 0) | found["bytes"].isna()]
    return next(
        (a for a in LAYERS if a in moved.index), next((a for a in LAYERS if a in found.index), "posix")
    )


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
