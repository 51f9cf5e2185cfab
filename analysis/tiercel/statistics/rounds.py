"""What all runs of a round have in common.

Repetitions go round by round: what carries one number ran within minutes. A machine that is slower for a
while is slower for all of them, and a difference between configurations is seen better without that. It is
the median, over the configurations of a study, of how far each one's value lies from its own median over the
rounds (logarithms; median polish, J. W. Tukey, "Exploratory Data Analysis", 1977). The same is taken off
both sides of every comparison, so that it cannot favour one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.statistics.select import usable

Floats = npt.NDArray[np.float64]

#: Fewer configurations than these in a round do not tell what it had in common.
ENOUGH = 8
#: The parts of a study that ran together.
TOGETHER = ("origin", "site", "study")
_METRICS = ("bandwidth", "operation_rate", "samples_per_second")


def flattened(rows: pd.DataFrame) -> pd.DataFrame:
    """Return observations (`select.usable`) with what each round had in common taken off their rates; column
    `common` has what they were multiplied with."""
    made = rows.assign(common=1.0)
    for _, study in rows.groupby(list(TOGETHER), dropna=False, sort=False):
        effects = _effects(study)
        if effects:
            factor = np.exp(-study["repetition"].map(effects).fillna(0.0).astype("float64"))
            made.loc[study.index, "common"] = factor
            for metric in _METRICS:
                made.loc[study.index, metric] = study[metric] * factor
    return made


def compared(
    observations: pd.DataFrame, excluded: Iterable[str] = (), without: str = "", twins: bool = False
) -> pd.DataFrame:
    """Return the rows that comparisons are made of: `select.usable`, flattened, without the second halves of
    A/A pairs unless `twins` (they tell what a round had in common all the same)."""
    rows = flattened(usable(observations, excluded, twins=True, without=without))
    return rows if twins else rows[rows["twin"] == "a"]


def planned(observations: pd.DataFrame, excluded: Iterable[str] = (), without: str = "") -> pd.DataFrame:
    """Return, of `compared`, what the study itself planned: for questions that were not asked at every look
    (:mod:`tiercel.statistics.looks`)."""
    rows = compared(observations, excluded, without)
    return rows[rows["look"] == 0]


def unflattened(rows: pd.DataFrame, metric: str) -> pd.Series[float]:
    """Return the rates of rows that :func:`flattened` gave, as they were measured."""
    found: pd.Series[float] = rows[metric] / rows["common"]
    return found


def met(a: pd.DataFrame, b: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two sides as they are compared: without the rounds for which one alone went on.

    Whoever was precise early stops, and whoever was not goes on for some more rounds, minutes later; a
    further look, even days later, gives more repetitions to some configurations than to others. What one
    side alone has of that would set one time against another. A round of the study in which a run of one
    side failed, with later ones that went well, stays: what it had in common with the others is known
    (:func:`flattened`).
    """
    if a.empty or b.empty or (a["origin"] == "imported").any():
        return a, b  # what is imported has numbers, and no rounds
    last = min(side.loc[side["look"] == 0, "repetition"].max() for side in (a, b))
    both = set(a.loc[a["look"] > 0, "repetition"]) & set(b.loc[b["look"] > 0, "repetition"])
    first, second = (
        side[((side["look"] == 0) & ~(side["repetition"] > last)) | side["repetition"].isin(both)]
        for side in (a, b)
    )
    return first, second


def later(a: pd.DataFrame, b: pd.DataFrame) -> float:
    """Return the seconds from the end of one side to the beginning of the other, 0 where they took turns.

    Rounds hold both sides; only a storage (or a workload on it) that came to the study later, or one whose
    runs all failed at first, has rounds of its own, under the same numbers: what one time has against
    another is no difference between storages.
    """
    if min(a["repetition"].nunique(), b["repetition"].nunique()) < 2 or (a["origin"] != "measured").any():
        return 0.0
    gap = max(b["began"].min() - a["began"].max(), a["began"].min() - b["began"].max())
    return max(0.0, float(gap)) if pd.notna(gap) else 0.0  # no number: an engine that does not say when


def _effects(study: pd.DataFrame) -> dict[float, float]:
    """Return what each round of a study had in common, by its number."""
    rate = study["bandwidth"].where(study["bandwidth"] > 0, study["operation_rate"])
    rate = rate.where(rate > 0, study["samples_per_second"])
    known = study.assign(log=np.log(rate.where(rate > 0)))[rate > 0]
    series = ["configuration", "operation", "twin"]
    table = known.pivot_table("log", series, "repetition")
    return dict(
        zip(map(float, table.columns), common(table.to_numpy(dtype=np.float64)).tolist(), strict=True)
    )


def common(logs: Floats) -> Floats:
    """Return what the rounds have in common, from logarithms (a row for each series, a column for each round,
    NaN where there is none): 0 for rounds of which too few are known."""
    if not logs.size:
        return np.zeros(logs.shape[1])
    off = logs - np.nanmedian(logs, axis=1, keepdims=True)
    enough = np.isfinite(off).sum(axis=0) >= max(ENOUGH, len(logs) / 2)
    found: Floats = np.where(enough, np.nanmedian(off, axis=0), 0.0)
    return found
