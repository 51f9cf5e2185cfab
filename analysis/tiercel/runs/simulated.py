"""The plan of a simulated site, and its runs: the same plan as for the machine, but for what repeats.

A model gives the same number again, so there is one run of each configuration: neither repetitions nor twins
nor traces, and no calibrations (the amounts are the study's).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tiercel.engines import Installation, Measurement, Task
from tiercel.engines.simulation import NAME, Simulation
from tiercel.errors import UserError
from tiercel.runs.execute import Deed, Stages
from tiercel.simulation.phases import lacking, unknown
from tiercel.site.model import Site
from tiercel.study.expand import Capabilities, expand
from tiercel.study.model import Repetitions, Study
from tiercel.study.plan import Amount, Batch, Configuration, Run, RunPlan
from tiercel.study.workloads import Workload

ONCE = Repetitions(minimum=1, maximum=1)


def once(study: Study) -> Study:
    """Return a study of one run for each configuration, which goes on without what cannot be simulated."""
    of_its_own: dict[str, Any] = {"repetitions": None, "twins": None, "trace": None, "engines": [],
                                  "phase_time": None, "optional": True}  # fmt: skip
    experiments = {name: e.model_copy(update=of_its_own) for name, e in study.experiments.items()}
    update = {"repetitions": ONCE, "twins": False, "trace": False, "decide": None, "experiments": experiments}
    return study.model_copy(update=update)


class _Simulated(Capabilities):
    """What the model can simulate."""

    def unsupported(self, engine: str, workload: Workload, nodes: int, *_scale: object) -> str | None:
        return Simulation().unsupported(workload, nodes)


def simulated_configurations(
    site: Site, study: Study, launcher: str
) -> tuple[list[Configuration], Installation, list[str]]:
    """Return what of a study can be simulated on a site, the engine, and a sentence for whatever cannot.

    UserError where nothing can be.
    """
    installation = Simulation().of_storages(site.storages.values())
    layers = {choice.layer: "" for choice in study.layer_choices()}
    planned, left_out = expand(study, site, _Simulated(launcher, {NAME: installation.version}, layers))
    notes = dict.fromkeys(left_out)
    found = []
    for c in planned:
        if why := _not_simulated(c):
            notes[why] = None
        else:
            found.append(c)
    for c in found:
        if some := unknown(c.stack.storage, c.workload, c.nodes, c.processes_per_node):
            name = c.stack.storage.label or c.stack.name
            notes[
                f"{name}, {c.workload.operation}: unknown, at most what is told: no figure is given for "
                f"{', '.join(some)}"
            ] = None
    if not found:
        raise UserError(
            f"site {site.site}: nothing of study {study.study} can be simulated: {'; '.join(notes)}"
        )
    return found, installation, list(notes)


def in_one_batch(plan: RunPlan) -> RunPlan:
    """Return a plan with all runs in one job: there are no nodes to ask for, and a job takes longer to start
    than all runs to compute."""
    most = max(batch.nodes for batch in plan.batches)
    return replace(plan, batches=(Batch(0, most, 0, tuple(plan.runs)),))


def simulation_of(run: Run) -> Deed:
    """Return what carries out a simulated run: its numbers by the topology of its storage."""
    c = run.configuration

    def do(folder: Path, _steps: list[dict[str, Any]]) -> Stages[tuple[list[Measurement], Amount | None]]:
        yield from ()  # no data of a model rests
        engine = Simulation()
        task = Task(c.workload, c.nodes, c.processes_per_node, folder, folder, run.seed, c.launcher)
        engine.simulate(task, c.stack.storage)
        return engine.parse(task, folder), None

    return do


def _not_simulated(c: Configuration) -> str | None:
    """Return why a configuration cannot be simulated, or None."""
    name = c.stack.storage.label or c.stack.name
    if c.stack.layers:
        return f"{c.experiment} on {name} with {c.stack.layer}: layers are not simulated"
    if lacks := lacking(c.stack.storage, c.workload, c.nodes, c.processes_per_node):
        return f"{name}, {c.workload.operation}: not simulated: the topology gives no {', no '.join(lacks)}"
    return None
