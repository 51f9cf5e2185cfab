"""Did the processes of all runs that are held against each other share sessions in the same way?

Linux gives each session its own share of the processors (autogroup), so processes that share one get less of
a busy machine than processes that have one each. A launcher that changes this between two runs changes their
numbers, and nothing else shows it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tiercel.results.validity import SESSIONS

#: What runs of a study that are compared have in common.
_TOGETHER = ("site", "study", "experiment", "workload", "operation", "engine", "nodes", "processes_per_node")


def mark_sessions(observations: list[dict[str, Any]]) -> None:
    """Set or clear the flag of runs whose layout is not the one that most of those beside them have.

    Where no layout is that of more than half, all have it. Engines that do not say have none.
    """
    beside: dict[tuple[Any, ...], Counter[str]] = {}
    for row in observations:
        if row["session_layout"] is not None:
            beside.setdefault(_key(row), Counter())[row["session_layout"]] += 1
    for row in observations:
        layouts = beside.get(_key(row), Counter())
        known = row["session_layout"] is not None
        other = known and 2 * layouts[row["session_layout"]] <= layouts.total()
        row["flags"] = [*(f for f in row["flags"] if f != SESSIONS), *([SESSIONS] if other else [])]


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _TOGETHER)
