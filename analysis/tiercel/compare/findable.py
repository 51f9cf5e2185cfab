"""How small a slowdown a row could have shown, so that "nothing is slower" says what it is worth.

A row is asked again with the other side's values divided by more and more: same scatter, same noise, same
other rows. Where its verdict turns to slower lies the ratio that could just have been found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiercel.statistics.comparison import ALPHA, NO_PAIR, Comparison, rank_test, step_up
from tiercel.statistics.summary import Values

Strata = Sequence[tuple[Values, Values]]
"""Values of the other side and of the baseline, one pair for each scale."""

#: Halvings of the span (of logarithms) in which the ratio is sought: finer than any scatter.
_STEPS = 16


def findable(rows: Sequence[Comparison], place: int, strata: Strata) -> tuple[float, str]:
    """Return the largest ratio below 1 at which row `place` of a family would have been claimed as slower.

    NaN where no ratio would have been, and then why; the other rows are as they are.
    """
    row = rows[place]
    if not math.isfinite(row.ratio):
        return math.nan, row.reason
    if not row.floor.known:
        return math.nan, NO_PAIR
    others = [c.p_value for i, c in enumerate(rows) if i != place]
    if step_up([row.smallest_p, *others])[0] >= ALPHA:
        among = f" among {len(rows)} rows" if row.smallest_p < ALPHA else ""
        return math.nan, f"too few repetitions for a rank test at 5 %{among} ({row.n_a} against {row.n_b})"
    pairs = [(a, b) for a, b in strata if len(a) and len(b)]
    # Below this the interval lies outside the noise; at the other every value lies below all of the baseline.
    clear = row.floor.low * row.ratio / row.high
    apart = min(float(b.min() / a.max()) for a, b in pairs) * row.ratio * (1 - 1e-9)
    if clear <= apart:
        return clear, ""
    low, high = math.log(apart), math.log(clear)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        factor = math.exp(middle) / row.ratio
        found = step_up([rank_test([(a * factor, b) for a, b in pairs]), *others])[0] < ALPHA
        low, high = (middle, high) if found else (low, middle)
    return math.exp(low), ""
