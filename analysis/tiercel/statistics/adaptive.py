"""Whether a configuration needs another repetition. Called between runs, so it costs microseconds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tiercel.statistics.summary import summarize
from tiercel.study.model import Repetitions


@dataclass(frozen=True)
class Decision:
    """Go on with another repetition, or not, and why in words."""

    go_on: bool
    why: str


def enough(values: Iterable[Any], bounds: Repetitions) -> Decision:
    """Decide from the values so far: on until the half width of the median's interval meets the target.

    Fewer than six values have no 95 % interval; the range of all of them stands in for it, and
    the sentence says how surely it covers the median.
    """
    summary = summarize(values)
    n = summary.n
    if n < bounds.minimum:
        return Decision(True, f"{n} of at least {bounds.minimum} repetitions")
    width = summary.half_width
    spread = (
        f"the median is known to ±{100 * width:.2g} % ({100 * summary.coverage:.0f} % interval)"
        if math.isfinite(width)
        else "the median's interval is unknown"
    )
    if math.isfinite(width) and width <= bounds.target:
        return Decision(False, f"{spread}, target ±{100 * bounds.target:g} %, after {n} repetitions")
    if n >= bounds.maximum:
        return Decision(False, f"{spread}, but {n} repetitions are the limit")
    return Decision(True, f"{spread}, target ±{100 * bounds.target:g} %")
