"""How numbers and names read in a report. Units come from tiercel.units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tiercel.pages.words import (
    MISSING,
    capital,
    clipped,
    count,
    factor,
    listed,
    percent,
    times,
)
from tiercel.statistics.verdict import MARGIN
from tiercel.units import format_bandwidth, format_rate, format_samples, format_whole

#: What all pages say alike; here, so that the report has one place to ask for words.
__all__ = [
    "LEVELS",
    "MISSING",
    "QUANTITIES",
    "capital",
    "clipped",
    "count",
    "factor",
    "factors",
    "interval",
    "listed",
    "operation",
    "operation_rank",
    "percent",
    "same_as",
    "scale",
    "span",
    "stack",
    "times",
    "told_apart",
    "unit",
    "value",
    "within",
]  # fmt: skip
_UNITS = {
    "bandwidth": (
        (1024.0**4, "TiB/s"),
        (1024.0**3, "GiB/s"),
        (1024.0**2, "MiB/s"),
        (1024.0, "KiB/s"),
        (1.0, "B/s"),
    ),
    "samples_per_second": ((1.0, "samples/s"),),
    "operation_rate": ((1e9, "Gop/s"), (1e6, "Mop/s"), (1e3, "kop/s"), (1.0, "op/s")),
}
_FORMATS = {
    "bandwidth": format_bandwidth,
    "operation_rate": format_rate,
    "samples_per_second": format_samples,
}
#: What is measured, in words.
QUANTITIES = {
    "bandwidth": "bandwidth",
    "operation_rate": "rate",
    "samples_per_second": "training speed",
}
#: Operations whose own names say too little.
_OPERATIONS = {
    "train": "first epoch", "train-later": "later epochs", "evaluate": "evaluation",
    "hdf5-write": "HDF5 write", "hdf5-read-first": "first epoch", "hdf5-read-later": "later epochs",
}  # fmt: skip
_LIFE = ("create", "write", "stat", "read", "rename", "remove")

#: Levels of workload features, as parts of a sentence.
LEVELS = {
    ("fsync", "write"): "an fsync after every write",
    ("fsync", "phase"): "one fsync at the end",
    ("fsync", "none"): "no fsync",
    ("pattern", "random"): "random",
    ("pattern", "sequential"): "sequential",
    ("layout", "shared"): "one shared file",
    ("layout", "file-per-process"): "a file for each process",
    ("direct", "True"): "direct I/O",
    ("direct", "False"): "the page cache",
}


def value(metric: str, number: float) -> str:
    """Return ``812 MiB/s``, ``12.3 kop/s`` or ``313 samples/s``."""
    if not math.isfinite(number):
        return MISSING
    return _FORMATS[metric](number)


def unit(metric: str, most: float) -> tuple[float, str]:
    """Return (divisor, name) of the unit for numbers up to `most`."""
    for divisor, name in _UNITS[metric]:
        if most >= divisor:
            return divisor, name
    return _UNITS[metric][-1]


def span(metric: str, median: float, low: float, high: float) -> str:
    """Return ``790–830``, in the unit in which :func:`value` shows the median."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return MISSING
    shown = value(metric, median).split()[-1]
    divisor = next(divisor for divisor, name in _UNITS[metric] if name == shown)
    said = format_whole if metric == "samples_per_second" else _digits
    return f"{said(low / divisor)}–{said(high / divisor)}"


def span_of(row: Mapping[str, Any]) -> str:
    """Return the span of a row of a summary; nothing for a single value, which says nothing of others."""
    return MISSING if row["n"] == 1 else span(row["metric"], row["median"], row["low"], row["high"])


def interval_of(row: Mapping[str, Any]) -> str:
    """Return the interval of a row of a summary, with its unit; as span_of."""
    return MISSING if row["n"] == 1 else interval(row["metric"], row["median"], row["low"], row["high"])


def interval(metric: str, median: float, low: float, high: float) -> str:
    """Return ``790–830 MiB/s``, in the unit in which :func:`value` shows the median."""
    text = span(metric, median, low, high)
    return text if text == MISSING else f"{text} {value(metric, median).split()[-1]}"


def factors(low: float, high: float) -> str:
    """Return ``3.1–3.8``."""
    return f"{factor(low)}–{factor(high)}"


def same_as(name: str, row: Mapping[str, Any]) -> str:
    """Return how two systems are called whose ratio surely lies within the margin (statistics.ranking)."""
    return f"equal to {name} {within(row)}"


def within(row: Mapping[str, Any]) -> str:
    """Return ``within 10 %``, by the margin of a comparison."""
    return f"within {100 * (row.get('margin', MARGIN) - 1):.3g}\u00a0%"


def scale(nodes: int, processes_per_node: int) -> str:
    """Return ``4 processes`` on one node, ``8 nodes × 4 processes`` on several."""
    if not nodes or not processes_per_node:
        return "unknown scale"
    processes = count(processes_per_node, "process", "processes")
    return processes if nodes == 1 else f"{nodes} nodes × {processes}"


def operation(name: str) -> str:
    """Return ``file create`` for ``file-create``, ``first epoch`` for ``train``."""
    return _OPERATIONS.get(name, name.replace("-", " "))


def operation_rank(name: str) -> tuple[bool, int, str]:
    """Return a sort key: data and files before directories, each in the order of a file's life."""
    kind, _, phase = name.rpartition("-")
    place = _LIFE.index(phase) if phase in _LIFE else len(_LIFE)
    return kind not in ("", "file"), place, name


def stack(label: str, layer: str) -> str:
    """Return the name of a stack for people: the storage, and the layers in front of it."""
    return label if layer == "none" else f"{label} with {layer.replace('+', ' and ')}"


def told_apart(labels: Sequence[str], length: int) -> list[str]:
    """Return the labels no longer than that where they still differ.

    Settings (name=value) that all labels with settings share go first, then the middle of what is too long.
    """
    if max(map(len, labels), default=0) <= length:
        return list(labels)
    settings = [found for label in labels if (found := {w for w in label.split() if "=" in w})]
    shared = set.intersection(*settings) if len(settings) > 1 else set()
    plain = [" ".join(w for w in label.split() if w not in shared) for label in labels]
    labels = plain if len(set(plain)) == len(set(labels)) else labels
    head = length // 3
    cut = [x if len(x) <= length else f"{x[:head]}…{x[head + 1 - length :]}" for x in labels]
    return cut if len(set(cut)) == len(set(labels)) else list(labels)


def _digits(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"
