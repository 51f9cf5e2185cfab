"""Whether the numbers of a run can be true: against the wall time of its commands, and with one another.

The engine prints its numbers; tiercel measured how long each command took. A phase cannot last longer than
the commands that contain it, and a rate is an amount over a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tiercel.columns import COUNT, NUMBER
from tiercel.engines.measurement import CORE, Measurement
from tiercel.errors import RunFailed

#: Differences of this share come from rounding. Clocks of several nodes differ by up to this many seconds.
_ROUNDING, _CLOCKS_S = 0.02, 1.0
_TIMES = ("total_time", "open_time", "transfer_time", "close_time", "latency_mean", "latency_max")
_NUMBERS = [column.name for column in CORE if column.kind in (NUMBER, COUNT)]


def check_plausible(measurements: Iterable[Measurement], walls: Sequence[float]) -> None:
    """Raise RunFailed with both figures where a number contradicts another one.

    `walls`: seconds that tiercel measured around each of the run's commands; empty where it started none.
    """
    wall = sum(walls)
    for m in measurements:
        for name in _NUMBERS:
            value = getattr(m, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise RunFailed(f"{m.operation}: the engine reports {name} = {value}")
        for name in _TIMES if walls else ():
            value = getattr(m, name)
            if value is not None and value > wall * (1 + _ROUNDING) + _CLOCKS_S:
                raise RunFailed(
                    f"{m.operation}: the engine reports {name} = {value:.6g} s, and its commands took "
                    f"{wall:.6g} s in all"
                )
        for name, amount, unit in (("bandwidth", m.bytes_moved, "B"), ("operation_rate", m.operations, "")):
            if amount is not None and m.total_time:
                check_rate(f"{m.operation}: {name}", getattr(m, name), amount, m.total_time, unit)


def check_rate(what: str, rate: float | None, amount: float, seconds: float, unit: str = "B") -> None:
    """Raise RunFailed with the figures unless a reported rate is the amount over the time."""
    own = amount / seconds
    if rate is not None and not abs(rate - own) <= _ROUNDING * max(rate, own):
        raise RunFailed(
            f"{what}: the engine reports {rate:.6g} {unit}/s, and {amount:.6g} {unit} in {seconds:.6g} s are "
            f"{own:.6g} {unit}/s".replace(" /s", "/s").replace("  ", " ")
        )
