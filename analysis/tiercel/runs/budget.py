"""The core-hours that a site allows a study (limits.core_hours), before any job is submitted."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

from tiercel.runs.batch import over_budget
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.runs.stamps import stamp_name, stamps_folder

#: In a batch's stamp: how many of its runs were left out.
LEFT_OUT = "over budget"


def stamps_within_budget(
    project: Project, results: Path, history: History, done: set[str]
) -> tuple[dict[str, str], str]:
    """Return the stamps of the batches that fit the budget, by batch, and a sentence where it is used up.

    Used up: batches that nobody began are left out, and no job waits in a queue to find that out. Raised
    since, or lifted: a batch that ended with runs left out gets a new stamp, so it is to be done again. So
    does a batch that lacks a run which is wanted now: its folder was moved away, say. Nothing is written.
    """
    plan = project.plan
    folder = stamps_folder(results, plan.study.study)
    if not over_budget(project, history):
        return {
            batch.name: _to_be_made(
                folder, batch.name, any(run.id not in done and history.wanted(run) for run in batch.runs)
            )
            for batch in plan.batches
        }, ""
    stamps = {}
    missing = 0
    for batch in plan.batches:
        made = _made(folder, batch.name)
        if made:
            stamps[batch.name] = made[-1]
        else:
            missing += sum(run.id not in done and history.wanted(run) for run in batch.runs)
    used, allowed = history.node_hours * plan.site.cores, plan.site.limits.core_hours
    return stamps, (
        f"site {plan.site.site}: limits.core_hours are used up ({used:,.1f} of {allowed:,g}), "
        f"{missing} more runs are left out; the report is made from what there is"
    )


def _made(folder: Path, batch: str) -> list[str]:
    """Return the names of the stamps of a batch that are there, in order."""
    names: list[str] = []
    for number in count():
        name = stamp_name(batch, number)
        if not (folder / name).exists():
            return names
        names.append(name)
    return names


def _to_be_made(folder: Path, batch: str, lacks_runs: bool) -> str:
    """Return the stamp that says that a batch was carried out whole: the last one, or one that is to come."""
    made = _made(folder, batch)
    whole = made and not lacks_runs and not _left_out(folder / made[-1])
    return made[-1] if whole else stamp_name(batch, len(made))


def _left_out(stamp: Path) -> bool:
    """Return whether a batch ended with runs left out; a stamp that is damaged is taken for such a one."""
    try:
        return bool(json.loads(stamp.read_text()).get(LEFT_OUT))
    except (OSError, ValueError, AttributeError):
        return True
