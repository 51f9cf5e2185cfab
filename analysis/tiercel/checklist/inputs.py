"""Looks at what an engine's run rests on: MPI, the eviction of the page cache before a read, tracing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiercel.checklist.storage import PREFIX
from tiercel.errors import UserError
from tiercel.pages.words import count
from tiercel.results.raw import RawStore
from tiercel.results.validity import COLD
from tiercel.runs.batch import equipment_of
from tiercel.runs.execute import JobBroken, Outcome, execute
from tiercel.runs.job import Allocation
from tiercel.runs.lock import SiteLock
from tiercel.runs.places import Nodes
from tiercel.runs.planning import plan_of
from tiercel.runs.tracing import preload_library
from tiercel.site.facts import Found
from tiercel.site.model import Site
from tiercel.study.model import Study
from tiercel.units import format_share

ENGINE = "engine"
_SIZE = 1024**2


def look_at_runs(site: Site, names: Sequence[str], nodes: Nodes, root: Path, folder: Path) -> list[Found]:
    """Carry out a small cold read on each of the storages `names`, once more traced; results to `folder`."""
    if not names:
        return []
    try:
        project = plan_of(site, _study(site, names, nodes.count), root)
    except UserError as error:
        return [Found(fact=ENGINE, fits=False, problem=str(error))]
    store = RawStore(folder)
    outcomes: list[Outcome] = []
    with SiteLock(folder) as lock:
        for run in project.plan.runs:
            equipment = equipment_of(project, run, store, lock.descriptor, Allocation(nodes=nodes))
            try:
                outcomes.append(execute(run, equipment))
            except JobBroken as error:
                return [Found(fact=ENGINE, fits=False, problem=str(error))]
    found = [_engine([o for o in outcomes if not o.run.traced], store, nodes.count, site.processes_per_node)]
    for outcome in outcomes:
        name = outcome.run.configuration.stack.name
        if outcome.run.traced:
            found.append(_traced(name, outcome, store.path(outcome.run.id), site, nodes.count))
        else:
            found.append(_evicted(name, outcome))
    if preload_library() is None:
        found.append(Found(fact="tracing", problem="DFTracer is not installed for this machine and Python"))
    return found


def _study(site: Site, names: Sequence[str], nodes: int) -> Study:
    """Return one small cold read: written, evicted, read, and all that once more under the tracer."""
    workload = {"operation": "read", "transfer_size": "64KiB", "data_per_process": _SIZE}
    return Study.model_validate(
        {
            "study": PREFIX,
            "title": "The checklist of the first day on a machine",
            "stacks": list(names),
            "repetitions": {"minimum": 1, "maximum": 1},
            "twins": False,
            "trace": True,
            "timeout": 120.0,
            "experiments": {
                PREFIX: {
                    "nodes": [nodes],
                    "processes_per_node": [site.processes_per_node],
                    "workloads": {"read": workload},
                }
            },
        }
    )


def _engine(outcomes: Sequence[Outcome], store: RawStore, nodes: int, processes: int) -> Found:
    """Return whether the engine's processes found each other: without that each works for itself."""
    failed = next((o for o in outcomes if o.reason), None)
    if failed is not None:
        where = failed.run.configuration.stack.name
        return Found(fact=ENGINE, fits=False, problem=f"{failed.reason} (on {where})")
    for outcome in outcomes:
        result = _result(store.path(outcome.run.id) / "read.json")
        tasks, hosts = int(result.get("tasks", 0)), len(set(result.get("hosts", [])))
        if (tasks, hosts) != (nodes * processes, nodes):
            found = (
                f"{count(tasks, 'process', 'processes')} on {count(hosts, 'node')} found each other by MPI"
            )
            problem = (
                f"{found}, where {nodes * processes} on {nodes} were started: the launcher's MPI is another "
                "than the engine's"
            )
            return Found(fact=ENGINE, fits=False, problem=problem)
    found = f"{count(nodes * processes, 'process', 'processes')} on {count(nodes, 'node')} worked together"
    return Found(fact=ENGINE, found=found, fits=True)


def _evicted(name: str, outcome: Outcome) -> Found:
    fact = f"storages.{name}.eviction"
    if outcome.reason:
        return Found(fact=fact, problem=outcome.reason)
    read = outcome.measurements[-1]
    if read.memory_backed:
        return Found(fact=fact, found="none: it is memory", fits=True)
    if read.resident_fraction is None:
        return Found(fact=fact, problem="nobody could look into the page cache of its nodes")
    share = f"{format_share(read.resident_fraction)} of the data in the page cache before a read"
    problem = f"{share}: no read of it will be cold without data larger than memory"
    fits = read.resident_fraction <= COLD
    return Found(fact=fact, found=share, fits=fits, problem="" if fits else problem)


def _traced(name: str, outcome: Outcome, folder: Path, site: Site, nodes: int) -> Found:
    fact = f"storages.{name}.tracing"
    if outcome.reason:
        return Found(fact=fact, fits=False, problem=outcome.reason)
    from tiercel.traces import IOFrame  # noqa: PLC0415 (tables, which a job without a tracer needs not)

    try:
        events = IOFrame.from_dftracer(folder / "trace").events(["kind", "rank", "size"])
    except UserError as error:
        return Found(fact=fact, fits=False, problem=str(error))
    processes = nodes * site.processes_per_node
    wanted = dict.fromkeys(("write", "read"), processes * _SIZE)
    moved = {kind: int(events.loc[events["kind"] == kind, "size"].sum()) for kind in wanted}
    whole = all(moved[kind] >= wanted[kind] for kind in wanted)
    found = f"{len(events)} events, all the data that was written and read"
    lacks = ", ".join(f"{moved[kind]:,} of {wanted[kind]:,} bytes of {kind}s" for kind in wanted)
    problem = "" if whole else f"the trace lacks some of what was done: it has {lacks}"
    return Found(fact=fact, found=found, fits=not problem, problem=problem)


def _result(path: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(path.read_text())["tests"][0]["Results"][0]
    return found
