"""For each workload class: where its files belong and why.

What a measurement of this study decides comes from the ranking of its class (the same as on the first
screen). Where the site has a trained placement model, its opinion stands beside it, and decides alone only
where the measurement did not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tiercel.placement.copying import Rates, staging
from tiercel.report.classes import WorkloadClass
from tiercel.report.data import Results
from tiercel.report.recommend.copying import (
    amount_of,
    copying_notes,
    rates_of,
    reading_of,
    saved_by,
    why_unknown,
)
from tiercel.report.recommend.groups import group_advice, groups_of, work_notes
from tiercel.report.recommend.model import SYNCED, GroupAdvice, Judgement, Recommendation
from tiercel.report.room import free_bytes
from tiercel.results.schema import FEATURES
from tiercel.site.model import Site
from tiercel.statistics.lives import LIFE

if TYPE_CHECKING:
    from tiercel.placement.model import PlacementModel


def recommendations(
    results: Results, site: Site, folder: Path, found: Sequence[WorkloadClass]
) -> tuple[list[Recommendation], list[GroupAdvice], list[str]]:
    """Return what to recommend for the measured classes and their groups of files, and notes on the model.

    `folder` is ``results/<site>``: the traces' groups and the models lie there.
    """
    classes = [c for c in found if c.origin == "measured"]
    # A model learns anew as it is loaded: not where there is nothing to judge.
    model, notes = _model(folder, site.site) if classes else (None, [])
    rates = rates_of(results)
    groups = groups_of(results, folder)
    made = [
        _recommendation(results, site, c, model, rates, groups.get((c.experiment, c.workload)))
        for c in classes
    ]
    advised = [each for r in made for each in group_advice(results, r, rates, groups.get(r.of.key[:2]))]
    if model is not None:
        data = model.card["data"]
        notes.insert(0, f"Model: learnt from {data['configurations']} kinds of I/O of study {data['study']}.")
    return made, advised, [*copying_notes(results, made), *work_notes(results, advised), *notes]


def _model(folder: Path, site: str) -> tuple[PlacementModel | None, list[str]]:
    if not any(folder.glob("placement/*/model.json")):
        return None, []  # importing what models need takes a second
    from tiercel.placement.recommend import best_model  # noqa: PLC0415

    return best_model(folder, site)


def _recommendation(
    results: Results,
    site: Site,
    found: WorkloadClass,
    model: PlacementModel | None,
    rates: Mapping[str, Rates],
    groups: pd.DataFrame | None,
) -> Recommendation:
    ranking = found.ranking
    judged = {s: _judgement(found, s, model) for s in ranking.standings}
    home = ranking.reference
    ahead = [
        s for s in ranking.standings if s in results.memory and s != home and judged[s].outcome == "higher"
    ]
    measured_first = sorted(ahead, key=lambda s: judged[s].decided_by != "measurement")
    faster = ranking.fastest or (measured_first[0] if measured_first else "")
    amount, traced = amount_of(found, groups[groups["storage_stack"] == home] if groups is not None else None)
    stage, unknown, reading = None, "", None
    if faster:
        per = "file" if found.operation == LIFE else "use"
        reading = reading_of(results, found, home, amount, groups) if found.operation == "train" else None
        saved = saved_by(results, found, home, faster, amount, traced)
        stage = staging(home, faster, amount, rates, saved, reading=reading, per=per)
        synced = found.operation == "write" and found.configuration.get("fsync") == "write"
        unknown = SYNCED if synced else why_unknown(stage)
    if unknown:
        stage = None
    known = site.storages.get(home.partition("+")[0])
    return Recommendation(
        found, judged, home, ranking.advice[home] in ("use", "only"), faster, stage, amount, traced,
        free_bytes(results, faster or home), home not in results.memory,
        known is None or site.nodes == 1 or not site.node_local(known), unknown, reading,
    )  # fmt: skip


def _judgement(found: WorkloadClass, stack: str, model: PlacementModel | None) -> Judgement:
    standing, advice = found.ranking.standings[stack], found.ranking.advice[stack]
    features = found.configuration
    # The model knows reads and writes of files' data; its sweeps hold nothing else.
    if model is None or not standing.rows or found.operation not in ("read", "write"):
        return Judgement(stack, advice, standing)
    if any(pd.isna(features.get(c.name)) for c in FEATURES if c.name in _ASKED):
        return Judgement(stack, advice, standing)
    from tiercel.placement.recommend import agreement, opinion  # noqa: PLC0415

    said = opinion(model, pd.DataFrame([features]), stack, standing.against)
    if said is None:
        return Judgement(stack, advice, standing)
    return Judgement(stack, advice, standing, said, agreement(standing.outcome, said.outcome))


#: Features that a model is asked by; a workload that lacks one (an imported one) is none for it.
_ASKED = ("api", "layout", "pattern", "transfer_size", "bytes_per_process", "fsync", "access")
