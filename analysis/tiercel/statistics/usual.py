"""Do usual runs differ, or only some?

Means of logarithms differ where one storage alone is ten times slower in one run of seven, and enough
repetitions show it; the runs that a user mostly gets are alike all the same, and the report shows medians. So
a difference is claimed only where it is one of usual runs, too: where the trimmed means of both sides differ
(K. K. Yuen, Biometrika 61, 1974; a fifth off each end, over the scales as Welch's t is), and the medians by
half of what means do. Where noise is alike on both sides, neither holds back a claim (`python -m
benchmarks.decisions`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiercel.statistics.distributions import t_beyond
from tiercel.statistics.satterthwaite import satterthwaite
from tiercel.statistics.summary import Values

#: Taken off each end.
TRIM = 0.2
#: Medians differ by this part of what means do, at least.
PART = 0.5
#: Trimmed means have p < 0.05, or less than so many times that of the means: of what barely passes with all
#: of a family one in ten would fail otherwise, by the values that are trimmed.
USUAL = 15.0


def usual_p(pairs: Sequence[tuple[Values, Values]], difference: float, median_difference: float) -> float:
    """Return the two-sided p of usual runs alike, from values above 0, a pair of sides for each scale; 1
    where medians do not follow the `difference` of the means (both of logarithms, over the scales)."""
    if abs(difference) * PART > median_difference * np.sign(difference):
        return 1.0
    means, parts = [], []
    for side in (0, 1):
        told = [_trimmed(np.log(pair[side])) for pair in pairs]
        means.append(float(np.mean([mean for mean, _, _ in told])))
        parts.append(
            (
                sum(variance for _, variance, _ in told) / len(told) ** 2,
                float(sum(freedom for *_, freedom in told)),
            )
        )
    apart, variance = means[0] - means[1], sum(part for part, _ in parts)
    if any(freedom < 1 for _, freedom in parts) or apart * difference <= 0:
        return 1.0
    if variance <= 0:
        return 0.0
    return t_beyond(apart / variance**0.5, satterthwaite(parts))


def _trimmed(values: Values) -> tuple[float, float, int]:
    """Return the trimmed mean, its variance (of winsorized values), and the degrees of freedom of that."""
    ordered = np.sort(values)
    off = int(TRIM * len(ordered))
    kept = len(ordered) - 2 * off
    if kept < 2:
        return float(ordered.mean()), 0.0, 0
    inside = ordered[off : len(ordered) - off]
    held = np.clip(ordered, inside[0], inside[-1])
    squares = float(((held - held.mean()) ** 2).sum())
    return float(inside.mean()), squares / (kept * (kept - 1)), kept - 1
