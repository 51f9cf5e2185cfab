"""The section on ceilings: what was measured against what each stage of the way to the media carries."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tiercel.ceilings import Ceiling, Operation, ceiling_of
from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.report.sections.ceilings_figure import Mark, ceilings_figure
from tiercel.units import format_bandwidth

#: From this share of a ceiling on, the stage is what bounds the result.
BOUND = 0.7


@sections.register("ceilings")
def ceilings(context: Context) -> Section | None:
    """Return the section of the study's storages whose topology the site file gives, None without any."""
    rows: list[list[Any]] = []
    sentences: list[str] = []
    marks: list[Mark] = []
    guesses: set[str] = set()
    for (storage, operation, nodes), best in sorted(_best(context.results.observations).items()):
        known = context.site.storages.get(storage)
        ceiling = ceiling_of(known, operation, nodes) if known else None
        if known is None or ceiling is None:
            continue
        label = known.label or storage
        share = ceiling.share(best)
        verdict = _verdict(share, ceiling)
        rows.append(
            [label, operation, nodes, (format_bandwidth(best), best),
             (format_bandwidth(ceiling.bandwidth), ceiling.bandwidth), (f"{share:.0%}", share),
             ceiling.stage.name, _next(ceiling), verdict]
        )  # fmt: skip
        plural = "s" if nodes > 1 else ""
        marks.append(
            Mark(f"{label}, {operation}, {nodes} node{plural}", best, ceiling.bandwidth, ceiling.stage.name)
        )
        if BOUND <= share <= 1:
            sentences.append(
                f"{label}, {operation}, {nodes} node{plural}: {share:.0%} of what "
                f"{ceiling.stage.name} carries; more needs a wider {ceiling.stage.stage} stage."
            )
        if share > 1:
            sentences.append(
                f"{label}, {operation}, {nodes} node{plural}: {share:.0%} of what "
                f"{ceiling.stage.name} carries, which cannot be: a cache served it, or the topology is wrong."
            )
        if ceiling.unknown:
            guesses.add(f"{label}: no bandwidth is given for {', '.join(ceiling.unknown)}.")
    if not rows:
        return None
    heads = (
        "Storage",
        "Operation",
        "Nodes",
        "Best measured",
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
        tables=(table("Best median against the topology of the site file", heads, rows, ("Nodes",)),),
        notes=(
            *sorted(guesses),
            "Stages and their numbers: topology in the site file, each with its source.",
        ),
    )


def _next(ceiling: Ceiling) -> str:
    after = ceiling.next
    return f"{after.stage.name}, {format_bandwidth(after.bandwidth)}" if after else "not known"


def _verdict(share: float, ceiling: Ceiling) -> str:
    if share > 1:
        return "above the ceiling: from a cache, or the topology is wrong"
    return f"bounded by {ceiling.stage.stage}" if share >= BOUND else "not the topology"


def _best(observations: pd.DataFrame) -> dict[tuple[str, Operation, int], float]:
    """Return the highest median bandwidth of any workload, by storage, operation and number of nodes."""
    rows = observations[
        observations["bandwidth"].notna()
        & (observations["role"] == "measured")
        & (observations["origin"] == "measured")
        & (observations["layer"] == "none")
        & ~observations["traced"].fillna(False).astype(bool)
    ]
    medians = rows.groupby(["storage", "operation", "nodes", "configuration"])["bandwidth"].median()
    best: dict[tuple[str, Operation, int], float] = {}
    for row in medians.reset_index().to_dict("records"):
        if row["operation"] in ("read", "write"):
            key: tuple[str, Operation, int] = (str(row["storage"]), row["operation"], int(row["nodes"]))
            best[key] = max(best.get(key, 0.0), float(row["bandwidth"]))
    return best
