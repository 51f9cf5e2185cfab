"""Inference: how a storage serves a cache of keys and values, and the search of vectors."""

from __future__ import annotations

from typing import Any, cast

import pandas as pd

from tiercel.pages.tables import Table, table
from tiercel.report.data import stack_key
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.interval import NOTE, interval_cell
from tiercel.units import format_bandwidth, format_latency, format_share

_CACHE = {"kv-request": "request", "kv-read": "block read", "kv-write": "block written"}
_SEARCH = {"vector-query": "query", "vector-read": "node read"}
_KEYS = ["experiment", "workload", "stack", "engine", "processes", "operation"]


@sections.register("inference")
def inference(context: Context) -> Section | None:
    """Return the section, or None for a study without inference."""
    everything = context.results.observations
    rows = everything[everything["operation"].isin([*_CACHE, *_SEARCH])]
    rows = rows[(rows["twin"] == "a") & ~rows["traced"].astype(bool)].copy()
    if rows.empty:
        return None
    rows["stack"] = [stack_key(s, n) for s, n in zip(rows["storage"], rows["layer"], strict=True)]
    parts = (("Cache of keys and values", _CACHE), ("Search of vectors", _SEARCH))
    return Section(
        "inference",
        "Inference",
        (),
        tables=tuple(
            _table(context, title, names, chosen)
            for title, names in parts
            if not (chosen := rows[rows["operation"].isin(list(names))]).empty
        ),
        notes=(
            "A request's time is that of reading its conversation's blocks, which the first token waits for; "
            "found is the share of the blocks that it wanted. A query's time is that of all its hops.",
            "Bandwidth and rate are over the whole run: reads and writes go on side by side.",
            NOTE,
        ),
    )


def _table(context: Context, title: str, names: dict[str, str], rows: pd.DataFrame) -> Table:
    body = []
    for key, group in rows.groupby(_KEYS, sort=False):
        experiment, workload, stack, engine, processes, operation = cast(tuple[Any, ...], key)
        body.append((
            context.results.title(experiment, workload), context.results.name(stack), engine, int(processes),
            names[operation], interval_cell(group["operation_rate"], lambda n: f"{n:.4g}"),
            interval_cell(group["bandwidth"], format_bandwidth),
            interval_cell(group["latency_p50"], format_latency),
            interval_cell(group["latency_p99"], format_latency),
            interval_cell(group["hit_share"], lambda n: format_share(n, 1)),
        ))  # fmt: skip
    heads = ("workload", "storage", "engine", "processes", "what", "a second", "bandwidth", "median time",
             "99 % within", "found")  # fmt: skip
    return table(f"{title}: medians over repetitions", heads, body, heads[3:4] + heads[5:])
