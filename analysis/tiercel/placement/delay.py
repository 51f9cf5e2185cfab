"""What a tracer added to each call, so that a program's thinking is not taken for longer than it was.

Measured beforehand it is right within a factor of four only: a tracer that wakes on another processor delays
a call four times as long as one on the same, and which it does changes within a run. So it is fitted to what
the kernel counted: a program's gaps between its calls are what it computed, unless it slept. Its user time
under the tracer stands for that: it is 1.0 to 1.6 times the one without (caches), and the system time outside
of I/O is about as much (measured on eight programs: compilers, Python, databases, archives).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The fitted cost lies between so many times the one that was measured beforehand.
_LEAST, _MOST = 0.2, 5.0
#: A program with more than this many times its user time in its gaps slept; then nothing is fitted.
_SLEPT = 3.0


@dataclass(frozen=True)
class Delay:
    """`per_call`: seconds that a call was delayed, as measured beforehand. `user`: seconds of user time of
    the whole run, None where nobody knows; `seconds`: from its start to its end."""

    per_call: float = 0.0
    user: float | None = None
    seconds: float = 0.0


def fitted(delay: Delay, gaps: Sequence[float], calls: Sequence[int], outside: tuple[float, int]) -> float:
    """Return the seconds by which each call was delayed.

    `gaps`: seconds between a stream's replayed calls; `calls`: how many calls lie in each. `outside`: the
    same of the time before the first and after the last of all streams.
    """
    if not delay.user or not delay.per_call:
        return delay.per_call
    raw = np.array([*gaps, outside[0]])
    count = np.array([*calls, outside[1]], dtype=np.float64)

    def thinking(each: float) -> float:
        return float(np.maximum(0.0, raw - each * count).sum())

    low, high = _LEAST * delay.per_call, _MOST * delay.per_call
    if thinking(high) > _SLEPT * delay.user:
        return delay.per_call
    for _ in range(40):  # thinking falls with the cost
        middle = (low + high) / 2
        low, high = (middle, high) if thinking(middle) > delay.user else (low, middle)
    return (low + high) / 2
