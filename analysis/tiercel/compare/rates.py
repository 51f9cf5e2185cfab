"""What is a rate, and what only stands where one should: missing, infinite, zero or negative values.

Such values enter no ratio. They are counted and said, and a side on which half of a number's repetitions or
more gave no rate has lost it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from tiercel.statistics.summary import Values, finite


def rates(values: Iterable[Any]) -> Values:
    """Return the values that are rates: finite and greater than zero."""
    found = finite(values)
    return found[found > 0]


def strays(values: Iterable[Any]) -> int:
    """Return how many of the values are no rates."""
    every = list(values)
    return len(every) - len(rates(every))


def is_lost(values: Iterable[Any]) -> bool:
    """Return whether half of the repetitions or more gave no rate, as where the median is zero."""
    every = list(values)
    return 2 * strays(every) >= len(every)


def said_of(values: Iterable[Any]) -> str:
    """Return what the values that are no rates are: ``4 are zero, 1 is missing``."""
    counts = {"missing or infinite": 0, "negative": 0, "zero": 0}
    for value in pd.to_numeric(pd.Series(list(values), dtype=object), errors="coerce"):
        if not len(finite([value])):
            counts["missing or infinite"] += 1
        elif value <= 0:
            counts["negative" if value < 0 else "zero"] += 1
    return ", ".join(f"{n} {'is' if n == 1 else 'are'} {word}" for word, n in counts.items() if n)
