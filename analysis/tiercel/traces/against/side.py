"""One of two traces: the numbers that can be set beside those of another, missing where it cannot say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tiercel.traces.analysis.common import IS_IO, bytes_of, layer_of, seconds_of, total
from tiercel.traces.analysis.counters import (
    counted,
    files_counted,
    has_counters,
    lowest,
    only_counters,
    summarise_counters,
)
from tiercel.traces.analysis.patterns import PATTERNS
from tiercel.traces.analysis.summary import files_table, summarise
from tiercel.traces.findings import Finding, Storage, explain, tellable

if TYPE_CHECKING:
    from tiercel.traces.frame import IOFrame

_MIB = 1 << 20


@dataclass(frozen=True)
class Side:
    """A trace, and what was asked of it once."""

    letter: str
    frame: IOFrame
    numbers: dict[str, Any]
    """What `summary.summarise` says."""
    counts: bool
    """Whether its values are from counters."""
    layer: str
    """The layer whose calls count."""
    values: dict[str, float | None]
    """Quantity (see `quantities.py`) to its value; None: this trace cannot say."""
    layers: list[dict[str, Any]]
    """Rows as ``summarise`` has them."""
    findings: list[Finding]
    tellable: frozenset[str]
    """Rules that can speak on a trace of this kind."""
    files: pd.DataFrame
    """What `summary.files_table` says."""

    @property
    def name(self) -> str:
        return Path(str(self.frame.metadata.get("path", ""))).name or self.letter


def depths(a: IOFrame, b: IOFrame, api: str | None) -> tuple[bool, str | None]:
    """Return whether both are compared by counters, and the layer of both where they are not alike.

    A log of counters alone beside one that has events and counters: by the counters. Beside one that has
    events alone: by the layer of these.
    """
    alone = [only_counters(frame) for frame in (a, b)]
    if any(alone) and has_counters(a) and has_counters(b):
        return True, api
    if any(alone):
        return False, layer_of(b if alone[0] else a, api)
    return False, api


def side(
    letter: str, frame: IOFrame, storage: Storage | None, api: str | None, counters: bool, layer: str | None
) -> Side:
    """Ask a trace everything that a comparison needs (`counters` and `layer`: see `depths`)."""
    numbers = summarise(frame, api)
    counters = counters or only_counters(frame)
    files = files_counted(frame, layer) if counters else files_table(frame, api=layer)
    values = _from_counters(frame, layer) if counters else _from_events(frame, numbers, layer)
    values |= _of_files(files, numbers)
    chosen = layer or ("posix and stdio" if counters else layer_of(frame, None))
    layers = summarise_counters(frame)["layers"] if counters else numbers["layers"]
    return Side(
        letter, frame, numbers, counters, chosen, values, layers, explain(frame, storage, api=api),
        tellable(frame), files,
    )  # fmt: skip


def _from_events(frame: IOFrame, numbers: dict[str, Any], api: str | None) -> dict[str, float | None]:
    table = frame.query(
        f"SELECT kind, count(*) AS calls, {bytes_of('TRUE')} AS bytes, "
        f"{seconds_of('TRUE')} AS seconds, count(*) FILTER (size IS NOT NULL) AS sized, "
        f"count(*) FILTER (size < {_MIB}) AS small FROM events "
        f"WHERE {IS_IO} AND api = '{layer_of(frame, api)}' GROUP BY kind"
    )
    by_kind = {row["kind"]: row for row in table.to_dict("records")}
    found: dict[str, float | None] = {"job_time": numbers["job_time_s"]}
    # DXT holds reads and writes alone: that no open is in it does not mean that there was none.
    kinds = ("read", "write") if numbers["format"] == "darshan" else ("read", "write", "metadata", "sync")
    for kind in kinds:
        row = by_kind.get(kind)
        found[f"{kind}_time"] = 0.0 if row is None else _known(row["seconds"])
        found[f"{kind}_calls"] = 0.0 if row is None else float(row["calls"])
        if kind in ("read", "write"):
            moved = found[f"{kind}_bytes"] = 0.0 if row is None else _known(row["bytes"])
            sized = 0 if row is None or moved is None else row["sized"]
            found[f"{kind}_small"] = row["small"] / sized if row is not None and sized else None
    found["io_wall"] = numbers["io_s"]
    found["system"] = numbers["system_throughput_bytes_s"]
    if numbers["compute_s"]:
        found |= {
            "compute": numbers["compute_s"], "felt": numbers["nonoverlapped_io_s"],
            "app": numbers["app_throughput_bytes_s"],
            "hidden": (numbers["overlapped_io_s"] or 0.0) / numbers["io_s"] if numbers["io_s"] else None,
        }  # fmt: skip
    return found | _derived(found)


def _known(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _from_counters(frame: IOFrame, layer: str | None) -> dict[str, float | None]:
    whole = counted(frame)
    low = lowest(whole) if layer is None else whole[whole["api"] == layer]
    found: dict[str, float | None] = {"job_time": frame.metadata.get("run_time")}
    for kind, column in (("read", "bytes_read"), ("write", "bytes_written")):
        found[f"{kind}_time"] = total(low[f"{kind}_time"])
        counts = found[f"{kind}_calls"] = total(low[f"{kind}s"])
        found[f"{kind}_bytes"] = total(low[column])
        # Only POSIX and MPI-IO have classes of sizes.
        classed = total(low.loc[low["api"] != "stdio", f"{kind}s"])
        small = total(low[f"small_{kind}s"])
        known = counts is not None and small is not None and classed == counts > 0
        found[f"{kind}_small"] = small / counts if known and small is not None and counts else None
    found["metadata_time"] = total(low["metadata_time"])
    return found | _derived(found)


def _derived(found: dict[str, float | None]) -> dict[str, float | None]:
    """Return what follows from times, calls and bytes."""
    more: dict[str, float | None] = {}
    for kind in ("read", "write"):
        moved, spent, calls = (found.get(f"{kind}_{what}") for what in ("bytes", "time", "calls"))
        more[f"{kind}_bandwidth"] = moved / spent if moved and spent else None
        more[f"{kind}_size"] = moved / calls if moved is not None and calls else None
    if (metadata := found.get("metadata_time")) is not None:
        # Darshan counts syncs as writing: a share of both says the same of every trace.
        times = [found.get(f"{kind}_time", 0.0) for kind in ("read", "write", "metadata", "sync")]
        whole = None if None in times else sum(time or 0.0 for time in times)
        more["metadata_share"] = metadata / whole if whole else None
    return more


def _of_files(files: pd.DataFrame, numbers: dict[str, Any]) -> dict[str, float | None]:
    accesses = float(files[list(PATTERNS)].to_numpy().sum()) if len(files) else 0.0
    shared = float((files["num_ranks"].astype("float64").fillna(0) > 1).sum()) if len(files) else 0.0
    return {
        "ranks": numbers["ranks"], "files": float(len(files)), "shared_files": shared,
        "random": float(files["random"].sum()) / accesses if accesses else None,
    }  # fmt: skip
