"""The section on ranks and hosts: how the load is spread, and who stands out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.pages.words import count, listed, name, seconds
from tiercel.traces.analysis.counters import counted, lowest
from tiercel.traces.page.charts import Series, bars
from tiercel.traces.page.part import Drawing, Part, frame_table
from tiercel.traces.page.times import LINES

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

#: Ranks (hosts) in a table.
TOP = 10
#: Names of those that stand out, in a sentence.
_NAMED = 8


def ranks_part(frame: IOFrame, numbers: Mapping[str, Any], api: str | None) -> Part:
    """Load of each rank and host."""
    if numbers["from"] == "counters":
        return _from_counters(frame, numbers)
    anchor, heading = "ranks", "Ranks and hosts"
    table = frame.load_imbalance(api=api)
    if table.empty:
        return Part(anchor, heading, ("The trace holds no I/O call.",))
    hosts = frame.load_imbalance(by="host", api=api)
    most = float(table.attrs["imbalance"])
    alone = len(table) == 1  # then there is nothing to hold it against
    busiest = f"The busiest of {count(len(table), 'rank')} is in calls {most:.3g} times as long as the mean."
    said = ["One rank does all I/O." if alone else busiest]
    for by, found in (("Host", hosts), ("Rank", table)):
        for verdict in ("slow", "fast"):
            names = [name(n) for n in found.attrs[verdict]]
            if names:
                more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
                word = by if len(names) == 1 else f"{by}s"
                said.append(
                    f"{word} {listed([*names[:_NAMED], *more])}: {verdict}, compared with the others."
                )
    columns = ["calls", "bytes", "io_time", "data_time", "metadata_time"]
    columns += [] if alone else ["ratio", "verdict"]
    top = table.sort_values("io_time", ascending=False, kind="stable").head(TOP).reset_index()
    which = f"The {count(len(top), 'rank')} with most time in calls; ratio: to the median of the others."
    which = "Times are sums over its calls." if alone else which
    by_rank = frame_table(which, top, ["rank", "host", *columns])
    tables = [by_rank]
    if len(hosts) > 1:
        first = hosts.sort_values("io_time", ascending=False, kind="stable").head(TOP).reset_index()
        tables.append(
            frame_table("Hosts; times are means over their ranks.", first, ["host", "ranks", *columns])
        )
    numbered = frame.ranks_are_numbered
    notes = (f"{numbered[:1].upper()}{numbered[1:]}.",) if numbered and len(table) > 1 else ()
    drawings = _load(table["io_time"]) if len(table) > 1 else ()
    return Part(anchor, heading, tuple(said), drawings, tuple(tables), notes=notes)


def _load(spent: pd.Series[Any]) -> tuple[Drawing, ...]:
    """Return bars of time in calls by rank; of many ranks, the longest of neighbours."""
    ranks, values = [int(r) for r in spent.index], spent.to_numpy(dtype=np.float64)
    if not values.max(initial=0.0) > 0:
        return ()
    together = ""
    if len(ranks) > LINES:
        edges = np.linspace(0, len(ranks), LINES + 1).round().astype(int)
        ranks = [ranks[low] for low in edges[:-1]]
        values = np.array([values[low:high].max() for low, high in pairwise(edges)])
        together = f" Of {len(spent)} ranks, neighbours share a bar: the longest of them."
    series = [Series("time in I/O calls", "#d55e00", values.tolist())]
    drawing = bars([str(r) for r in ranks], series, "time in I/O calls by rank", seconds)
    return (Drawing("Time in I/O calls, by rank", drawing, f"Sums of durations.{together}"),)


def _from_counters(frame: IOFrame, numbers: Mapping[str, Any]) -> Part:
    anchor, heading = "ranks", "Ranks"
    low = lowest(counted(frame))
    own = low[low["rank"] >= 0]
    shared = int(low.loc[low["rank"] < 0, "file"].nunique())
    note = (
        f"{count(shared, 'file')} shared by all ranks: Darshan keeps one record of all, with its fastest and "
        "slowest rank (see the findings), so that their load is in no rank's bar."
    )
    notes = (note,) if shared else ()
    if own.empty:
        return Part(anchor, heading, ("No file has a record of a rank of its own.",), notes=notes)
    columns = ["read_time", "write_time", "metadata_time", "bytes_read", "bytes_written"]
    table = own.groupby("rank")[columns].sum()
    table.insert(0, "io_time", table[columns[:3]].sum(axis=1))
    drawings = _load(table["io_time"]) if len(table) > 1 else ()
    top = table.sort_values("io_time", ascending=False, kind="stable").head(TOP).reset_index()
    whole = f" of {numbers['ranks']}" if numbers["ranks"] else ""
    said = f"{count(len(table), 'rank')}{whole} have records of their own, on files that not all ranks open."
    listed_ranks = frame_table(f"The {len(top)} ranks with most time in calls on such files.", top)
    return Part(anchor, heading, (said,), drawings, (listed_ranks,), notes=notes)
