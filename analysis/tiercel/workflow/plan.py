"""The jobs of a study as the Snakefile declares them.

The Snakemake that a user starts makes the plan, once, and keeps it in ``.snakemake/tiercel``; those that it
starts for jobs, on this machine or on nodes, read it there. Nothing else happens while a Snakefile is parsed:
`snakemake --dag`, `--lint` or `--unlock` must do nothing, and need nothing of the site.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.project import results_folder, unwritable
from tiercel.results.raw import RawStore
from tiercel.runs.budget import stamps_within_budget
from tiercel.runs.history import History
from tiercel.runs.plan_table import print_plan
from tiercel.runs.planning import Project, make_plan
from tiercel.runs.scheduling import resources_of

Resource = Callable[..., int | str]


@dataclass(frozen=True)
class PlannedBatch:
    """A batch of runs as a job: its stamp (a file's name), and what it asks the scheduler for."""

    name: str
    round: int
    stamp: str
    resources: dict[str, int | str]


@dataclass(frozen=True)
class WorkflowPlan:
    """What the Snakefile declares. `project` is there where the plan was made, not where it was read."""

    site: str
    study: str
    batches: tuple[PlannedBatch, ...]
    traced: bool
    resource_names: tuple[str, ...]
    used_up: str = ""
    """Where limits.core_hours are used up, a sentence on what is left out."""
    project: Project | None = None

    @property
    def storages(self) -> list[str]:
        """Return the names of the site's storages, where the plan was made."""
        return [] if self.project is None else list(self.project.plan.site.storages)

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
        def again(attempt: int) -> tuple[Project, History, set[str]]:
            # Once for each attempt: thousands of records are read. What was measured since tells better.
            project = make_plan(self.site, self.study, root)
            store = RawStore(results_folder(root, self.site))
            return project, History.load(project.plan, store), set(store.ids())

        def resource(key: str) -> Resource:
            def value(wildcards: Any, attempt: int) -> int | str:
                found = self._batch(wildcards.batch)
                if attempt > 1 and found is not None:
                    project, history, done = again(attempt)
                    if (batch := project.plan.batch(wildcards.batch)) is not None:
                        return resources_of(project, batch, history, done)[key]
                # In a job whose plan has changed since it was submitted nothing is asked for any more.
                return (found or self.batches[0]).resources[key]

            return value

        return {key: resource(key) for key in self.resource_names}

    @property
    def study_name(self) -> str:
        """The study's name, where `study` may be a file of it."""
        return Path(self.study).stem

    def show(self, root: Path) -> None:
        """Print the plan, for a dry run."""
        print_plan(self.project or make_plan(self.site, self.study, root), root, sys.stderr)

    def _batch(self, name: str) -> PlannedBatch | None:
        return next((batch for batch in self.batches if batch.name == name), None)


def workflow_plan(site: str, study: str, root: Path, make: bool) -> WorkflowPlan:
    """Return the plan: made and kept where `make`, else as it was kept. UserError as for make_plan."""
    kept = root / ".snakemake" / "tiercel" / f"{site}.{Path(study).stem}.json"
    if not make and kept.exists():
        return _read(kept)
    found = _make(site, study, root)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_text(kept, json.dumps(_kept(found)))
    except OSError as error:
        error.filename = str(kept)  # of what could be opened, and not written, it has none
        raise UserError(f"{kept}: {error.strerror}{unwritable(error)}") from None
    return found


def _kept(plan: WorkflowPlan) -> dict[str, Any]:
    return {
        "site": plan.site, "study": plan.study, "batches": [asdict(batch) for batch in plan.batches],
        "traced": plan.traced, "resource_names": plan.resource_names, "used_up": plan.used_up,
    }  # fmt: skip


def _read(path: Path) -> WorkflowPlan:
    try:
        content = json.loads(path.read_text())
        batches = tuple(PlannedBatch(**each) for each in content.pop("batches"))
        names = tuple(content.pop("resource_names"))
        return WorkflowPlan(batches=batches, resource_names=names, **content)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a plan of this tiercel ({error}): start the workflow again") from None


def _make(site: str, study: str, root: Path) -> WorkflowPlan:
    project, results = make_plan(site, study, root), results_folder(root, site)
    store = RawStore(results)
    history, done = History.load(project.plan, store), set(store.ids())
    stamps, used_up = stamps_within_budget(project, results, history, done)
    batches = tuple(
        PlannedBatch(b.name, b.round, stamps[b.name], resources_of(project, b, history, done))
        for b in project.plan.batches
        if b.name in stamps
    )
    some = resources_of(project, project.plan.batches[0], history, done)
    traced = any(run.traced for run in project.plan.runs)
    return WorkflowPlan(site, study, batches, traced, tuple(some), used_up, project)
