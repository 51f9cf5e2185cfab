"""What the trials of a storage say against those at home: how many times faster, how sure that is.

Both samples are logarithms of measured seconds. A claim needs Student's t of the pooled variance, corrected
for
the number of storages (Bonferroni). The stated interval is wider than that of the claim: another
comparison, of
`AGAIN` runs each, lies in it (a prediction interval; G. J. Hahn and W. Q. Meeker, Statistical Intervals,
1991).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tiercel.statistics.model import t_bound

Outcome = Literal["faster", "slower", "same", "not decided"]
#: A gain below this share is not worth moving files for.
WORTH = 0.03
#: The stated interval holds another comparison of so many runs.
AGAIN = 3
#: The least standard deviation (of logarithms) between runs that is believed: a few equal runs prove no less.
_CLAIM_SD, _STATED_SD = 0.02, 0.06
_ALPHA = 0.05
#: A difference of logarithms that the rank test may claim.
_CLEAR = 0.1
#: A share of waiting for a processor that matters.
_CROWDED = 0.05
#: What copying takes another time may be so much more.
_COPYING = 1.25


@dataclass(frozen=True)
class Span:
    """A number with the interval in which it lies at 95 %."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Home's time over another's. `ratio`: above 1 the other is faster; its interval holds another
    comparison."""

    ratio: Span
    outcome: Outcome
    saved: Span
    """Seconds of a run."""


@dataclass(frozen=True)
class Sample:
    """Measured runs. `seconds`: of each; `queued`: of these, waiting for a processor. `copying`,
    `copying_queued`:
    the same of what copying adds to each run."""

    seconds: Sequence[float]
    queued: Sequence[float]
    copying: float = 0.0
    copying_queued: float = 0.0

    @property
    def crowded(self) -> bool:
        """Whether others held the processors for a part of the time that matters."""
        return float(np.sum(self.queued)) > _CROWDED * float(np.sum(self.seconds))

    def logarithms(
        self, quiet: bool, factor: float = 1.0
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Return the logarithms of the seconds; `quiet`: without those of waiting for a processor."""
        seconds = np.asarray(self.seconds, dtype=np.float64)
        copying = self.copying
        if quiet:
            seconds, copying = seconds - np.asarray(self.queued), max(0.0, copying - self.copying_queued)
        return np.log(np.maximum(seconds, 1e-4) + copying * factor)


def differ(home: Sample, other: Sample, among: int = 1) -> Difference:
    """Compare measured runs. `among`: the number of comparisons made.

    The ratio is of the measured seconds. On a crowded machine the outcome is decided without the time in
    which the
    programs waited for a processor: that is the others' doing, and hides what the storage does.
    """
    crowded = home.crowded or other.crowded
    ratio, saved, _ = _compared(home, other, among, quiet=False)
    return Difference(ratio, _compared(home, other, among, quiet=crowded)[2], saved)


def _compared(home: Sample, other: Sample, among: int, quiet: bool) -> tuple[Span, Span, Outcome]:
    a, b, worst = home.logarithms(quiet), other.logarithms(quiet), other.logarithms(quiet, _COPYING)
    centre = float(a.mean() - b.mean())
    freedom = len(a) + len(b) - 2
    if freedom < 1:
        return Span(math.exp(centre), 0.0, math.inf), Span(0.0, -math.inf, math.inf), "not decided"
    squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    spread = math.sqrt(squares / freedom)
    claim = t_bound(_ALPHA / 2 / among, freedom) * max(spread, _CLAIM_SD) * math.sqrt(1 / len(a) + 1 / len(b))
    again = (
        t_bound(_ALPHA / 2, freedom)
        * max(spread, _STATED_SD)
        * math.sqrt(1 / len(a) + 1 / len(b) + 2 / AGAIN)
    )
    ratio = Span(math.exp(centre), math.exp(centre - again), math.exp(centre + again))
    seconds = float(np.exp(a.mean()))
    saved = Span(*(seconds * (1 - 1 / r) for r in (ratio.median, ratio.low, ratio.high)))
    high = centre + claim
    outcome: Outcome = "not decided"
    # Every run of one faster than every run of the other: the exact one-sided rank test.
    apart = a.min() > worst.max() and math.comb(len(a) + len(b), len(a)) >= among / _ALPHA and centre > _CLEAR
    if (float(a.mean() - worst.mean()) - claim > 0 or apart) and centre > math.log1p(WORTH):
        outcome = "faster"
    elif high < 0:
        outcome = "slower"
    elif high < 2 * math.log1p(WORTH):
        outcome = "same"
    return ratio, saved, outcome


def spread_of(seconds: Sequence[float]) -> float:
    """Return by what share runs of the same placement vary: the standard deviation of their logarithms."""
    return float(np.log(seconds).std(ddof=1)) if len(seconds) > 1 else 0.0
