"""Shows to people what a study will take on a site: ``tiercel plan --cost``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from tiercel.results.raw import RawStore
from tiercel.runs.batch import over_budget
from tiercel.runs.estimate import assumptions, costs
from tiercel.runs.history import History
from tiercel.runs.planning import Project
from tiercel.units import format_duration


def print_cost(project: Project, results: Path, as_json: bool = False) -> None:
    """Print time and core-hours that the certain runs still take, and what the estimate rests on."""
    plan, store = project.plan, RawStore(results)
    history, done = History.load(plan, store), set(store.ids())
    rows = costs(project, history, done)
    limit = plan.site.limits.core_hours
    used = history.node_hours * plan.site.cores
    total = sum(row.core_hours for row in rows)
    if as_json:
        content = {
            "rows": [asdict(row) for row in rows], "core_hours": total, "core_hours_used": used,
            "core_hours_limit": limit, "assumptions": assumptions(),
        }  # fmt: skip
        print(json.dumps(content))
        return
    console = Console()
    console.print(f"[bold]Cost of study {plan.study.study} on site {plan.site.site}[/bold]")
    table = Table(box=box.SIMPLE)
    for heading in ("nodes", "jobs", "runs", "time", "core-hours", "rests on"):
        table.add_column(heading, justify="left" if heading == "rests on" else "right")
    for row in rows:
        assumed = row.runs - row.judged
        parts = [f"{row.judged} runs: similar runs"] * bool(row.judged)
        parts += [f"{assumed}: assumptions"] * bool(assumed)
        table.add_row(
            str(row.nodes), str(row.jobs), str(row.runs), _range(row.least_seconds, row.seconds),
            f"{row.core_hours:,.1f}", ", ".join(parts) or "done",
        )  # fmt: skip
    console.print(table)
    seconds = sum(row.seconds for row in rows)
    assumed = any(row.runs > row.judged for row in rows)
    console.print(
        f"{_range(sum(row.least_seconds for row in rows), seconds)} and "
        f"{'at most ' * assumed}{total:,.1f} core-hours ({plan.site.cores} cores a node) for "
        "the planned runs, without queue time. Extra repetitions depend on "
        f"{'undecided comparisons' if plan.study.decide is not None else 'the noise'}."
    )
    if assumed:
        console.print(f"Assumptions for runs without measurements: {assumptions()}.", markup=False)
    if limit is not None:
        state = (
            "used up: no more runs start" if over_budget(project, history) else "the study stops at the limit"
        )
        console.print(f"limits.core_hours: {used:,.1f} of {limit:,.1f} used; {state}.")


def _range(least: float, most: float) -> str:
    """Return a time, or from when to when it is where what is assumed leaves that open."""
    low, high = format_duration(least), format_duration(most)
    return high if low == high else f"{low} to {high}"
