"""The section on ceilings: what was measured against what each stage of the way to the media carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from tiercel.ceilings import Ceiling, Demand, Limit, Operation, Reuse, ceiling_for
from tiercel.ceilings.study import are_waited_for, waiting
from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.ceilings_figure import Mark, ceilings_figure
from tiercel.units import format_bandwidth, format_share

#: From this share of a ceiling on, the stage is what bounds the result.
BOUND = 0.7
#: By the figure that bounds: what brings more.
_REMEDY = {
    "bandwidth": "a wider {stage} stage",
    "operations": "more operations per second there, or larger transfers",
    "latency": "a shorter latency, more processes or larger transfers",
}
#: What of a row says what its workload asked of the storage.
_ASKED = (
    "processes_per_node", "transfer_size", "queue_depth", "direct", "fsync", "pattern", "access",
    "bytes_per_process", "resident_fraction",
)  # fmt: skip
_COLUMNS = (
    "storage", "operation", "nodes", "configuration", "bandwidth", "role", "origin", "layer", "traced",
    *_ASKED,
)  # fmt: skip


@dataclass(frozen=True)
class _Best:
    """What comes nearest to a ceiling of its kind, of all workloads of a storage on so many nodes."""

    label: str
    operation: Operation
    nodes: int
    waited: bool
    """Bound by operations or latency: its processes wait for each of their operations."""
    bandwidth: float
    ceiling: Ceiling

    @property
    def share(self) -> float:
        return self.ceiling.share(self.bandwidth)

    @property
    def kind(self) -> str:
        return f"{self.operation}, each waited for" if self.waited else self.operation

    @property
    def where(self) -> str:
        return f"{self.label}, {self.kind}, {self.nodes} node{'s' if self.nodes > 1 else ''}"


@sections.register("ceilings")
def ceilings(context: Context) -> Section | None:
    """Return the section of the study's storages whose topology the site file gives, None without any."""
    found = _best(context)
    rows: list[list[Any]] = [
        [b.label, b.kind, b.nodes, (format_bandwidth(b.bandwidth), b.bandwidth),
         (format_bandwidth(b.ceiling.rate), b.ceiling.rate), (format_share(b.share), b.share),
         limit_name(b.ceiling.limits[0]), _next(b.ceiling), _verdict(b)]
        for b in found
    ]  # fmt: skip
    sentences = [sentence for b in found if (sentence := _sentence(b))]
    marks = [Mark(b.where, b.bandwidth, b.ceiling.rate, limit_name(b.ceiling.limits[0])) for b in found]
    guesses = {
        f"{b.label}: no bandwidth is given for {', '.join(b.ceiling.unknown)}."
        for b in found if b.ceiling.unknown
    }  # fmt: skip
    if not rows:
        return None
    heads = (
        "Storage",
        "Operation",
        "Nodes",
        "Measured",
        "Ceiling",
        "Share",
        "Narrowest stage",
        "Next",
        "Verdict",
    )
    return Section(
        "ceilings",
        "Ceilings",
        tuple(sentences) or ("No result comes close to what a stage of its storage's topology carries.",),
        pictures=(ceilings_figure(context.figures, marks),),
        tables=(
            table(
                "Medians nearest to their ceilings by the topology of the site file", heads, rows, ("Nodes",)
            ),
        ),
        notes=(
            *sorted(guesses),
            "Stages and their numbers: topology in the site file, each with its source.",
        ),
    )


def limit_name(limit: Limit) -> str:
    """Return the stage of a limit, and by which figure where that is not its bandwidth."""
    return limit.stage.name if limit.figure == "bandwidth" else f"{limit.stage.name} ({limit.figure})"


def _next(ceiling: Ceiling) -> str:
    after = ceiling.next
    return f"{limit_name(after)}, {format_bandwidth(after.rate)}" if after else "not known"


def _sentence(best: _Best) -> str:
    """Return what is to be said of a result that comes close to its ceiling or above it, else nothing."""
    limit = best.ceiling.limits[0]
    if best.share < BOUND:
        return ""
    if limit.stage.calibrated:
        carries = "what was found when the storage was calibrated"
    elif limit.figure == "bandwidth":
        carries = f"what {limit.stage.name} carries"
    else:
        carries = f"what the {limit.figure} of {limit.stage.name} allow{'s' * (limit.figure == 'latency')}"
    known = f"{best.where}: {format_share(best.share)} of {carries}"
    if best.share > 1 and limit.stage.calibrated:
        return f"{known}: a cache served it, or the storage was slower then (tiercel site calibrate)."
    if best.share > 1:
        return f"{known}, which cannot be: a cache served it, or the topology is wrong."
    if limit.stage.calibrated and limit.figure == "bandwidth":
        return f"{known}; more needs a faster storage."
    return f"{known}; more needs {_REMEDY[limit.figure].format(stage=limit.stage.stage)}."


def _verdict(best: _Best) -> str:
    limit = best.ceiling.limits[0]
    if best.share > 1 and limit.stage.calibrated:
        return "above what calibration found: from a cache, or it was slower then"
    if best.share > 1:
        return "above the ceiling: from a cache, or the topology is wrong"
    if best.share < BOUND:
        return "not the topology"
    how = "" if limit.figure == "bandwidth" else f" ({limit.figure})"
    return f"bounded by {limit.stage.stage}{how}"


def _best(context: Context) -> list[_Best]:
    """Return the median bandwidth nearest to its ceiling, by storage, operation, nodes and figure."""
    rows = context.results.observations.reindex(columns=_COLUMNS)
    rows = rows[
        rows["bandwidth"].notna()
        & rows["operation"].isin(["read", "write"])
        & (rows["role"] == "measured")
        & (rows["origin"] == "measured")
        & (rows["layer"] == "none")
        & ~rows["traced"].fillna(False).astype(bool)
    ]
    medians = rows.groupby(["storage", "operation", "nodes", "configuration"], as_index=False).agg(
        {**dict.fromkeys(_ASKED, "first"), "bandwidth": "median"}
    )
    found: dict[tuple[str, str, int, bool], _Best] = {}
    for row in medians.to_dict("records"):
        storage = context.site.storages.get(row["storage"])
        ceiling = ceiling_for(storage, _demand(row)) if storage else None
        if storage is None or ceiling is None:
            continue
        best = _Best(
            storage.label or row["storage"], row["operation"], int(row["nodes"]),
            ceiling.limits[0].figure != "bandwidth", float(row["bandwidth"]), ceiling,
        )  # fmt: skip
        key = (row["storage"], best.operation, best.nodes, best.waited)
        if key not in found or best.share > found[key].share:
            found[key] = best
    return [found[key] for key in sorted(found)]


def _demand(row: dict[Any, Any]) -> Demand:
    """Return what a row's workload asked of the storage."""
    operation, nodes = row["operation"], int(row["nodes"])
    processes, size, depth = (None if pd.isna(row[key]) else int(row[key]) for key in _ASKED[:3])
    direct, pattern = row["direct"] is True, str(row["pattern"])
    reuse = _reuse(row, operation, direct)
    if are_waited_for(operation, direct, row["fsync"], pattern) and processes and size:
        return waiting(operation, nodes, processes, size, depth or 1, pattern == "random", reuse)
    return Demand(operation, nodes, processes=processes, reuse=reuse)


def _reuse(row: dict[Any, Any], operation: Operation, direct: bool) -> Reuse | None:
    """Return what caches could serve of a row's bytes; what was resident before a read was in the node's."""
    if any(pd.isna(row[key]) for key in ("bytes_per_process", "processes_per_node")):
        return None
    if operation == "write":
        memory = row["fsync"] == "none"
    else:
        resident = row["resident_fraction"]
        memory = row["access"] in ("RAW", "RAR") if pd.isna(resident) else resident > 0
    per_node = int(row["bytes_per_process"]) * int(row["processes_per_node"])
    return Reuse(per_node, row["pattern"] == "random", memory and not direct)
