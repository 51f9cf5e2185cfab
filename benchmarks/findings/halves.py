"""Who is in which half: at random by a fixed seed, every tracer and every label in both."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.findings.labels import HALVES, TABLE, Half, Trace, read_set

_SEED = 20240613


def halves(traces: Sequence[Trace]) -> dict[str, Half]:
    """Return each trace's half, by name.

    In random order, rare labels first, a trace goes where fewer traces have its labels and its tracer; where
    both have as many, the lot decides.
    """
    draw = random.Random(_SEED)
    often = Counter(label for trace in traces for label in _strata(trace))
    order = sorted(traces, key=lambda t: t.name)
    draw.shuffle(order)
    order.sort(key=lambda t: min(often[s] for s in _strata(t)))
    have: dict[Half, Counter[str]] = {half: Counter() for half in HALVES}
    chosen: dict[str, Half] = {}
    for trace in order:
        half = min(HALVES, key=lambda h: (sum(have[h][s] / often[s] for s in _strata(trace)), draw.random()))
        have[half].update(_strata(trace))
        chosen[trace.name] = half
    return chosen


def _strata(trace: Trace) -> list[str]:
    return [*(sorted(trace.labels) or [f"clean, {trace.tracer}"]), trace.tracer]


def write_halves(folder: Path) -> None:
    """Write each trace's half into the table of the set, and leave the rest of the table as it is."""
    chosen = halves(read_set(folder))
    table = folder / TABLE
    pieces = re.split(r"(?m)^(?=- name: )", table.read_text(encoding="utf-8"))
    for i, piece in enumerate(pieces):
        if found := re.match(r"- name: (\S+)", piece):
            without = re.sub(r"(?m)^  half: .*\n", "", piece)
            pieces[i] = f"{without.rstrip()}\n  half: {chosen[found[1]]}\n"
    table.write_text("".join(pieces), encoding="utf-8")
