"""One configuration's repetitions in a few numbers, with an interval of the median.

The interval is made of order statistics: that the median lies between the d-th smallest and the
d-th largest of n values has a probability known exactly, whatever the distribution (the number of
values below the median is binomial). Two neighbouring d bracket the wanted confidence, and the
interval is interpolated between them (T. P. Hettmansperger and S. J. Sheather, "Confidence intervals
based on interpolated order statistics", Statistics & Probability Letters 4, 1986).

Why not a bootstrap here: with few values a bootstrapped median can only be one of them (or the mean of
two), so its percentile interval is a random pick of order statistics; this is the same interval
without the randomness. Below six values no interval reaches 95 %: the range of all values is then given, with
the probability that it does cover the median (3 values: 75 %).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Numbers of one sample; NaN where the sample is too small for them."""

    n: int
    median: float
    low: float
    """Lower end of the interval of the median."""
    high: float
    coverage: float
    """Probability that such an interval covers the median: the wanted confidence, or less below 6 values."""
    mean: float
    sd: float
    """Standard deviation with n - 1; NaN for one value."""
    cv: float
    """sd over mean."""
    minimum: float
    maximum: float

    @property
    def half_width(self) -> float:
        """Half of the interval, relative to the median; NaN for fewer than two values."""
        if self.n < 2 or self.median == 0:
            return math.nan
        return (self.high - self.low) / 2 / abs(self.median)


def finite(values: Iterable[Any]) -> Values:
    """Return the numbers of `values` as an array, without missing ones."""
    array = np.array([_number(v) for v in values], dtype=np.float64)
    return array[np.isfinite(array)]


def _number(value: Any) -> float:
    try:
        return float(value)
    except TypeError:  # None, or pandas' NA: asking pandas would make every measuring process import it
        return math.nan


def summarize(values: Iterable[Any], confidence: float = 0.95) -> Summary:
    """Summarize a sample; missing values are left out."""
    x = np.sort(finite(values))
    n = len(x)
    if n == 0:
        nan = math.nan
        return Summary(0, nan, nan, nan, 0.0, nan, nan, nan, nan, nan)
    low, high, coverage = median_interval(x, confidence)
    # The mean of equal numbers may differ from them in the last bit; it never leaves their range here.
    mean = min(max(float(x.mean()), float(x[0])), float(x[-1]))
    sd = float(x.std(ddof=1)) if n > 1 else math.nan
    cv = sd / mean if mean else math.nan
    return Summary(n, float(np.median(x)), low, high, coverage, mean, sd, cv, float(x[0]), float(x[-1]))


def median_interval(ordered: Values, confidence: float = 0.95) -> tuple[float, float, float]:
    """Return (low, high, coverage) of the median's interval for at least one value in ascending order."""
    n = len(ordered)
    covered = _coverage(n, 1)
    if covered <= confidence:
        return float(ordered[0]), float(ordered[-1]), covered
    d = 1
    while d + 1 <= n // 2 and _coverage(n, d + 1) >= confidence:
        d += 1
    wide, narrow = _coverage(n, d), _coverage(n, d + 1)
    share = (wide - confidence) / (wide - narrow)
    # Hettmansperger and Sheather, equation (2): exact for the Laplace, near for all common, distributions.
    weight = (n - d) * share / (d + (n - 2 * d) * share)
    low = _between(float(ordered[d - 1]), float(ordered[d]), weight)
    high = _between(float(ordered[n - d]), float(ordered[n - d - 1]), weight)
    return low, high, confidence


def _coverage(n: int, d: int) -> float:
    """Return the probability that the median lies between the d-th smallest and d-th largest of n values."""
    if 2 * d > n:
        return 0.0
    return 1.0 - 2.0 * sum(math.comb(n, k) for k in range(d)) / 2.0**n


def _between(outer: float, inner: float, weight: float) -> float:
    value = (1 - weight) * outer + weight * inner
    return min(max(value, min(outer, inner)), max(outer, inner))
