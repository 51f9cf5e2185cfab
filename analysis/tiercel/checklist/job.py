"""What one job of the checklist does on its nodes: ``tiercel site check-job``, called by Snakemake."""

from __future__ import annotations

import platform
import time
from pathlib import Path

from tiercel.checklist.inputs import look_at_runs
from tiercel.checklist.processes import look_at_processes
from tiercel.checklist.storage import look_at_memory, look_at_storage, look_for_leftovers
from tiercel.launchers import resolve
from tiercel.results.raw import write_json
from tiercel.runs.places import Nodes
from tiercel.site.facts import Found
from tiercel.site.model import Site, Stack


def carry_out(site: Site, nodes: int, root: Path, output: Path) -> None:
    """Go through the checklist on `nodes` nodes of this job, and write what was found to `output`.

    ``output`` with the ending ``.begun`` says before that the job has begun.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(output.with_suffix(".begun"), {"began": time.time()})
    found = _look(site, nodes, root, output.with_suffix(""))
    write_json(output, {"nodes": nodes, "facts": [each.model_dump() for each in found]})


def _look(site: Site, count: int, root: Path, folder: Path) -> list[Found]:
    launcher = resolve(site.launcher, site.launcher_options)
    if missing := launcher.missing():
        stated = " ".join([site.launcher, *site.launcher_options])
        return [Found(fact="launcher", stated=stated, fits=False, problem=f"{missing} (in the job)")]
    nodes = Nodes(launcher, count)
    found, hosts = look_at_processes(site, nodes)
    if not hosts:
        return found
    found += _head(site, hosts)
    around = []
    usable: list[Stack] = []
    for name, storage in site.storages.items():
        stack = Stack(name, storage)
        seen, said = look_at_storage(site, stack, nodes)
        found += seen
        around += said
        if said and not storage.objects:
            usable.append(stack)
    found += look_at_memory(site, around)
    found += look_at_runs(site, [stack.name for stack in usable], nodes, root, folder)
    return found + [look_for_leftovers(stack, nodes) for stack in usable]


def _head(site: Site, hosts: set[str]) -> list[Found]:
    """Return whether the job's script, which this is, runs on one of its nodes."""
    if site.scheduler is None:
        return []
    where = "compute" if platform.node() in hosts else "service"
    problem = "" if where == site.scheduler.head else f"the job's script runs elsewhere: head: {where}"
    return [
        Found(
            fact="scheduler.head", stated=site.scheduler.head, found=where, fits=not problem, problem=problem
        )
    ]
