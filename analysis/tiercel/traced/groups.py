"""Rows of ``trace-groups.parquet``: what was done to each group of files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from tiercel.placement.groups import groups_of
from tiercel.traced.part import Part
from tiercel.traced.schema import HISTORIES
from tiercel.traces.analysis.common import CALLS, IS_IO, SUMS
from tiercel.traces.analysis.patterns import PATTERNS, both
from tiercel.traces.cluster import spread

_OPEN = "regexp_matches(function, '^_*(f?open(at)?(64)?|creat(64)?|MPI_File_open|H5F(open|create).*)$')"

_ADDED = [
    "size", "input_bytes", "output_bytes", "opens", "calls", *CALLS.values(), "bytes_read", "bytes_written",
    *(f"{kind}_s" for kind in CALLS), *(h.name for h in HISTORIES), *PATTERNS,
]  # fmt: skip


def group_rows(part: Part, layer: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of each group beside its run's identity, the group with most bytes first."""
    if not part.folder:
        return
    calls = f"{IS_IO} AND api = '{layer}' AND file IS NOT NULL"
    files = part.frame.query(
        f"SELECT file, {SUMS}, count(*) FILTER ({_OPEN}) AS opens, list(DISTINCT rank) AS ranks, "
        "max(\"offset\" + size) FILTER (kind IN ('read', 'write') AND \"offset\" >= 0) AS extent, "
        "count(*) FILTER (regexp_matches(function, '^(unlink|unlinkat|remove)$')) AS unlinks, "
        "arg_min(kind, time) FILTER (kind IN ('read', 'write')) AS first "
        f"FROM events WHERE {calls} GROUP BY file"
    ).set_index("file")
    files = files.sort_index()  # the database answers in any order, and sums of fractions hang on it
    if files.empty:
        return
    unsized = files["bytes_read"].isna() | files["bytes_written"].isna()
    size = files["extent"].fillna(files["bytes_written"]).mask(unsized)
    files["size"] = size
    # What is read before anything was written was there before the program.
    files["input_bytes"] = size.where(files["first"] == "read", 0)
    files["output_bytes"] = size.where((files["bytes_written"] > 0) & (files["unlinks"] == 0), 0)
    found = pd.concat(spread(part.frame, "file", both, layer))
    files = files.join(found).fillna(dict.fromkeys(found.columns, 0))
    names = [str(name).removeprefix(part.folder).lstrip("/") or "." for name in files.index]
    files["group"] = groups_of(names).to_numpy()
    for group, rows in sorted(files.groupby("group"), key=lambda item: (-_moved(item[1]), str(item[0]))):
        yield _row(str(group), rows)


def _moved(rows: pd.DataFrame) -> int:
    return int((rows["bytes_read"] + rows["bytes_written"]).sum())


def _row(group: str, rows: pd.DataFrame) -> dict[str, Any]:
    sums = rows[_ADDED].sum(skipna=False)  # what one file lacks, the group lacks
    row: dict[str, Any] = {
        name: None if pd.isna(sums[name]) else float(sums[name]) if name.endswith("_s") else int(sums[name])
        for name in _ADDED
    }
    placed = sum(row.pop(name) for name in ("consecutive", "sequential"))
    random = row.pop("random")
    histories = {h.name: row[h.name] for h in HISTORIES}
    return {
        "group": group,
        "files": len(rows),
        "ranks": len({int(rank) for ranks in rows["ranks"] for rank in ranks}),
        **row,
        "access": max(histories, key=histories.__getitem__) if any(histories.values()) else None,
        "random_share": random / (placed + random) if placed + random else None,
    }
