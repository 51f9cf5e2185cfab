"""The bootstrap interval of a difference of medians: seconds saved, say, where a ratio says too little."""

from __future__ import annotations

import numpy as np

from tiercel.statistics.bootstrap import drawn_medians
from tiercel.statistics.summary import Values


def difference_interval(a: Values, b: Values, confidence: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Return the interval of median(a) - median(b); the samples are drawn apart from each other.

    With few values it is too narrow, as every bootstrap of them (see tiercel.statistics.bootstrap).
    """
    random = np.random.default_rng(seed)
    differences = drawn_medians(a, random) - drawn_medians(b, random)
    tail = (1 - confidence) / 2
    low, high = np.quantile(differences, [tail, 1 - tail])
    return float(low), float(high)
