"""What a tracer added to each call, so that a program's thinking is not taken for longer than it was.

Measured beforehand it is right within a factor of four only: a tracer that wakes on another processor delays
a call four times as long as one on the same, one tracer of several processes lets them queue, and which it
does changes within a run. So it is fitted to what the kernel counted: a program's gaps between its calls are
what it computed, unless it slept. That is its processor time under the tracer, less what the tracer adds to
that (some 10 us of user time and 20 us of system time a call, measured beforehand), and less what the calls
themselves took of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The fitted cost lies between so many times the one that was measured beforehand.
_LEAST, _MOST = 0.2, 5.0
#: A program that has more than this many times its computing in its gaps, and this share of all that was
#: in them, however much a call costs, slept; then nothing is fitted.
_SLEPT, _SLEPT_SHARE = 3.0, 0.2
#: The tracer adds no more than this share of the user time that was counted.
_ADDED = 0.5
#: A call keeps a processor no longer than that, seconds; what it takes beyond is waiting.
IN_CALL_S = 20e-6


@dataclass(frozen=True)
class Delay:
    """`per_call`: seconds that a call was delayed, as measured beforehand. `user` and `system`: seconds of
    processor time of the whole run, None where nobody knows; `seconds`: from its start to its end.
    `user_per_call`, `system_per_call`: what of these the tracer adds."""

    per_call: float = 0.0
    user: float | None = None
    seconds: float = 0.0
    system: float = 0.0
    user_per_call: float = 0.0
    system_per_call: float = 0.0
    told: float = 0.0
    """What of the delay is in the call's own time in the trace."""

    def computed(self, calls: int, in_calls: float) -> float | None:
        """Return the seconds that a program computed between its calls; None: nobody knows.

        `in_calls`: seconds of processor time that the kernel needed for its calls.
        """
        if not self.user:
            return None
        added = min(self.user_per_call * calls, _ADDED * self.user)
        return self.user - added + max(0.0, self.system - self.system_per_call * calls - in_calls)


def fitted(
    delay: Delay, gaps: Sequence[float], calls: Sequence[int], outside: tuple[float, int],
    computed: float | None,
) -> float:  # fmt: skip
    """Return the seconds by which each call was delayed.

    `gaps`: seconds between a stream's replayed calls; `calls`: how many calls lie in each. `outside`: the
    same of the time before the first and after the last of all streams. `computed`: see :class:`Delay`.
    """
    if not computed or not delay.per_call:
        return delay.per_call
    raw = np.array([*gaps, outside[0]])
    count = np.array([*calls, outside[1]], dtype=np.float64)

    def thinking(each: float) -> float:
        return float(np.maximum(0.0, raw - each * count).sum())

    low, high = _LEAST * delay.per_call, _MOST * delay.per_call
    if thinking(high) > max(_SLEPT * computed, _SLEPT_SHARE * float(raw.sum())):
        return delay.per_call
    for _ in range(40):  # thinking falls with the cost
        middle = (low + high) / 2
        low, high = (middle, high) if thinking(middle) > computed else (low, middle)
    return (low + high) / 2
