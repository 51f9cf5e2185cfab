"""The timeline of a trace in equal bins: what each process was doing, small enough for a table.

The answer is plain JSON::

    {"start": s, "width": s, "lanes": [{"lane": "0", "kind": "read", "busy": [0, 37, 100, ...]}, ...]}

`busy` is the share of each bin, in percent, that the process spent in calls of that kind (the union over its
threads). Of more than `LANES` processes the lanes are averaged into one, called "all".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tiercel.traced.part import Part
from tiercel.traces.analysis.common import IS_IO
from tiercel.traces.analysis.intervals import EMPTY, Intervals, joined, union

BINS = 200
LANES = 4
KINDS = ("read", "write", "metadata", "sync", "compute")
_NANO = 1e9


def timeline_of(part: Part, layer: str) -> dict[str, Any] | None:
    """Return the binned timeline of the part that counts; None where nothing took any time."""
    spans: dict[tuple[int, str], Intervals] = {}
    query = (
        "SELECT rank, kind, time, coalesce(duration, 0) AS duration FROM events "
        f"WHERE ({IS_IO} AND api = '{layer}') OR kind = 'compute'"
    )
    for batch in part.frame.batches(query):
        rows = batch.to_pandas()
        for (rank, kind), some in rows.groupby(["rank", "kind"], sort=False, observed=True):
            starts = np.rint(some["time"].to_numpy() * _NANO).astype(np.int64)
            ends = starts + np.rint(some["duration"].to_numpy() * _NANO).astype(np.int64)
            key = (int(rank), str(kind))
            spans[key] = joined([spans.get(key, EMPTY), union(starts, ends)])
    spans = {key: span for key, span in spans.items() if span.length}
    if not spans:
        return None
    low, high = _extent(part, spans)
    edges = np.linspace(low, high, BINS + 1)
    widths = np.diff(edges)
    shares = {key: np.clip(span.covered(edges) / widths, 0, 1) for key, span in spans.items()}
    ranks = sorted({rank for rank, _ in shares})
    named = len(ranks) <= LANES
    lanes = []
    for place, rank in enumerate(ranks if named else [None]):
        for kind in KINDS:
            mine = [share for (r, k), share in shares.items() if k == kind and rank in (None, r)]
            if mine:
                busy = np.sum(mine, axis=0) / (1 if named else len(ranks))
                # Rounded up, so that what took any time at all is seen.
                percent = np.ceil(100 * busy).astype(int).tolist()
                lanes.append({"lane": str(place) if named else "all", "kind": kind, "busy": percent})
    return {
        "start": low / _NANO, "width": (high - low) / BINS / _NANO, "lanes": lanes,
        "phases": [{"operation": p.operation, "start": p.start, "end": p.end} for p in part.phases],
    }  # fmt: skip


def _extent(part: Part, spans: dict[tuple[int, str], Intervals]) -> tuple[float, float]:
    low = float(min(span.starts[0] for span in spans.values()))
    high = float(max(span.ends[-1] for span in spans.values()))
    if part.phases:
        low = min(low, part.phases[0].start * _NANO)
        high = max(high, part.phases[-1].end * _NANO)
    return low, max(high, low + 1)
