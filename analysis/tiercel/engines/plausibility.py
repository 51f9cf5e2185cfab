"""Whether the numbers of a run can be true: against the wall time of its commands, and with one another.

The engine prints its numbers; tiercel measured how long each command took. A phase cannot last longer than
the commands that contain it, phases follow one another, and a rate is an amount over a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tiercel.columns import COUNT, NUMBER
from tiercel.engines.measurement import CORE, Measurement
from tiercel.errors import RunFailed

#: Differences of this share come from rounding.
_ROUNDING = 0.02
#: Clocks of several nodes differ by up to this many seconds; times are printed to a hundredth at worst.
_CLOCKS_S, _PRINTED_S = 1.0, 0.01
#: No node does more in a second: HBM3e of one accelerator moves 8 TB/s, and 200 cores enter the kernel 5
#: million times each.
_MOST = {"bandwidth": (20e12, "B/s"), "operation_rate": (1e9, "/s")}
#: Times within a phase; of the latencies none is longer than the next.
_LATENCIES = ("latency_p50", "latency_p90", "latency_p99", "latency_p999", "latency_max")
_WITHIN = ("open_time", "transfer_time", "close_time", "latency_mean", *_LATENCIES)
#: Percentiles come from histograms, whose classes are up to this much wide.
_CLASS = 0.1
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
        for name, (most, unit) in _MOST.items() if walls else ():
            value = getattr(m, name)
            if value is not None and value > most * nodes:
                raise RunFailed(
                    f"{m.operation}: the engine reports {name} = {value:.6g} {unit}, and a node reaches "
                    f"at most {most:.6g} {unit} (nodes: {nodes})"
                )
        if m.resident_fraction is not None and m.resident_fraction > 1 + _ROUNDING:
            raise RunFailed(f"{m.operation}: the engine reports resident_fraction = {m.resident_fraction}")
        _check_order(m)
    if walls:
        _check_times(measurements, sum(walls), _CLOCKS_S if nodes > 1 else _PRINTED_S)


def _check_times(measurements: Sequence[Measurement], wall: float, allowed: float) -> None:
    """Raise RunFailed where a time, or all phases together, last longer than the commands of the run.

    Phases follow one another. Operations of one phase run at the same time: the longest of them counts.
    """
    phases: dict[int, float] = {}
    for m in measurements:
        for name in ("total_time", *_WITHIN):
            value = getattr(m, name)
            if value is not None and value > wall * (1 + _ROUNDING) + allowed:
                raise RunFailed(
                    f"{m.operation}: the engine reports {name} = {value:.6g} s, and its commands took "
                    f"{wall:.6g} s in all"
                )
            if value is not None and m.total_time and value > m.total_time * (1 + _CLASS) + allowed:
                raise RunFailed(
                    f"{m.operation}: the engine reports {name} = {value:.6g} s in a phase of "
                    f"{m.total_time:.6g} s"
                )
        if m.role == "measured" and any(_overlap(m, other) for other in measurements):
            continue  # kinds of operations that one phase does at the same time, each reported by itself
        phases[m.phase] = max(phases.get(m.phase, 0.0), m.total_time or 0.0)
    together = sum(phases.values())
    if together > wall * (1 + _ROUNDING) + allowed * len(phases):
        raise RunFailed(
            f"the engine reports {len(phases)} phases of {together:.6g} s together, and its commands took "
            f"{wall:.6g} s in all"
        )


def _overlap(one: Measurement, other: Measurement) -> bool:
    if one.phase == other.phase or None in (one.began, other.began, one.total_time, other.total_time):
        return False
    first, second = sorted((m.began or 0.0, m.total_time or 0.0) for m in (one, other))
    return first[0] + first[1] > second[0] + _PRINTED_S


def _check_order(m: Measurement) -> None:
    """Raise RunFailed where a percentile is above a higher one, or the mean above the maximum."""
    known = [(name, value) for name in _LATENCIES if (value := getattr(m, name)) is not None]
    pairs = list(pairwise(known))
    if m.latency_mean is not None and m.latency_max is not None:
        pairs.append((("latency_mean", m.latency_mean), ("latency_max", m.latency_max)))
    for (low, lower), (high, higher) in pairs:
        if lower > higher * (1 + _CLASS):
            raise RunFailed(
                f"{m.operation}: the engine reports {low} = {lower:.6g} s and {high} = {higher:.6g} s"
            )


def check_rate(what: str, rate: float | None, amount: float, seconds: float, unit: str = "B") -> None:
    """Raise RunFailed with the figures unless a reported rate is the amount over the time."""
    own = amount / seconds
    if rate is not None and not abs(rate - own) <= _ROUNDING * max(rate, own):
        raise RunFailed(
            f"{what}: the engine reports {rate:.6g} {unit}/s, and {amount:.6g} {unit} in {seconds:.6g} s are "
            f"{own:.6g} {unit}/s".replace(" /s", "/s").replace("  ", " ")
        )
