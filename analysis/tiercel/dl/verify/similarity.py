"""How alike two programs' I/O is: paper 000 (DLIO), section V.B, and a stricter number beside it.

The paper scales each metric by the larger of the two values, A_i / max(A_i, B_i), so that no unit dominates,
and takes the cosine of the two vectors. That number does not see a factor which all metrics share (a program
that moves half of everything has cosine 1), so :func:`closeness` goes with it: the mean of smaller over
larger, 1 only for equal values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Values = Mapping[str, float | None]


def similarity(values: Values, reference: Values) -> float:
    """Return the cosine similarity of paper 000, 0 to 1; nan when the two share no metric.

    A metric that is 0 or missing in both says nothing and is left out; one that only one of them has is 0 in
    the other. ValueError for a negative or infinite value: all metrics are amounts.
    """
    pairs = [(a / max(a, b), b / max(a, b)) for a, b in _pairs(values, reference)]
    return _cosine(pairs)


def raw_cosine(values: Values, reference: Values) -> float:
    """Return the cosine of the unscaled values: in practice that of the largest one (bytes)."""
    return _cosine(_pairs(values, reference))


def closeness(values: Values, reference: Values) -> float:
    """Return the mean of smaller over larger of each metric, 0 to 1; nan when the two share no metric."""
    found = [min(a, b) / max(a, b) for a, b in _pairs(values, reference)]
    return sum(found) / len(found) if found else math.nan


def ratio(value: float | None, reference: float | None) -> float | None:
    """Return value over reference; None where there is no such number."""
    if value is None or not reference:
        return None
    return value / reference


def _pairs(values: Values, reference: Values) -> list[tuple[float, float]]:
    found = []
    for name in dict.fromkeys([*reference, *values]):
        a, b = values.get(name) or 0.0, reference.get(name) or 0.0
        if not (math.isfinite(a) and math.isfinite(b)) or a < 0 or b < 0:
            raise ValueError(f"{name}: {a} and {b} are not amounts")
        if a or b:
            found.append((a, b))
    return found


def _cosine(pairs: Sequence[tuple[float, float]]) -> float:
    if not pairs:
        return math.nan
    product = math.fsum(a * b for a, b in pairs)
    lengths = math.sqrt(math.fsum(a * a for a, _ in pairs)) * math.sqrt(math.fsum(b * b for _, b in pairs))
    return min(1.0, product / lengths) if lengths else 0.0
