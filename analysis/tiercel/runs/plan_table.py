"""Shows a plan to people: what would run, how often at least and at most."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.errors import one_line
from tiercel.runs.planning import Project, certain
from tiercel.site.facts import standing_of
from tiercel.statistics.decide import smallest_detectable
from tiercel.statistics.verdict import MINIMUM
from tiercel.study.plan import Configuration
from tiercel.units import format_duration, format_share

#: The variation between repetitions for which the plan says what it can detect.
NOISE = 0.1


def print_plan(project: Project, root: Path, stream: TextIO | None = None) -> None:
    """Print one row for each workload, the totals, what was left out, and how sure the site's facts are."""
    plan = project.plan
    console = Console(file=stream)
    stacks = dict.fromkeys(f"{c.stack.storage.label or c.stack.name}" for c in plan.configurations)
    # Titles and labels are of files that others may have made: a terminal takes nothing else from them.
    first = Text(f"Study {plan.study.study} on site {plan.site.site}", style="bold")
    console.print(first.append(f"  {one_line(plan.study.title)}", style="not bold"))
    console.print(f"storage systems  {one_line(', '.join(stacks))}", markup=False)
    engines = (f"{name} {i.version}" for name, i in project.installations.items())
    console.print(f"engines          {', '.join(engines)}, started by {project.launcher.name}", markup=False)
    table = Table(box=box.SIMPLE)
    for heading in ("experiment", "workload", "nodes", "processes"):
        table.add_column(heading)
    for heading in ("runs", "at most"):
        table.add_column(heading, justify="right")
    least: Counter[tuple[str, str]] = Counter()
    most: Counter[tuple[str, str]] = Counter()
    for run in plan.runs:
        key = (run.configuration.experiment, run.configuration.name)
        most[key] += 1
        least[key] += certain(project, run)
    groups: dict[tuple[str, str], list[Configuration]] = {}
    for c in plan.configurations:
        groups.setdefault((c.experiment, c.name), []).append(c)
    groups, least, most = _folded(project, groups, least, most)
    for key, members in groups.items():
        table.add_row(
            *key,
            ", ".join(str(n) for n in sorted({c.nodes for c in members})),
            ", ".join(str(n) for n in sorted({c.processes_per_node for c in members})),
            str(least[key]),
            str(most[key]),
        )
    console.print(table)
    for note in project.notes:
        console.print(note, markup=False)
    if said := standing_of(plan.site, root):
        console.print(said, markup=False)
    calibrations = sum(run.calibration for run in plan.runs)
    if calibrations:
        console.print(
            f"{calibrations} calibration runs choose the amount of data for the others (phase_time)."
        )
    certain_runs, all_runs = sum(least.values()), sum(most.values())
    spread = f", at most {all_runs} (noisy results get more repetitions)" if all_runs > certain_runs else ""
    console.print(f"{certain_runs} runs{spread}.")
    console.print(_detectable(project))
    if plan.study.decide is not None:
        time = format_duration(plan.study.decide)
        console.print(f"Then at most {time} of extra repetitions for undecided comparisons (decide).")


def _detectable(project: Project) -> str:
    """Say the smallest difference between two stacks that the plan can detect."""
    study = project.plan.study
    workloads: dict[tuple[str, str], set[tuple[int, int]]] = {}
    for c in project.plan.configurations:
        workloads.setdefault((c.experiment, c.name), set()).add((c.nodes, c.processes_per_node))
    family = max(len(workloads), 1)
    found = [
        smallest_detectable(NOISE, study.repetitions_of(name).minimum, len(scales), family)
        for (name, _), scales in workloads.items()
    ]
    blind = sum(math.isinf(ratio) for ratio in found)
    if blind == len(found):
        return f"Detects no difference: fewer than {MINIMUM} repetitions decide nothing."
    rest = f"; nothing in {blind} of {family} workloads (fewer than {MINIMUM} repetitions)" if blind else ""
    worst = max(ratio for ratio in found if math.isfinite(ratio))
    noise = f"{format_share(NOISE)} noise between repetitions, where layouts are alike and nothing drifts"
    return f"Smallest difference that this study detects: {worst:.2f}x at {noise}{rest}."


def _folded(
    project: Project,
    groups: dict[tuple[str, str], list[Configuration]],
    least: Counter[tuple[str, str]],
    most: Counter[tuple[str, str]],
) -> tuple[dict[tuple[str, str], list[Configuration]], Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return the same with the hundreds of workloads of a sweep in one row."""
    swept = {
        (name, workload)
        for name, experiment in project.plan.study.experiments.items()
        for workload in (experiment.sweep.workloads if experiment.sweep else {})
    }
    sizes = Counter(experiment for experiment, _ in swept)
    rows: dict[tuple[str, str], list[Configuration]] = {}
    few: Counter[tuple[str, str]] = Counter()
    many: Counter[tuple[str, str]] = Counter()
    for key, members in groups.items():
        row = (key[0], f"sweep of {sizes[key[0]]} workloads") if key in swept else key
        rows.setdefault(row, []).extend(members)
        few[row] += least[key]
        many[row] += most[key]
    return rows, few, many
