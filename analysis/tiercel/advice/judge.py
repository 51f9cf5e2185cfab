"""What the trials of a storage say against those at home: how many times faster, how sure that is.

Both samples are logarithms of measured seconds. The stated interval is one in which another comparison of
`AGAIN` runs each lies (a prediction interval; G. J. Hahn and W. Q. Meeker, Statistical Intervals, 1991), made
on another day: two kinds of variance add up,

- between runs, seen in this session: s^2 (1/n + 1/m + 2/AGAIN) of n and m runs;
- between sessions, `SESSION_SD`^2, which one session cannot show and more runs do not reduce.

The degrees of freedom are Satterthwaite's: the second variance is known, the first is estimated.
A storage is faster only if all of that interval is above 1 and Student's t test, corrected for the number of
storages (Bonferroni), agrees. An interval that is wider than `WIDEST` decides nothing else.
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
#: An interval whose high end is more than so many times its low end makes no storage slower or the same.
WIDEST = 5.0
#: Rounds of one measurement, at most.
MOST = 12
#: By what the ratio of two storages differs from session to session (standard deviation of logarithms). On
#: average over programs it is 0.02 on a machine with little other load; of single programs up to three times
#: that (`python -m benchmarks.advise` measures it).
SESSION_SD = 0.06
#: The least standard deviation between runs that is believed: a few equal runs prove no less.
_CLAIM_SD = 0.02
_ALPHA = 0.05
#: Copying another time may take so many times as long.
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
    comparison, with a quarter more of copying at its low end."""

    ratio: Span
    outcome: Outcome
    saved: Span
    """Seconds of a run."""
    runs_needed: int | None = None
    """Runs of each that decide it if they vary as these do; None: no number up to `MOST` does."""


@dataclass(frozen=True)
class Sample:
    """Measured runs: the seconds of each, and what copying adds to each."""

    seconds: Sequence[float]
    copying: float = 0.0

    def logarithms(self, factor: float = 1.0) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Return the logarithms of the seconds, with copying that takes `factor` times as long."""
        return np.log(np.maximum(np.asarray(self.seconds, dtype=np.float64), 1e-4) + self.copying * factor)


def differ(home: Sample, other: Sample, among: int = 1) -> Difference:
    """Compare measured runs. `among`: the number of comparisons made."""
    a, b = home.logarithms(), other.logarithms()
    centre = float(a.mean() - b.mean())
    freedom = len(a) + len(b) - 2
    if freedom < 1:
        return Difference(
            Span(math.exp(centre), 0.0, math.inf), "not decided", Span(0.0, -math.inf, math.inf)
        )
    least = float(a.mean() - other.logarithms(_COPYING).mean())
    squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    spread = math.sqrt(squares / freedom)
    ratio, outcome = _decided(centre, least, spread, len(a), len(b), among)
    seconds = float(np.exp(a.mean()))
    saved = Span(*(seconds * (1 - 1 / r) for r in (ratio.median, ratio.low, ratio.high)))
    enough = (
        n
        for n in range(max(len(a), len(b)), MOST + 1)
        if _decided(centre, least, spread, n, n, among)[1] != "not decided"
    )
    return Difference(ratio, outcome, saved, next(enough, None))


def _decided(
    centre: float, least: float, spread: float, at_home: int, there: int, among: int
) -> tuple[Span, Outcome]:
    """Return the interval and the outcome for a difference of logarithms; `least`: with more of copying."""
    freedom, variance = at_home + there - 2, 1 / at_home + 1 / there
    claim = t_bound(_ALPHA / 2 / among, freedom) * max(spread, _CLAIM_SD) * math.sqrt(variance)
    again = prediction(spread, at_home, there)
    ratio = Span(math.exp(centre), math.exp(least - again), math.exp(centre + again))
    if least - max(claim, again) > 0 and centre > math.log1p(WORTH):
        return ratio, "faster"
    if again > math.log(WIDEST) / 2:
        return ratio, "not decided"
    if centre + claim < 0:
        return ratio, "slower"
    return ratio, "same" if centre + claim < 2 * math.log1p(WORTH) else "not decided"


def prediction(spread: float, at_home: int, there: int) -> float:
    """Return half the width of the interval (of logarithms) in which a comparison of `AGAIN` runs each on
    another day lies. `spread`: standard deviation between the `at_home` + `there` runs of this session."""
    runs = spread**2 * (1 / at_home + 1 / there + 2 / AGAIN)
    both = runs + SESSION_SD**2
    freedom = (at_home + there - 2) * (both / runs) ** 2 if runs else math.inf
    return t_bound(_ALPHA / 2, min(freedom, 1e6)) * math.sqrt(both)


def spread_of(seconds: Sequence[float]) -> float:
    """Return by what share runs of the same placement vary: the standard deviation of their logarithms."""
    return float(np.log(seconds).std(ddof=1)) if len(seconds) > 1 else 0.0
