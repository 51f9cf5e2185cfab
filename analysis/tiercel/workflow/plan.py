"""The plan of a study and its jobs, as it is kept for every process of a workflow.

The Snakemake that a user starts makes the plan, or reads what `tiercel evaluate` made, and keeps it in
``.snakemake/tiercel``. The Snakemakes that it starts for jobs, on this machine or on nodes, and
`tiercel batch` read it there. Nothing else happens while a Snakefile is parsed: `snakemake --dag`, `--lint`
or `--unlock` must do nothing, and need nothing of the site.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiercel.atomic_file import drafted
from tiercel.errors import UserError
from tiercel.project import results_folder, unwritable
from tiercel.results.raw import RawStore
from tiercel.runs.budget import stamps_within_budget
from tiercel.runs.history import History
from tiercel.runs.plan_table import print_plan
from tiercel.runs.planning import Project, make_plan
from tiercel.runs.scheduling import resources_of

Resource = Callable[..., int | str]

#: Names the kept plan that a command made and prepared the site for: its Snakemake does neither again.
_PREPARED = "TIERCEL_PREPARED_PLAN"


@dataclass(frozen=True)
class PlannedBatch:
    """A batch of runs as a job: its stamp (a file's name), and what it asks the scheduler for."""

    name: str
    round: int
    stamp: str
    resources: dict[str, int | str]


@dataclass(frozen=True)
class WorkflowPlan:
    """What the Snakefile declares and its jobs carry out."""

    project: Project
    batches: tuple[PlannedBatch, ...]
    used_up: str = ""
    """Where limits.core_hours are used up, a sentence on what is left out."""

    @property
    def site(self) -> str:
        return self.project.plan.site.site

    @property
    def study(self) -> str:
        return self.project.plan.study.study

    @property
    def storages(self) -> list[str]:
        """Return the names of the site's storages."""
        return list(self.project.plan.site.storages)

    @property
    def traced(self) -> bool:
        """Return whether any of its runs are traced."""
        return any(run.traced for run in self.project.plan.runs)

    @property
    def stamps(self) -> list[str]:
        return [batch.stamp for batch in self.batches]

    def before(self, name: str) -> list[str]:
        """Return the stamps of the round before that of batch `name`.

        None for one that is not in the plan: a job whose plan has changed since it was submitted (the batch
        says so itself).
        """
        found = self._batch(name)
        return [] if found is None else [b.stamp for b in self.batches if b.round == found.round - 1]

    def resources(self, root: Path) -> Mapping[str, Resource]:
        """Return the resources of Snakemake's rule for batches, as functions of its wildcards."""

        @cache
        def history(attempt: int) -> tuple[History, set[str]]:
            # Once for each attempt: thousands of records are read. What was measured since tells better.
            store = RawStore(results_folder(root, self.site))
            return History.load(self.project.plan, store), set(store.ids())

        def resource(key: str) -> Resource:
            def value(wildcards: Any, attempt: int) -> int | str:
                batch = self.project.plan.batch(wildcards.batch)
                if attempt > 1 and batch is not None:
                    return resources_of(self.project, batch, *history(attempt))[key]
                # In a job whose plan has changed since it was submitted nothing is asked for any more.
                return (self._batch(wildcards.batch) or self.batches[0]).resources[key]

            return value

        return {key: resource(key) for batch in self.batches[:1] for key in batch.resources}

    def show(self, root: Path) -> None:
        """Print the plan, for a dry run."""
        print_plan(self.project, root, sys.stderr)

    def _batch(self, name: str) -> PlannedBatch | None:
        return next((batch for batch in self.batches if batch.name == name), None)


def workflow_plan(site: str, study: str, root: Path, make: bool) -> WorkflowPlan:
    """Return the plan: made and kept where `make`, else as it was kept. UserError as for make_plan."""
    kept = _kept(site, study, root)
    if (make and not is_prepared(site, study, root)) or not kept.exists():
        return keep(make_plan(site, study, root), root)
    return read_plan(site, study, root)


def is_prepared(site: str, study: str, root: Path) -> bool:
    """Return whether the command that started this Snakemake made its plan and prepared the site."""
    return os.environ.get(_PREPARED) == str(_kept(site, study, root))


def hand_over(project: Project, root: Path) -> None:
    """Keep a plan, for whose runs the site is prepared, for the Snakemake that this process starts next."""
    keep(project, root)
    os.environ[_PREPARED] = str(_kept(project.plan.site.site, project.plan.study.study, root))


def plan_again() -> None:
    """Have the next Snakemake of this process tree make the plan, and prepare the site, itself."""
    os.environ.pop(_PREPARED, None)


def keep(project: Project, root: Path) -> WorkflowPlan:
    """Write down a plan with its jobs as they are now (finished runs, core-hours used), and return it."""
    plan, results = project.plan, results_folder(root, project.plan.site.site)
    store = RawStore(results)
    history, done = History.load(plan, store), set(store.ids())
    stamps, used_up = stamps_within_budget(project, results, history, done)
    batches = tuple(
        PlannedBatch(b.name, b.round, stamps[b.name], resources_of(project, b, history, done))
        for b in plan.batches
        if b.name in stamps
    )
    found = WorkflowPlan(project, batches, used_up)
    path = _kept(plan.site.site, plan.study.study, root)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with drafted(path) as draft:
            draft.write_bytes(pickle.dumps(found))
    except OSError as error:
        error.filename = str(path)  # of what could be opened, and not written, it has none
        raise UserError(f"{path}: {error.strerror}{unwritable(error)}") from None
    return found


def read_plan(site: str, study: str, root: Path) -> WorkflowPlan:
    """Return the plan as it was kept; UserError where there is none that this tiercel can read."""
    path = _kept(site, study, root)
    try:
        found = pickle.loads(path.read_bytes())
        if not isinstance(found, WorkflowPlan):
            raise TypeError(f"a {type(found).__name__}")
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to call
        raise UserError(f"{path}: not a plan of this tiercel ({error}): start the workflow again") from None
    return found


def _kept(site: str, study: str, root: Path) -> Path:
    return root / ".snakemake" / "tiercel" / f"{site}.{Path(study).stem}.plan"
