"""The time of day that is never set back or forth while a program runs.

Durations and begins of phases are differences and sums of it: a time service that corrects the clock in the
middle of a phase (a step, or a slew of 500 ppm) would be in both.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, time

#: Forked processes have the same; others are as far apart as the clocks of their nodes were at their starts.
_AT_ZERO = time() - perf_counter()


def now() -> float:
    """Return seconds since 1970: those at the start of the program, and what passed since by the monotonic
    clock."""
    return _AT_ZERO + perf_counter()


def since(moment: float) -> Callable[[], float]:
    """Return a clock of the seconds since `moment`, on which programs agreed by the time of day
    (`time.time`); it goes on evenly when that is set."""
    begun = moment - time() + perf_counter()
    return lambda: perf_counter() - begun
