"""Whether the numbers of a run can be true: against the wall time of its commands, and with one another.

The engine prints its numbers; tiercel measured how long each command took. A phase cannot last longer than
the commands that contain it, phases follow one another, and a rate is an amount over a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiercel.columns import COUNT, NUMBER
from tiercel.engines.measurement import CORE, Measurement
from tiercel.errors import RunFailed

#: Differences of this share come from rounding.
_ROUNDING = 0.02
#: Clocks of several nodes differ by up to this many seconds; times are printed to a hundredth at worst.
_CLOCKS_S, _PRINTED_S = 1.0, 0.01
#: No node moves more bytes per second than its memory can: HBM3e of one accelerator reaches 8 TB/s.
_NODE_BYTES_PER_S = 20e12
_TIMES = ("total_time", "open_time", "transfer_time", "close_time", "latency_mean", "latency_max")
_NUMBERS = [column.name for column in CORE if column.kind in (NUMBER, COUNT)]


def check_plausible(measurements: Sequence[Measurement], walls: Sequence[float], nodes: int) -> None:
    """Raise RunFailed with both figures where a number contradicts another one.

    `walls`: seconds that tiercel measured around each of the run's commands; empty where it started none.
    """
    for m in measurements:
        for name in _NUMBERS:
            value = getattr(m, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise RunFailed(f"{m.operation}: the engine reports {name} = {value}")
        for name, amount, unit in (("bandwidth", m.bytes_moved, "B"), ("operation_rate", m.operations, "")):
            if amount is not None and m.total_time:
                check_rate(f"{m.operation}: {name}", getattr(m, name), amount, m.total_time, unit)
        if m.bandwidth is not None and walls and m.bandwidth > _NODE_BYTES_PER_S * nodes:
            raise RunFailed(
                f"{m.operation}: the engine reports {m.bandwidth:.6g} B/s, and the memory of a node moves "
                f"at most {_NODE_BYTES_PER_S:.6g} B/s (nodes: {nodes})"
            )
    if walls:
        _check_times(measurements, sum(walls), _CLOCKS_S if nodes > 1 else _PRINTED_S)


def _check_times(measurements: Sequence[Measurement], wall: float, allowed: float) -> None:
    """Raise RunFailed where a time, or all phases together, last longer than the commands of the run.

    Phases follow one another. Operations of one phase run at the same time: the longest of them counts.
    """
    phases: dict[int, float] = {}
    for m in measurements:
        for name in _TIMES:
            value = getattr(m, name)
            if value is not None and value > wall * (1 + _ROUNDING) + allowed:
                raise RunFailed(
                    f"{m.operation}: the engine reports {name} = {value:.6g} s, and its commands took "
                    f"{wall:.6g} s in all"
                )
        phases[m.phase] = max(phases.get(m.phase, 0.0), m.total_time or 0.0)
    together = sum(phases.values())
    if together > wall * (1 + _ROUNDING) + allowed * len(phases):
        raise RunFailed(
            f"the engine reports {len(phases)} phases of {together:.6g} s together, and its commands took "
            f"{wall:.6g} s in all"
        )


def check_rate(what: str, rate: float | None, amount: float, seconds: float, unit: str = "B") -> None:
    """Raise RunFailed with the figures unless a reported rate is the amount over the time."""
    own = amount / seconds
    if rate is not None and not abs(rate - own) <= _ROUNDING * max(rate, own):
        raise RunFailed(
            f"{what}: the engine reports {rate:.6g} {unit}/s, and {amount:.6g} {unit} in {seconds:.6g} s are "
            f"{own:.6g} {unit}/s".replace(" /s", "/s").replace("  ", " ")
        )
