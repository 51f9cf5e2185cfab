"""From a study and a site to configurations: every workload at every scale on every stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tiercel.errors import UserError, suggest
from tiercel.site.model import LayerChoice, Site, Stack
from tiercel.study.model import Doubling, Experiment, Study
from tiercel.study.plan import Configuration
from tiercel.study.workloads import Workload

#: Returns why an engine cannot do a workload on so many nodes with so many processes on each, started by that
#: launcher; or None.
Unsupported = Callable[[str, Workload, int, int, str], str | None]
#: Returns why an engine cannot do a workload through a layer on so many nodes, or None.
LayerUnsupported = Callable[[LayerChoice, str, Workload, int], str | None]

#: Returns why an engine cannot do a workload on object storage, or None.
ObjectsUnsupported = Callable[[str, Workload], str | None]


def stacks_of(
    study: Study,
    experiment: str,
    site: Site,
    layer_versions: Mapping[str, str],
    notes: list[str] | None = None,
) -> list[Stack]:
    """Return the stacks of an experiment; UserError for a storage that is not there.

    `layer_versions` has the version of every layer that is installed. An optional experiment goes without the
    stacks whose layers are not, and altogether where none of its layers is: a sentence in `notes` says so.
    """
    wanted = study.stacks_of(experiment)
    if wanted == "all":
        return [Stack(name, storage) for name, storage in site.storages.items()]
    stacks: list[Stack] = []
    lacking: dict[str, None] = {}
    for choice in wanted:
        name, layers = (choice, []) if isinstance(choice, str) else (choice.storage, choice.choices())
        if name not in site.storages and name != "all":
            raise UserError(
                f"study {study.study}: stacks: no storage named {name!r} on site {site.site}: "
                + suggest(name, site.storages)
            )
        missing = [c.layer for c in layers if c.layer not in layer_versions]
        if missing and study.experiments[experiment].optional:
            lacking |= dict.fromkeys(missing)
            continue
        versions = tuple(layer_versions[c.layer] for c in layers)
        for each in site.storages if name == "all" else [name]:
            stacks.append(Stack(each, site.storages[each], tuple(layers), versions))
    whole = bool(lacking) and not any(stack.layers for stack in stacks)
    if lacking:
        names = " and ".join(f"layer {layer}" for layer in lacking)
        how = "is left out" if whole else "goes on"
        note(notes, f"{experiment} {how} without {names}: not installed (make layers)")
    return [] if whole else stacks


def expand(
    study: Study,
    site: Site,
    versions: Mapping[str, str],
    launcher: str,
    unsupported: Unsupported,
    layer_versions: Mapping[str, str] | None = None,
    layer_unsupported: LayerUnsupported = lambda _layer, _engine, _workload, _nodes: None,
    objects_unsupported: ObjectsUnsupported = lambda _engine, _workload: None,
    notes: list[str] | None = None,
) -> list[Configuration]:
    """Return every configuration of `study` on `site`.

    `versions` maps each engine that is there to its version. A workload that none of them can do, and
    a scale that the site does not have, are UserErrors, but for an optional experiment, which goes without
    them. A workload that a layer has no part in (an
    HDF5 layer and metadata) does not run on that layer's stacks; what node-local storage cannot
    do over several nodes is left out there, with a sentence in `notes`.
    """
    found = []
    apart: Apart = {}
    left: Apart = {}
    refused: Refused = {}
    for experiment_name, experiment in study.experiments.items():
        where = f"study {study.study}: experiments.{experiment_name}"
        stacks = stacks_of(study, experiment_name, site, layer_versions or {}, notes)
        if not stacks:
            continue
        chosen = [e for e in versions if not experiment.engines or e in experiment.engines]
        if not chosen and not experiment.optional:
            raise UserError(f"{where}.engines: none of {', '.join(experiment.engines)} is installed")
        started_by = "fork" if experiment.launcher == "fork" else launcher
        for nodes, processes in _scales(experiment, site, where, notes):
            alone = site.nodes <= nodes or started_by == "fork"
            for workload_name, wanted in experiment.all_workloads().items():
                workload = _on_site(workload_name, wanted, nodes, site, alone, apart)
                reasons = {e: unsupported(e, workload, nodes, processes, started_by) for e in chosen}
                if experiment.launcher == "fork" and getattr(workload, "needs_mpi", False):
                    raise UserError(f"{where}.launcher: fork has no MPI, which {workload_name} needs")
                if all(reasons.values()):
                    why = "; ".join(f"{e}: {r}" for e, r in reasons.items()) or "no engine is installed"
                    if notes is not None and (experiment.optional or getattr(workload, "optional", False)):
                        left.setdefault((experiment_name, why), {})[workload_name] = None
                        continue
                    raise UserError(f"{where}.workloads.{workload_name}: no engine can do it ({why})")
                _refuse(refused, f"{experiment_name}/{workload_name}", workload.operation, reasons)
                found += [
                    Configuration(
                        site=site.site,
                        study=study.study,
                        experiment=experiment_name,
                        name=workload_name,
                        workload=each,
                        stack=stack,
                        engine=engine,
                        engine_version=versions[engine],
                        launcher=started_by,
                        nodes=nodes,
                        processes_per_node=processes,
                        seed=study.seed,
                        phase_time=experiment.phase_time if each.amount(processes) else None,
                    )
                    for engine, reason in reasons.items()
                    if reason is None
                    for stack, each in _on_stacks(
                        (experiment_name, workload_name),
                        workload,
                        (nodes, processes),
                        stacks,
                        site,
                        notes,
                        apart,
                    )
                    if not any(
                        layer_unsupported(c, engine, each, nodes + each.waiting_nodes(nodes))
                        for c in stack.layers
                    )
                    and not (stack.storage.objects and objects_unsupported(engine, workload))
                ]
                for stack in stacks:
                    problem = _objects_problem(stack, workload, reasons, objects_unsupported)
                    if problem:
                        note(notes, f"{experiment_name} on {stack.name}: {problem}")
                    problem = _layers_problem(
                        stack, workload, nodes + workload.waiting_nodes(nodes), reasons, layer_unsupported
                    )
                    if problem:
                        left.setdefault((experiment_name, problem), {})[workload_name] = None
    for (experiment_name, why), names in left.items():
        note(
            notes, f"{experiment_name}: {_first(names)} {'are' if len(names) > 1 else 'is'} left out ({why})"
        )
    _tell(notes, found, refused, apart)
    return found


#: Said of a read that another node cannot prepare (another_client).
_ALONE = "no other node takes part, so a node reads what it wrote itself, evicted before"

#: By stack, and what is otherwise on it over several nodes (or by experiment, and why): the workloads of
#: which that is true, each once.
Apart = dict[tuple[str, str], dict[str, None]]
#: By engine, operation and why the engine cannot do it: the workloads, each once.
Refused = dict[tuple[str, str, str], dict[str, None]]


def _refuse(refused: Refused, name: str, operation: str, reasons: Mapping[str, str | None]) -> None:
    """Take note of the engines that cannot do a workload which another one does."""
    for engine, reason in reasons.items():
        if reason is not None:
            refused.setdefault((engine, operation, reason), {})[name] = None


def _tell(notes: list[str] | None, found: Sequence[Configuration], refused: Refused, apart: Apart) -> None:
    """Add a sentence for each reason: an engine cannot do this, though its like; that is otherwise there."""
    does = {(c.engine, c.workload.operation) for c in found}
    for (engine, operation, reason), names in refused.items():
        if (engine, operation) in does:
            note(notes, f"{_first(names)}: without {engine} ({reason})")
    for (stack_name, said), names in apart.items():
        note(notes, f"{_first(names)} on {stack_name}: {said}")


def _first(names: Mapping[str, None]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{next(iter(names))}{more}"


def _on_site(name: str, workload: Workload, nodes: int, site: Site, alone: bool, apart: Apart) -> Workload:
    """Return a workload as it is done where no other node takes part (`alone`), and say so in `apart`."""
    if not (alone and workload.waiting_nodes(nodes)):
        return workload
    apart.setdefault((f"site {site.site}", _ALONE), {})[name] = None
    return workload.without_others()


def _objects_problem(
    stack: Stack, workload: Workload, reasons: Mapping[str, str | None], unsupported: ObjectsUnsupported
) -> str | None:
    """Return why no engine does a workload on a stack of object storage, or None."""
    if not stack.storage.objects:
        return None
    if stack.layers:
        return "layers stand in front of files, not of objects"
    why = [unsupported(engine, workload) for engine, reason in reasons.items() if reason is None]
    return why[0] if all(why) else None


def _layers_problem(
    stack: Stack,
    workload: Workload,
    nodes: int,
    reasons: Mapping[str, str | None],
    unsupported: LayerUnsupported,
) -> str | None:
    """Return the layer of a stack through which no engine does a workload, and why, or None."""
    able = [engine for engine, reason in reasons.items() if reason is None]
    for choice in stack.layers:
        why = [unsupported(choice, engine, workload, nodes) for engine in able]
        if all(why):
            return f"{stack.name} with {choice.layer}: {why[0]}"
    return None


def _on_stacks(
    names: tuple[str, str],
    workload: Workload,
    scale: tuple[int, int],
    stacks: list[Stack],
    site: Site,
    notes: list[str] | None,
    apart: Apart,
) -> Iterator[tuple[Stack, Workload]]:
    """Yield the stacks that can do a workload at a scale (nodes, processes of each), and as what it goes."""
    experiment, name = names
    nodes, processes = scale
    for stack in stacks:
        if stack.storage.objects and stack.layers:
            continue
        alone = site.node_local(stack.storage)
        too_small = workload.too_small(1 if alone else nodes, processes)
        if too_small:
            note(notes, f"{experiment}: {name} is left out on {nodes} x {processes} processes ({too_small})")
            continue
        if not alone:
            yield stack, workload
            continue
        each, said = workload.node_local() if nodes > 1 else (workload.without_others(), "")
        if each is not None and workload.waiting_nodes(nodes) > each.waiting_nodes(nodes):
            said = _ALONE
        if said:
            apart.setdefault((stack.name, said), {})[name] = None
        if each is not None:
            yield stack, each


def note(notes: list[str] | None, sentence: str) -> None:
    """Add a sentence, once."""
    if notes is not None and sentence not in notes:
        notes.append(sentence)


def _scales(
    experiment: Experiment, site: Site, where: str, notes: list[str] | None
) -> Iterator[tuple[int, int]]:
    words = {"half": max(1, site.processes_per_node // 2), "max": site.processes_per_node}
    wanted = [int(words.get(p, p)) if isinstance(p, str) else p for p in experiment.processes_per_node]
    many_nodes = _too_many(experiment.nodes, site.nodes)
    many_processes = _too_many(wanted, site.processes_per_node)
    if many_nodes and not _goes_on(experiment, experiment.nodes):
        raise UserError(f"{where}.nodes: {many_nodes[0]} is more than the {site.nodes} of site {site.site}")
    if many_processes and not _goes_on(experiment, experiment.processes_per_node):
        raise UserError(
            f"{where}.processes_per_node: {many_processes[0]} is more than the "
            f"{site.processes_per_node} of site {site.site}"
        )
    for numbers, of, all_of_it, what in (
        (many_nodes, experiment.nodes, experiment.nodes, "nodes"),
        (many_processes, experiment.processes_per_node, wanted, "processes on a node"),
    ):
        if numbers and getattr(of, "bounded", True):
            said = ", ".join(map(str, numbers))
            goes = "is left out: it needs" if set(all_of_it) <= set(numbers) else "goes on without"
            note(notes, f"{where.partition('experiments.')[2]} {goes} {said} {what}: the site has fewer")
    for nodes in dict.fromkeys(n for n in experiment.nodes if n not in many_nodes):
        for processes in dict.fromkeys(p for p in wanted if p not in many_processes):
            yield nodes, processes


def _goes_on(experiment: Experiment, wanted: object) -> bool:
    """Return whether what a site has fewer of is left out, rather than refused."""
    return experiment.optional or isinstance(wanted, Doubling)


def _too_many(numbers: Iterable[int], most: int) -> list[int]:
    return [n for n in dict.fromkeys(numbers) if n > most]
