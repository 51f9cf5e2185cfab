"""From names to a plan: loads site and study, finds the engines, orders the runs, checks the site."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from tiercel.engines import Engine, Installation, engines
from tiercel.engines.simulation import NAME, Simulation
from tiercel.errors import UserError
from tiercel.launchers import Launcher, launchers, resolve
from tiercel.layers import Layer, layers
from tiercel.programs import use_stack
from tiercel.project import results_folder
from tiercel.runs.datasets import dataset_problem
from tiercel.runs.execute import last_line
from tiercel.runs.objects import check_storage
from tiercel.runs.scratch import space_problem
from tiercel.runs.simulated import in_one_batch, once, simulated_configurations
from tiercel.runs.tracing import preload_library
from tiercel.schedulers import scheduler_of
from tiercel.schedulers.base import account
from tiercel.site import load_site
from tiercel.site.model import LayerChoice, Site, Stack
from tiercel.site.mounts import read_mounts
from tiercel.study.assumptions import assumed_seconds
from tiercel.study.expand import Capabilities, expand
from tiercel.study.load import load_study
from tiercel.study.looks import read_looks
from tiercel.study.model import Study
from tiercel.study.plan import Batch, Configuration, Run, RunPlan, order_runs
from tiercel.study.workloads import Workload

#: Runs in one job. Large enough that starting a job costs nothing beside them, small enough that a
#: lost job (walltime, preemption) loses little order; runs that finished are never repeated.
PART_SIZE = 500


@dataclass(frozen=True)
class Project:
    """A plan with everything that carries it out."""

    plan: RunPlan
    engines: Mapping[str, Engine]
    installations: Mapping[str, Installation]
    launcher: Launcher
    notes: tuple[str, ...]
    """What was left out, and what does nothing, in sentences."""
    layers: Mapping[str, tuple[Layer, Installation]] = field(default_factory=dict)


def make_plan(site_name: str, study_name: str, root: Path) -> Project:
    """Return the plan of a study on a site. UserError for anything that would make a run impossible."""
    return plan_of(load_site(site_name, root), load_study(study_name, root), root)


def plan_of(site: Site, study: Study, root: Path) -> Project:
    """Return the plan of `study` on `site`; else as make_plan."""
    results = results_folder(root, site.site)
    use_stack(results / "stack")
    launcher = resolve(site.launcher, site.launcher_options)
    scheduler_of(site)  # an unknown name is told now, not when jobs are submitted
    if site.simulated:
        study = once(study)
        configurations, nothing, notes = simulated_configurations(site, study, launcher.name)
        plan = in_one_batch(order_runs(site, study, configurations, PART_SIZE))
        return Project(plan, {NAME: Simulation()}, {NAME: nothing}, launcher, tuple(notes))
    adapters: dict[str, Engine] = {}
    found: dict[str, Installation] = {}
    for name in dict.fromkeys([*study.engines, *study.engines_where_found]):
        try:
            adapter = engines.get(name)()
        except UserError as error:
            raise UserError(f"study {study.study}: engines: {error}") from None
        if not adapter.measures:
            raise UserError(f"study {study.study}: engines: {name} is for simulated sites: --simulate")
        installation = adapter.find()
        if installation:
            adapters[name], found[name] = adapter, installation
        elif name in study.engines:
            raise UserError(f"engine {name}: not installed: neither next to Python nor on PATH")
    untraceable: list[str] = []
    if any(study.traced(name) for name in study.experiments) and preload_library() is None:
        untraceable.append("no traces: DFTracer is not installed for this machine and Python")
        study = _untraced(study)
    in_front = _find_layers(site, study)
    installed = _Installed(
        launcher=launcher.name,
        engines={name: installation.version for name, installation in found.items()},
        layers={name: installation.version for name, (_, installation) in in_front.items()},
        adapters=adapters,
        site_launcher=launcher,
        in_front=in_front,
    )
    configurations, left_out = expand(study, site, installed)
    plan = order_runs(site, study, configurations, partial(part_size, site, configurations),
                      read_looks(results, study.study))  # fmt: skip
    notes = [
        *untraceable, *left_out, *_repeated(configurations, study), *_idle(configurations, adapters)
    ]  # fmt: skip
    return Project(plan, adapters, found, launcher, tuple(notes), in_front)


@dataclass(frozen=True, kw_only=True)
class _Installed(Capabilities):
    """The engines and layers that are installed on this machine."""

    adapters: Mapping[str, Engine]
    site_launcher: Launcher
    in_front: Mapping[str, tuple[Layer, Installation]]

    def unsupported(
        self, engine: str, workload: Workload, nodes: int, processes_per_node: int, launcher: str
    ) -> str | None:
        adapter = self.adapters[engine]
        if adapter.needs_mpi and not self.site_launcher.mpi:
            return f"needs MPI and launcher {self.launcher} has none"
        if nodes > 1 and not self.site_launcher.several_nodes:
            return f"launcher {self.launcher} starts processes on one node only"
        if processes_per_node > 1 and adapter.own_processes:
            return "starts the processes that the workload names, and no others: processes_per_node: [1]"
        return adapter.unsupported(workload, nodes) or adapter.unsupported_started_by(workload, launcher)

    def unsupported_through(
        self, layer: LayerChoice, engine: str, workload: Workload, nodes: int
    ) -> str | None:
        if getattr(workload, "data_folder", None) is not None:
            return "data_folder: what is there already does not go through a layer"
        return self.in_front[layer.layer][0].unsupported(engine, workload, nodes, layer.options)

    def unsupported_on_objects(self, engine: str, workload: Workload) -> str | None:
        return self.adapters[engine].unsupported_on_objects(workload)


def _repeated(configurations: Sequence[Configuration], study: Study) -> Iterator[str]:
    """Yield a line on what is measured again because more engines are installed than the study needs."""
    further = Counter(c.engine for c in configurations if c.engine not in study.engines)
    if further:
        yield (
            f"{' and '.join(further)}: installed here, so {further.total()} of {len(configurations)} "
            "configurations are measured with them (engines_where_found: [] in the study leaves them out)"
        )


def _idle(configurations: Sequence[Configuration], adapters: Mapping[str, Engine]) -> Iterator[str]:
    """Yield a line for each set of keys of workloads that an engine takes and that do nothing on it."""
    asked = {(c.engine, c.experiment, c.name): c.workload for c in configurations}
    same: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (engine, experiment, name), workload in asked.items():
        if keys := adapters[engine].without_effect(workload):
            same.setdefault((engine, tuple(keys)), []).append(f"{experiment}/{name}")
    for (engine, idle), names in same.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more}: without effect on {engine}: {', '.join(idle)}"


def part_size(site: Site, configurations: Sequence[Configuration], nodes: int) -> int:
    """Return how many runs on so many nodes go in one job: by assumed times, to end within the walltime.

    By assumption only, never by what was measured: another cut gives jobs other names, and what was done
    would wait in the queue again.
    """
    if site.scheduler is None:
        return PART_SIZE
    mean = fmean(assumed_seconds(c) for c in configurations if c.job_nodes == nodes)
    return max(1, min(PART_SIZE, int(site.scheduler.walltime / 2 / mean)))


def _untraced(study: Study) -> Study:
    without = {name: e.model_copy(update={"trace": False}) for name, e in study.experiments.items()}
    return study.model_copy(update={"trace": False, "experiments": without})


def _find_layers(site: Site, study: Study) -> dict[str, tuple[Layer, Installation]]:
    """Return the layers that a study's stacks name; UserError for one that is unknown or not installed.

    An optional experiment goes without a layer that is not installed (study.expand says so).
    """
    found: dict[str, tuple[Layer, Installation]] = {}
    for name, experiment in study.experiments.items():
        stacks = study.stacks_of(name)
        choices = [
            choice
            for stack in ([] if stacks == "all" else stacks)
            for choice in ([] if isinstance(stack, str) else stack.choices())
        ]
        for choice in choices:
            layer = layers.get(choice.layer)()
            installation = layer.find()
            if installation is None and experiment.optional:
                continue
            if installation is None:
                raise UserError(
                    f"study {study.study}: layer {choice.layer}: not installed: {layer.how_to_build()}"
                )
            layer.check_options(choice.options, site)
            found[choice.layer] = layer, installation
    return found


def here(project: Project, batch: Batch, root: Path) -> Project:
    """Return a project with the engines and layers of a batch as they are on this node.

    UserError where one is not there, or is another version than the runs are named by.
    """
    if project.plan.site.simulated:
        return project
    use_stack(results_folder(root, project.plan.site.site) / "stack")
    configurations = [run.configuration for run in batch.runs]
    found = dict(project.installations)
    for name in {c.engine for c in configurations}:
        found[name] = _same("engine", project.engines[name].find(), found[name])
    layers = dict(project.layers)
    for name in {choice.layer for c in configurations for choice in c.stack.layers}:
        layer, planned = layers[name]
        layers[name] = layer, _same("layer", layer.find(), planned)
    return replace(project, installations=found, layers=layers)


def _same(kind: str, found: Installation | None, planned: Installation) -> Installation:
    if found is None or found.version != planned.version:
        version = "not there" if found is None else f"version {found.version}"
        raise UserError(
            f"{kind} {planned.name}: {version} on {platform.node()}, and version {planned.version} when the "
            "workflow began: run `tiercel evaluate` again (finished runs are kept)"
        )
    return found


def certain(project: Project, run: Run) -> bool:
    """Return whether a run is needed whatever the others show."""
    bounds = project.plan.study.repetitions_of(run.configuration.experiment)
    return run.calibration or run.traced or run.look > 0 or run.repetition < bounds.minimum


def check_site(project: Project) -> None:
    """Raise UserError when the site cannot carry out the plan: mounts, permissions, space, launcher.

    Where a scheduler brings the runs to other nodes, only what can be seen from here is checked, and the
    rest when the job has its nodes (runs.job).
    """
    plan = project.plan
    if plan.site.simulated:  # nothing of it is touched
        return
    scheduler = scheduler_of(plan.site)
    stacks = {c.stack.name: c.stack for c in plan.configurations}
    if scheduler is None:
        missing = project.launcher.missing()
        if missing:
            raise UserError(
                f"site {plan.site.site}: launcher {project.launcher.name}: {missing} "
                f"(allowed: auto, {', '.join(launchers)})"
            )
    else:
        missing = scheduler.missing()
        if missing:
            raise UserError(f"site {plan.site.site}: scheduler {scheduler.name}: {missing}")
        if plan.site.scheduler is not None:
            account(plan.site.scheduler)  # who pays must be known now
        stacks = {name: stack for name, stack in stacks.items() if _visible(stack)}
    for stack in stacks.values():
        check_storage(stack)
        for c in plan.configurations:
            problem = dataset_problem(c.workload, stack) if c.stack == stack else None
            if problem:
                raise UserError(f"study {plan.study.study}: {c.experiment}.{c.name}: {problem}")
        largest = max(
            (c for c in plan.configurations if c.stack == stack),
            key=lambda c: c.least.footprint(c.nodes, c.processes_per_node),
        )
        # Node-local and shared storage alike: what one node sees is what its processes write.
        nodes = largest.nodes if stack.storage.shared else 1
        problem = space_problem(stack, largest.least.footprint(nodes, largest.processes_per_node))
        if problem:
            raise UserError(f"study {plan.study.study}: {largest.experiment}.{largest.name}: {problem}")
    if scheduler is None:
        check_launcher(project)


def _visible(stack: Stack) -> bool:
    """Whether a login node has this storage too. A shared one whose variables are not set is an error."""
    if not stack.storage.shared:
        return False
    if stack.storage.objects:  # a login node reaches it, or says why not
        return True
    stack.storage.scratch_path()
    return stack.storage.mount_path() in {mount.point for mount in read_mounts()}


#: How often a launcher is started that ends of a signal: MPICH's mpiexec does (SIGPIPE), once in thousands of
#: starts of a program as short as this one, and was seen to do it twice in a row on a machine under load.
_STARTS = 5


def check_launcher(project: Project) -> None:
    """Start the launcher once on the fewest processes that prove it; UserError when it does not work."""
    if not project.launcher.mpi:
        return
    program = project.installations.get("iokernel")
    argv = [str(program.programs["mpi"]), "--version"] if program and "mpi" in program.programs else ["true"]
    if argv == ["true"] and program is not None:
        raise UserError(
            "engine iokernel: built without MPI (no mpicc when `make setup` ran): "
            f"set launcher: fork in site-configs/{project.plan.site.site}/site.yaml"
        )
    processes = min(2, project.plan.site.processes_per_node)
    command = project.launcher.command(argv, 1, processes)
    advice = f"mend it, or set launcher: fork in site-configs/{project.plan.site.site}/site.yaml"
    try:
        for _ in range(_STARTS):
            answer = _started(command)
            if answer.returncode >= 0:
                break
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"launcher {project.launcher.name}: does not start: {error}; {advice}") from None
    if answer.returncode:
        said = last_line(answer.stderr) or last_line(answer.stdout) or f"exit code {answer.returncode}"
        raise UserError(f"launcher {project.launcher.name}: does not start: {said}; {advice}")


def _started(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )
