"""The core-hours that a site allows a study (limits.core_hours), before any job is submitted."""

from __future__ import annotations

import json
from pathlib import Path

from tiercel.results.raw import RawStore
from tiercel.runs.batch import over_budget
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.runs.stamps import carry_out_again, stamp_of

#: In a batch's stamp: how many of its runs were left out.
LEFT_OUT = "over budget"


def settle(project: Project, results: Path) -> str:
    """Make the stamps of the plan's batches fit the budget; return a sentence where it is used up, else "".

    Used up: what is not measured gets a stamp that says so, and no job waits in a queue to find that out.
    Raised since, or lifted: such stamps go, and their batches are to be done again.
    """
    plan = project.plan
    left_out = {b.name for b in plan.batches if _left_out(stamp_of(project, results, b.name))}
    if plan.site.limits.core_hours is None and not left_out:
        return ""
    store = RawStore(results)
    history, done = History.load(plan, store), set(store.ids())
    if not over_budget(project, history):
        carry_out_again(project, results, left_out)
        return ""
    missing = 0
    for batch in plan.batches:
        stamp = stamp_of(project, results, batch.name)
        runs = sum(run.id not in done and history.wanted(run) for run in batch.runs)
        if not stamp.exists():
            missing += runs
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.write_text(json.dumps({LEFT_OUT: runs}) + "\n")
    used, allowed = history.node_hours * plan.site.cores, plan.site.limits.core_hours
    return (
        f"site {plan.site.site}: limits.core_hours are used up ({used:,.1f} of {allowed:,g}), "
        f"{missing} more runs are left out; the report is made from what there is"
    )


def _left_out(stamp: Path) -> bool:
    """Return whether a batch ended with runs left out; a stamp that is damaged is taken for such a one."""
    try:
        counts = json.loads(stamp.read_text())
        return bool(counts.get(LEFT_OUT))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError):
        return True
