"""What iokernel tells of what went on within a phase: over time, by process, how long operations took."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from tiercel.engines.within import Within, longest_pause, slowest_process

#: So few intervals show nothing over time.
_FEW = 2


def within_phase(repeats: Sequence[dict[str, Any]]) -> Within:
    """Return what went on within a phase: its repeats one after the other, as one."""
    series = [each["timeSeries"] for each in repeats]
    intervals = {float(each["intervalSeconds"]) for each in series}  # a longer phase has wider ones
    of = "bytes" if any(any(each["bytes"]) for each in series) else "operations"
    amounts = tuple(float(amount) for each in series for amount in each[of])
    return Within(
        operation=repeats[0].get("key") or repeats[0]["access"],
        interval=max(intervals),
        amounts=amounts if len(amounts) > _FEW and len(intervals) == 1 else (),
        speeds=_speeds(repeats),
        durations=_durations([each.get("transferLatency") or each.get("latency") or {} for each in repeats]),
    )


def _durations(histograms: Sequence[dict[str, Any]]) -> tuple[tuple[float, float, int], ...]:
    """Return the buckets of histograms together.

    The first begins at the shortest time, the last ends at the longest.
    """
    told = [each for each in histograms if each.get("buckets")]
    least = min((each.get("min") or 0.0 for each in told), default=0.0)
    most = max((each.get("max") or 0.0 for each in told), default=0.0)
    counts: Counter[tuple[float, float]] = Counter()
    for each in told:
        for low, high, many in each["buckets"]:
            counts[low, high] += many
    return tuple((max(low, least), min(high, most), many) for (low, high), many in sorted(counts.items()))


def _speeds(repeats: Sequence[dict[str, Any]]) -> dict[int, float]:
    """Return the bytes a second of each process, from its first open to its last close in each repeat."""
    moved, took = defaultdict[int, float](float), defaultdict[int, float](float)
    for result in repeats:
        for each in result.get("perRank") or []:
            moved[each["rank"]] += each["bytes"]
            took[each["rank"]] += each["closeStop"] - each["openStart"]
    return {rank: moved[rank] / time for rank, time in took.items() if time > 0}


def hidden(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a phase's aggregate hides, as far as it was recorded."""
    found: dict[str, Any] = {}
    if series := result.get("timeSeries"):
        found["longest_pause"] = longest_pause(series["operations"], series["intervalSeconds"])
    if slowest := slowest_process(_speeds([result])):
        found["slowest_rank"], found["slowest_process"] = slowest
    return found
