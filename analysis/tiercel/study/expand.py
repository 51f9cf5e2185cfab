"""From a study and a site to configurations: every workload at every scale on every stack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tiercel.errors import UserError, suggest
from tiercel.site.model import LayerChoice, Site, Stack
from tiercel.study.model import Doubling, Experiment, Study
from tiercel.study.plan import Configuration
from tiercel.study.workloads import Workload


@dataclass(frozen=True)
class Capabilities:
    """The engines and layers of a machine, and what they can do; by itself, everything."""

    launcher: str
    engines: Mapping[str, str]
    """The version of each engine, by name."""
    layers: Mapping[str, str] = field(default_factory=dict)
    """The version of each layer that is installed, by name."""

    def unsupported(
        self, engine: str, workload: Workload, nodes: int, processes_per_node: int, launcher: str
    ) -> str | None:
        """Return why an engine cannot do a workload at a scale, started by `launcher`; or None."""
        return None

    def unsupported_through(
        self, layer: LayerChoice, engine: str, workload: Workload, nodes: int
    ) -> str | None:
        """Return why an engine cannot do a workload through a layer on so many nodes, or None."""
        return None

    def unsupported_on_objects(self, engine: str, workload: Workload) -> str | None:
        """Return why an engine cannot do a workload on object storage, or None."""
        return None


def expand(study: Study, site: Site, capabilities: Capabilities) -> tuple[list[Configuration], list[str]]:
    """Return every configuration of `study` on `site`, and a sentence for whatever is left out.

    A workload that no engine can do, and a scale or a storage that the site does not have, are UserErrors. An
    optional experiment is planned without them. A workload that a layer has no part in (an HDF5 layer and
    metadata) does not run on that layer's stacks. What node-local storage cannot do over several nodes is
    left out there.
    """
    expansion = _Expansion(study, site, capabilities)
    found = [
        c for name, experiment in study.experiments.items() for c in expansion.experiment(name, experiment)
    ]
    expansion.conclude(found)
    return found, list(expansion.notes)


#: The reason when a read that another node should prepare (another_client) has no other node.
_ALONE = "no other node takes part, so a node reads what it wrote itself, evicted before"


class _Expansion:
    """Expands the experiments of a study one by one, and collects the sentences about what is left out."""

    def __init__(self, study: Study, site: Site, capabilities: Capabilities) -> None:
        self._study, self._site, self._can = study, site, capabilities
        #: An ordered set.
        self.notes: dict[str, None] = {}
        # Workloads (an ordered set) that are done differently, by stack and difference; that are left out, by
        # experiment and reason; that an engine cannot do although another does, by engine, operation, reason.
        self._apart: dict[tuple[str, str], dict[str, None]] = {}
        self._left: dict[tuple[str, str], dict[str, None]] = {}
        self._refused: dict[tuple[str, str, str], dict[str, None]] = {}

    def experiment(self, name: str, experiment: Experiment) -> Iterator[Configuration]:
        """Yield the configurations of an experiment."""
        where = f"study {self._study.study}: experiments.{name}"
        stacks = self._stacks(name)
        if not stacks:
            return
        chosen = [e for e in self._can.engines if not experiment.engines or e in experiment.engines]
        if not chosen and not experiment.optional:
            raise UserError(f"{where}.engines: none of {', '.join(experiment.engines)} is installed")
        launcher = "fork" if experiment.launcher == "fork" else self._can.launcher
        for nodes, processes in self._scales(name, experiment, where):
            for workload_name, wanted in experiment.all_workloads().items():
                workload = self._on_site(workload_name, wanted, nodes, launcher)
                names = name, workload_name
                reasons = {e: self._can.unsupported(e, workload, nodes, processes, launcher) for e in chosen}
                able = self._able(names, experiment, workload, reasons)
                for engine in able:
                    for stack, each in self._on_stacks(names, workload, (nodes, processes), stacks):
                        if self._refusal(stack, engine, each, nodes + each.waiting_nodes(nodes)) is None:
                            yield Configuration(
                                site=self._site.site,
                                study=self._study.study,
                                experiment=name,
                                name=workload_name,
                                workload=each,
                                stack=stack,
                                engine=engine,
                                engine_version=self._can.engines[engine],
                                launcher=launcher,
                                nodes=nodes,
                                processes_per_node=processes,
                                seed=self._study.seed,
                                phase_time=experiment.phase_time if each.amount(processes) else None,
                                simulated=self._site.simulated,
                            )
                for stack in stacks if able else ():
                    self._note_refusals(names, stack, workload, nodes, able)

    def _able(
        self,
        names: tuple[str, str],
        experiment: Experiment,
        workload: Workload,
        reasons: Mapping[str, str | None],
    ) -> list[str]:
        """Return the engines that can do a workload, of those in `reasons`, which says why others cannot."""
        name, workload_name = names
        where = f"study {self._study.study}: experiments.{name}"
        if experiment.launcher == "fork" and getattr(workload, "needs_mpi", False):
            raise UserError(f"{where}.launcher: fork has no MPI, which {workload_name} needs")
        if all(reasons.values()):
            why = "; ".join(f"{e}: {r}" for e, r in reasons.items()) or "no engine is installed"
            if not (experiment.optional or getattr(workload, "optional", False)):
                raise UserError(f"{where}.workloads.{workload_name}: no engine can do it ({why})")
            self._left.setdefault((name, why), {})[workload_name] = None
            return []
        for engine, reason in reasons.items():
            if reason is not None:
                key = (engine, workload.operation, reason)
                self._refused.setdefault(key, {})[f"{name}/{workload_name}"] = None
        return [engine for engine, reason in reasons.items() if reason is None]

    def conclude(self, found: Iterable[Configuration]) -> None:
        """Add a sentence for each reason why workloads are left out or done differently."""
        for (experiment, why), names in self._left.items():
            self._note(f"{experiment}: {_first(names)} {'are' if len(names) > 1 else 'is'} left out ({why})")
        does = {(c.engine, c.workload.operation) for c in found}
        for (engine, operation, reason), names in self._refused.items():
            if (engine, operation) in does:
                self._note(f"{_first(names)}: without {engine} ({reason})")
        for (stack_name, difference), names in self._apart.items():
            self._note(f"{_first(names)} on {stack_name}: {difference}")

    def _note(self, sentence: str) -> None:
        self.notes[sentence] = None

    def _stacks(self, experiment: str) -> list[Stack]:
        """Return the stacks of an experiment; UserError for a storage that is not there.

        An optional experiment is planned without the stacks whose layers are not installed, and not at all
        where none of its layers is.
        """
        study, site = self._study, self._site
        storages, wanted = site.storages, study.stacks_of(experiment)
        if wanted == "all":
            return [Stack(name, storage) for name, storage in storages.items()]
        stacks: list[Stack] = []
        lacking: dict[str, None] = {}
        for choice in wanted:
            name, layers = (choice, []) if isinstance(choice, str) else (choice.storage, choice.choices())
            if name not in storages and name != "all":
                raise UserError(
                    f"study {study.study}: stacks: no storage named {name!r} on site {site.site}: "
                    + suggest(name, storages)
                )
            missing = [c.layer for c in layers if c.layer not in self._can.layers]
            if missing and study.experiments[experiment].optional:
                lacking |= dict.fromkeys(missing)
                continue
            versions = tuple(self._can.layers[c.layer] for c in layers)
            for each in storages if name == "all" else [name]:
                stacks.append(Stack(each, storages[each], tuple(layers), versions))
        none_left = bool(lacking) and not any(stack.layers for stack in stacks)
        if lacking:
            names = " and ".join(f"layer {layer}" for layer in lacking)
            how = "is left out" if none_left else "goes on"
            self._note(f"{experiment} {how} without {names}: not installed (make layers)")
        return [] if none_left else stacks

    def _scales(self, name: str, experiment: Experiment, where: str) -> Iterator[tuple[int, int]]:
        site = self._site
        words = {"half": max(1, site.processes_per_node // 2), "max": site.processes_per_node}
        wanted = [int(words.get(p, p)) if isinstance(p, str) else p for p in experiment.processes_per_node]
        many_nodes = _too_many(experiment.nodes, site.nodes)
        many_processes = _too_many(wanted, site.processes_per_node)
        if many_nodes and not _goes_on(experiment, experiment.nodes):
            raise UserError(
                f"{where}.nodes: {many_nodes[0]} is more than the {site.nodes} of site {site.site}"
            )
        if many_processes and not _goes_on(experiment, experiment.processes_per_node):
            raise UserError(
                f"{where}.processes_per_node: {many_processes[0]} is more than the "
                f"{site.processes_per_node} of site {site.site}"
            )
        for numbers, of, all_of_it, things in (
            (many_nodes, experiment.nodes, experiment.nodes, "nodes"),
            (many_processes, experiment.processes_per_node, wanted, "processes on a node"),
        ):
            if numbers and getattr(of, "bounded", True):
                listed = ", ".join(map(str, numbers))
                goes = "is left out: it needs" if set(all_of_it) <= set(numbers) else "goes on without"
                self._note(f"{name} {goes} {listed} {things}: the site has fewer")
        for nodes in dict.fromkeys(n for n in experiment.nodes if n not in many_nodes):
            for processes in dict.fromkeys(p for p in wanted if p not in many_processes):
                yield nodes, processes

    def _on_site(self, name: str, workload: Workload, nodes: int, launcher: str) -> Workload:
        """Return a workload as it is done where no other node can take part."""
        alone = self._site.nodes <= nodes or launcher == "fork"
        if not (alone and workload.waiting_nodes(nodes)):
            return workload
        self._apart.setdefault((f"site {self._site.site}", _ALONE), {})[name] = None
        return workload.without_others()

    def _on_stacks(
        self, names: tuple[str, str], workload: Workload, scale: tuple[int, int], stacks: Iterable[Stack]
    ) -> Iterator[tuple[Stack, Workload]]:
        """Yield the stacks that can do a workload at a scale (nodes, processes), and how it is done there."""
        experiment, name = names
        nodes, processes = scale
        for stack in stacks:
            if stack.storage.objects and stack.layers:
                continue
            node_local = self._site.node_local(stack.storage)
            if too_small := workload.too_small(1 if node_local else nodes, processes):
                self._note(
                    f"{experiment}: {name} is left out on {nodes} x {processes} processes ({too_small})"
                )
                continue
            if not node_local:
                yield stack, workload
                continue
            each, difference = workload.node_local() if nodes > 1 else (workload.without_others(), "")
            if each is not None and workload.waiting_nodes(nodes) > each.waiting_nodes(nodes):
                difference = _ALONE
            if difference:
                self._apart.setdefault((stack.name, difference), {})[name] = None
            if each is not None:
                yield stack, each

    def _refusal(self, stack: Stack, engine: str, workload: Workload, nodes: int) -> str | None:
        """Return why an engine cannot do a workload on a stack, or None."""
        if stack.storage.objects:
            return self._can.unsupported_on_objects(engine, workload)
        reasons = (self._can.unsupported_through(layer, engine, workload, nodes) for layer in stack.layers)
        return next((reason for reason in reasons if reason), None)

    def _note_refusals(
        self, names: tuple[str, str], stack: Stack, workload: Workload, nodes: int, able: list[str]
    ) -> None:
        """Note why none of the engines that are able to do a workload does it on a stack."""
        experiment, name = names
        if stack.storage.objects:
            if stack.layers:
                self._note(f"{experiment} on {stack.name}: layers stand in front of files, not of objects")
                return
            why = [self._can.unsupported_on_objects(engine, workload) for engine in able]
            if all(why):
                self._note(f"{experiment} on {stack.name}: {why[0]}")
            return
        waiting = nodes + workload.waiting_nodes(nodes)
        for layer in stack.layers:
            why = [self._can.unsupported_through(layer, engine, workload, waiting) for engine in able]
            if all(why):
                problem = f"{stack.name} with {layer.layer}: {why[0]}"
                self._left.setdefault((experiment, problem), {})[name] = None
                return


def _first(names: Mapping[str, None]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{next(iter(names))}{more}"


def _goes_on(experiment: Experiment, wanted: object) -> bool:
    """Return whether an experiment is planned without the numbers that a site does not have."""
    return experiment.optional or isinstance(wanted, Doubling)


def _too_many(numbers: Iterable[int], most: int) -> list[int]:
    return [n for n in dict.fromkeys(numbers) if n > most]
