"""Two samples without rounds: replays of one program, configurations of a model, runs of two engines.

Welch's t test on logarithms, with Holm's correction in a family. A difference is claimed if its interval also
lies outside the A/A noise floor: one pair of replicates does not show a variance, but it shows a ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tiercel.statistics.model import ALPHA, POWER, beyond, holm, satterthwaite, t_bound
from tiercel.statistics.noise import Floor
from tiercel.statistics.summary import finite
from tiercel.statistics.verdict import MINIMUM, POWERLESS, Outcome, Rule, Verdict

Sample = Iterable[Any]


@dataclass(frozen=True)
class Comparison:
    """What a says against b."""

    value: Verdict
    floor: Floor
    p_value: float
    """Two-sided, for this comparison alone."""

    @property
    def ratio(self) -> float:
        """Of means of logarithms; over several scales the geometric mean."""
        return self.value.ratio

    @property
    def low(self) -> float:
        return self.value.low

    @property
    def high(self) -> float:
        return self.value.high

    def columns(self) -> dict[str, Any]:
        """Return the verdict and the noise as columns of a table."""
        low, high = self.floor.low, self.floor.high
        floor = {"floor_low": low, "floor_high": high, "floor_source": self.floor.source}
        return self.value.columns() | floor

    @property
    def n_a(self) -> int:
        return self.value.n_a

    @property
    def n_b(self) -> int:
        return self.value.n_b

    @property
    def p_corrected(self) -> float:
        return self.value.p

    @property
    def verdict(self) -> str:
        """Of a: its number is higher, lower, or undecided."""
        return str(self.value.columns()["verdict"])

    @property
    def reason(self) -> str:
        return self.value.reason


def compare(a: Sample, b: Sample, floor: Floor) -> Comparison:
    """Compare two samples; the verdict is that of a single comparison (see :func:`judge` for families)."""
    x, y = finite(a), finite(b)
    n = min(len(x), len(y))
    nan = math.nan
    if not n or min(x.min(), y.min()) <= 0:
        value = Verdict(Outcome.NO_POWER, Rule.NO_RATE, nan, nan, nan, 1.0, len(x), len(y))
        return Comparison(value, floor, 1.0)
    p, low, high, detectable = 1.0, nan, nan, math.inf
    difference = float(np.log(x).mean() - np.log(y).mean())
    if n >= 2:
        parts, freedoms = (np.array(each) for each in ([np.log(s).var(ddof=1) / len(s) for s in (x, y)],
                                                       [len(s) - 1.0 for s in (x, y)]))  # fmt: skip
        error, freedom = math.sqrt(parts.sum()), float(satterthwaite(parts, freedoms))
        half = t_bound(ALPHA / 2, freedom) * error
        low, high = math.exp(difference - half), math.exp(difference + half)
        p = float(beyond(np.asarray(difference), np.asarray(parts.sum()), np.asarray(freedom)))
        detectable = max(math.exp(half + t_bound(1 - POWER, freedom) * error), floor.high)
    value = Verdict(
        Outcome.NOT_DECIDED, Rule.REPETITIONS, math.exp(difference), low, high, p, len(x), len(y),
        detectable=detectable, extent=floor.high,
    )  # fmt: skip
    return judge([Comparison(value, floor, p)])[0]


def judge(family: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of a family with corrected p and the verdicts that follow from it."""
    corrected = holm(np.array([c.p_value for c in family], dtype=np.float64))
    return [
        replace(c, value=_judged(replace(c.value, p=float(p), family=len(family)), c.floor))
        for c, p in zip(family, corrected, strict=True)
    ]


def _judged(v: Verdict, floor: Floor) -> Verdict:
    if v.rule is Rule.NO_RATE:
        return v
    power = Outcome.NOT_DECIDED if floor.known and v.detectable <= POWERLESS else Outcome.NO_POWER
    if not floor.known:
        return replace(v, outcome=power, rule=Rule.NO_REPLICATE)
    if min(v.n_a, v.n_b) < MINIMUM:
        return replace(v, outcome=power, rule=Rule.FEW_REPETITIONS)
    if v.p >= ALPHA:
        return replace(v, outcome=power, rule=Rule.REPETITIONS)
    if v.low <= floor.high and v.high >= floor.low:
        return replace(v, outcome=power, rule=Rule.LAYOUT)
    return replace(v, outcome=Outcome.BETTER if v.ratio > 1 else Outcome.WORSE, rule=Rule.DIFFERENCE)
