"""Limits on the use of a cell of the first screen: what a reader must know before using its advice.

Each is a few words, printed inside the cell by the page and the terminal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tiercel.report.classes import Key, WorkloadClass
from tiercel.report.data import Results, stack_key
from tiercel.report.recommend import Recommendation
from tiercel.report.recommend.model import SYNCED
from tiercel.traced import load_traces
from tiercel.traced.tables import TRACES

#: Limits by (class, stack).
Limits = Mapping[tuple[Key, str], tuple[str, ...]]


def cell_limits(
    results: Results, folder: Path, found: Sequence[WorkloadClass], recommended: Sequence[Recommendation]
) -> Limits:
    """Return the limits of each class on each stack; nothing for a cell without any."""
    from_memory = _read_from_memory(results, folder)
    copying = {(r.of.key, r.faster): _copying(r) for r in recommended if r.faster}
    limits = {}
    for c in found:
        for stack, number in c.numbers.items():
            cached = "" if number.cold or stack in results.memory else "possibly from a cache"
            reads = c.operation in ("read", "train") and stack not in results.memory
            if reads and (*c.key[:2], stack) in from_memory:
                cached = "reads served from memory (traced run)"
            deletions = "slowed by earlier deletions" if number.held_back else ""
            texts = (cached, deletions, copying.get((c.key, stack), ""))
            if any(texts):
                limits[c.key, stack] = tuple(filter(None, texts))
    return limits


def _copying(r: Recommendation) -> str:
    """Return when copying files to faster storage pays; empty where it always does or is unknown."""
    if r.copying == "pays" and r.staging is not None and (r.staging.pays_from or 1) > 1:
        return f"copying pays from use {r.staging.pays_from}"
    if r.unknown == SYNCED:
        return "not for data that must survive a restart"
    return {"only if results are not kept": f"pays {r.copying}", "never pays": "copying never pays"}.get(
        r.copying, ""
    )


def _read_from_memory(results: Results, folder: Path) -> set[tuple[str, str, str]]:
    """Return (experiment, workload, stack) whose traced run read mostly from memory."""
    if not (folder / TRACES).is_file():
        return set()
    return {
        (row["experiment"], row["workload"], stack_key(row["storage"], row["layer"]))
        for row in load_traces(folder, results.study.study).to_dict("records")
        if isinstance(row["findings"], str)
        and any(finding["rule"] == "cached-reads" for finding in json.loads(row["findings"]))
    }
