"""The section on ceilings: what was measured against what each stage of the way to the media carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

import pandas as pd

from tiercel.ceilings import Ceiling, Demand, Limit, Operation, Reuse, ceiling_for
from tiercel.ceilings.metadata import metadata_ceiling
from tiercel.ceilings.study import are_waited_for, waiting
from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.ceilings_figure import Mark, ceilings_figure
from tiercel.site.topology import Action
from tiercel.study.workloads import MetadataWorkload
from tiercel.units import format_bandwidth, format_rate, format_share

#: From this share of a ceiling on, the stage is what bounds the result.
BOUND = 0.7
#: By the figure that bounds: what brings more.
_REMEDY = {
    "bandwidth": "a wider {stage} stage",
    "operations": "more operations per second there, or larger transfers",
    "latency": "a shorter latency, more processes or larger transfers",
    "metadata": "more metadata operations per second there",
}
#: What of a row says what its workload asked of the storage.
_ASKED = (
    "processes_per_node", "transfer_size", "queue_depth", "direct", "fsync", "pattern", "access",
    "bytes_per_process", "resident_fraction",
)  # fmt: skip
_OF_METADATA = ("items_per_process", "write_bytes")
_COLUMNS = (
    "storage", "operation", "nodes", "configuration", "bandwidth", "role", "origin", "layer", "traced",
    *_ASKED, *_OF_METADATA,
)  # fmt: skip


@dataclass(frozen=True)
class _Best:
    """What comes nearest to a ceiling of its kind, of all workloads of a storage on so many nodes."""

    label: str
    kind: str
    """Reads, writes, and those of which each is waited for (bound by operations or latency); creates..."""
    nodes: int
    measured: float
    ceiling: Ceiling
    of_metadata: bool = False
    """Operations per second, not bytes."""

    @property
    def share(self) -> float:
        return self.ceiling.share(self.measured)

    def shown(self, rate: float) -> tuple[str, float]:
        return (format_rate if self.of_metadata else format_bandwidth)(rate), rate

    @property
    def where(self) -> str:
        return f"{self.label}, {self.kind}, {self.nodes} node{'s' if self.nodes > 1 else ''}"


@sections.register("ceilings")
def ceilings(context: Context) -> Section | None:
    """Return the section of the study's storages whose topology the site file gives, None without any."""
    found = [*_best(context), *_best_metadata(context)]
    rows: list[list[Any]] = [
        [b.label, b.kind, b.nodes, b.shown(b.measured), b.shown(b.ceiling.rate),
         (format_share(b.share), b.share), limit_name(b.ceiling.limits[0]), _next(b), _verdict(b)]
        for b in found
    ]  # fmt: skip
    sentences = _sentences(found)
    marks: dict[bool, list[Mark]] = {False: [], True: []}
    for b in found:
        mark = Mark(b.where, b.measured, b.ceiling.rate, limit_name(b.ceiling.limits[0]))
        marks[b.of_metadata].append(mark)
    guesses = {
        f"{b.label}: no {'rate of metadata' if b.of_metadata else 'bandwidth'} is given for "
        f"{', '.join(b.ceiling.unknown)}."
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
        tuple(sentences) or ("No result is close to a limit of the topology.",),
        pictures=tuple(
            ceilings_figure(context.figures, some, of_metadata=kind) for kind, some in marks.items() if some
        ),
        tables=(
            table(
                "Results and ceilings. The medians closest to the limits of the topology in the site file",
                heads,
                rows,
                ("Nodes",),
            ),
        ),
        notes=(
            *sorted(guesses),
            "The topology in the site file lists the stages, their limits and sources.",
        ),
    )


def limit_name(limit: Limit) -> str:
    """Return the stage of a limit, and by which figure where that is not its bandwidth."""
    return limit.stage.name if limit.figure == "bandwidth" else f"{limit.stage.name} ({limit.figure})"


def _next(best: _Best) -> str:
    after = best.ceiling.next
    return f"{limit_name(after)}, {best.shown(after.rate)[0]}" if after else "not known"


def _sentences(found: Sequence[_Best]) -> list[str]:
    """Return what is to be said, once for all results of a storage that lie above its calibration: one quiet
    hour makes that of most."""
    above: dict[str, list[_Best]] = {}
    for b in found:
        if b.share > 1 and b.ceiling.stage.calibrated:
            above.setdefault(b.label, []).append(b)
    several = {label: some for label, some in above.items() if len(some) > 1}
    said = [
        f"{label}: {len(some)} medians are above the calibrated limit "
        f"({format_share(min(b.share for b in some))} "
        f"to {format_share(max(b.share for b in some))}). Either a cache served them, or the calibration "
        "was too "
        "low: run `tiercel site calibrate`."
        for label, some in several.items()
    ]
    told = [b for b in found if b not in several.get(b.label, [])]
    return [*said, *(sentence for b in told if (sentence := _sentence(b)))]


def _sentence(best: _Best) -> str:
    """Return what is to be said of a result that comes close to its ceiling or above it, else nothing."""
    limit = best.ceiling.limits[0]
    if best.share < BOUND:
        return ""
    if limit.stage.calibrated:
        carries = "the calibrated limit"
    elif limit.figure == "bandwidth":
        carries = f"the limit of {limit.stage.name}"
    else:
        figure = "metadata operations" if limit.figure == "metadata" else limit.figure
        carries = f"the {figure} limit of {limit.stage.name}"
    known = f"{best.where}: {format_share(best.share)} of {carries}"
    if best.share > 1 and limit.stage.calibrated:
        return (
            f"{known}. Either a cache served it, or the calibration was too low: run `tiercel site "
            "calibrate`."
        )
    if best.share > 1:
        return f"{known}, which is impossible. Either a cache served it, or the topology is wrong."
    if limit.stage.calibrated and limit.figure == "bandwidth":
        return f"{known}. For more speed, use a faster storage."
    return f"{known}. For more speed: {_REMEDY[limit.figure].format(stage=limit.stage.stage)}."


def _verdict(best: _Best) -> str:
    limit = best.ceiling.limits[0]
    if best.share > 1 and limit.stage.calibrated:
        return "above the calibration: cache, or calibration too low"
    if best.share > 1:
        return "above the ceiling: cache, or wrong topology"
    if best.share < BOUND:
        return "not limited by the topology"
    how = "" if limit.figure == "bandwidth" else f" ({limit.figure})"
    return f"limited by {limit.stage.stage}{how}"


def _best(context: Context) -> list[_Best]:
    """Return the median bandwidth nearest to its ceiling, by storage, operation, nodes and figure."""
    rows = _counted(context, "bandwidth")
    rows = rows[rows["operation"].isin(["read", "write"])]
    medians = rows.groupby(["storage", "operation", "nodes", "configuration"], as_index=False).agg(
        {**dict.fromkeys(_ASKED, "first"), "bandwidth": "median"}
    )
    found: dict[tuple[str, str, int, bool], _Best] = {}
    for row in medians.to_dict("records"):
        storage = context.site.storages.get(row["storage"])
        ceiling = ceiling_for(storage, _demand(row)) if storage else None
        if storage is None or ceiling is None:
            continue
        waited = ceiling.limits[0].figure != "bandwidth"
        kind = f"{row['operation']}, each waited for" if waited else row["operation"]
        name = storage.label or row["storage"]
        best = _Best(name, kind, int(row["nodes"]), float(row["bandwidth"]), ceiling)
        key = (row["storage"], row["operation"], best.nodes, waited)
        if key not in found or best.share > found[key].share:
            found[key] = best
    return [found[key] for key in sorted(found)]


def _best_metadata(context: Context) -> list[_Best]:
    """Return the median rate nearest to its ceiling, by storage, metadata operation and nodes."""
    rows = _counted(context, "operation_rate")
    rows = rows[rows["items_per_process"].notna() & rows["processes_per_node"].notna()]
    found: dict[tuple[str, str, int], _Best] = {}
    by = ["storage", "operation", "nodes", "configuration"]
    told = {"processes_per_node": "first", "write_bytes": "first", "operation_rate": "median"}
    for row in rows.groupby(by, as_index=False).agg(told).to_dict("records"):
        storage = context.site.storages.get(row["storage"])
        kind, _, action = str(row["operation"]).partition("-")
        if storage is None or kind not in ("file", "directory") or action not in get_args(Action):
            continue
        # What is read of each file no column says: without it the ceiling is at most too high.
        held = 0 if pd.isna(row["write_bytes"]) else int(row["write_bytes"])
        workload = MetadataWorkload(operation="metadata", write_bytes=held)
        nodes, each = int(row["nodes"]), int(row["processes_per_node"])
        ceiling = metadata_ceiling(workload, kind, action, storage, nodes, each)  # type: ignore[arg-type]
        if ceiling is None:
            continue
        name, rate = storage.label or row["storage"], float(row["operation_rate"])
        best = _Best(name, str(row["operation"]), nodes, rate, ceiling, of_metadata=True)
        key = (row["storage"], best.kind, nodes)
        if key not in found or best.share > found[key].share:
            found[key] = best
    return [found[key] for key in sorted(found)]


def _counted(context: Context, number: str) -> pd.DataFrame:
    """Return the rows of a number that are held against ceilings."""
    rows = context.results.observations.reindex(columns=list(dict.fromkeys((*_COLUMNS, number))))
    return rows[
        rows[number].notna()
        & (rows["role"] == "measured")
        & (rows["origin"] == "measured")
        & (rows["layer"] == "none")
        & ~rows["traced"].fillna(False).astype(bool)
    ]


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
