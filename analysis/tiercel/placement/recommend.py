"""What the placement model thinks of a workload that a study measured, and whether both agree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from tiercel.errors import UserError
from tiercel.placement.evaluate import CONFIDENCE
from tiercel.placement.features import of_sweep
from tiercel.placement.model import CARD, PlacementModel
from tiercel.statistics.ranking import Outcome

Agreement = Literal[
    "agree", "disagree", "the measurement alone decides", "the model alone decides", "both undecided"
]


@dataclass(frozen=True)
class Opinion:
    """What a model expects of one system against another for one configuration."""

    system: str
    against: str
    ratio: float
    low: float
    """90 % interval of the ratio."""
    high: float
    confidence: float
    outcome: Outcome
    outside: str
    """What of the configuration the model has never seen; then it decides nothing."""


def opinion(model: PlacementModel, rows: pd.DataFrame, system: str, against: str) -> Opinion | None:
    """Return the model's opinion of one configuration (`rows`: observations of it, the first one counts).

    None where the model does not know the two systems.
    """
    if system not in model.systems or against not in model.systems or system == against:
        return None
    features = of_sweep(rows.iloc[:1])
    learnt = model.throughput_model
    speed = learnt.predict(features).iloc[0]
    log = float(np.log2(speed[system] / speed[against]))
    better, worse = (system, against) if log >= 0 else (against, system)
    sure = learnt.confidence(better, worse, abs(log))
    low, high = learnt.gain_interval(better, worse, abs(log))
    if log < 0:
        low, high = -high, -low
    outside = model.outside(features)[0]
    decided = abs(log) > learnt.floors[better, worse] and sure >= CONFIDENCE and not outside
    outcome: Outcome = ("higher" if log > 0 else "lower") if decided else "undecided"
    return Opinion(system, against, 2.0**log, 2.0**low, 2.0**high, sure, outcome, outside)


def agreement(measured: Outcome, expected: Outcome) -> Agreement:
    """Return how a measurement and a model's opinion of the same pair go together."""
    decided = measured in ("higher", "lower"), expected in ("higher", "lower")
    if all(decided):
        return "agree" if measured == expected else "disagree"
    if decided[0] or measured == "same":
        return "the measurement alone decides"
    return "the model alone decides" if decided[1] else "both undecided"


def best_model(folder: Path, site: str) -> tuple[PlacementModel | None, list[str]]:
    """Return the model of `site` that learnt from most, and what is wrong with others.

    Every study of the site may have trained one (``folder``/placement/<study>); None where none has.
    """
    found: list[PlacementModel] = []
    notes = []
    for card in sorted(folder.glob(f"placement/*/{CARD}")):
        try:
            found.append(PlacementModel.load(card.parent, site))
        except UserError as error:
            notes.append(str(error))
    return max(found, key=lambda m: len(m.table), default=None), notes
