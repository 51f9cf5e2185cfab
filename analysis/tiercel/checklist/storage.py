"""Looks at a storage from the nodes of a job: is it there, of what type, and whose is it."""

from __future__ import annotations

from typing import Any

from tiercel.errors import RunFailed, UserError
from tiercel.pages.words import count
from tiercel.results.validity import LESS_MEMORY
from tiercel.runs.places import Nodes, scratch_of
from tiercel.site.facts import Found
from tiercel.site.model import Site, Stack
from tiercel.units import format_size

#: Begins the names of all that the checklist makes in a scratch folder.
PREFIX = "check"


def look_at_storage(site: Site, stack: Stack, nodes: Nodes) -> tuple[list[Found], list[dict[str, Any]]]:
    """Return what was found, and what the nodes said of themselves (none where one cannot use it)."""
    storage, key = stack.storage, f"storages.{stack.name}"
    stated = {"fact": f"{key}.mount", "stated": f"{storage.mount} ({storage.type})"}
    node_local = site.node_local(storage)
    try:
        around = [each["around"] for each in nodes.ask("tidy" if node_local else "look", stack)]
        if storage.objects:
            there = Found(**stated, found="an object was written, read, listed and removed", fits=True)
            return [there], around
        with scratch_of(stack, f"{PREFIX}-{nodes.count}", nodes if node_local else None, 0) as scratch:
            left = _ask(nodes, "leave", stack, str(scratch.data))
            hosts = [str(each["host"]) for each in left]
            seen = _ask(nodes, "see", stack, str(scratch.data), *hosts)
    except (RunFailed, UserError) as failure:
        return [Found(**stated, fits=False, problem=_without_name(str(failure), stack))], []
    types = sorted({str(each["type"]) for each in left})
    other = [kind for kind in types if not _same_type(kind, storage.type)]
    problem = f"is of type {other[0]}, and the site file says {storage.type}" if other else ""
    found = [
        Found(**stated, found=f"{', '.join(types)}, on {_every(nodes)}", fits=not problem, problem=problem)
    ]
    if site.scheduler is not None:
        found.append(_whose(stack, hosts, seen))
    return found, around


def look_at_memory(site: Site, around: list[dict[str, Any]]) -> list[Found]:
    """Return whether the job may hold the memory that the site file gives a node, page cache included."""
    seen = [int(each["memory_bytes"]) for each in around if each.get("memory_bytes")]
    if site.memory_per_node is None or not seen:
        return []
    least, stated = min(seen), format_size(site.memory_per_node)
    limits = [each["memory_limit_bytes"] for each in around if each.get("memory_limit_bytes")]
    what = "the job's limit" if limits and min(limits) <= least else "all of the node"
    problem = ""
    if least < LESS_MEMORY * site.memory_per_node:
        problem = (
            f"{format_size(least)} ({what}), where the site file says {stated}: let jobs ask for all memory "
            "of their nodes, or correct memory_per_node"
        )
    return [
        Found(
            fact="memory_per_node", stated=stated, found=f"{format_size(least)} ({what})", fits=not problem,
            problem=problem,
        )
    ]  # fmt: skip


def look_for_leftovers(stack: Stack, nodes: Nodes) -> Found:
    """Return whether anything that the checklist made still lies on a node."""
    fact, stated = f"storages.{stack.name}.scratch", stack.storage.scratch
    try:
        left = _ask(nodes, "left", stack, PREFIX)
    except RunFailed as failure:
        return Found(fact=fact, stated=stated, problem=str(failure))
    names = sorted({name for each in left for name in each["left"]})
    problem = f"{', '.join(names)} still lies there" if names else ""
    return Found(fact=fact, stated=stated, found="written, and nothing left", fits=not names, problem=problem)


def _ask(nodes: Nodes, action: str, stack: Stack, *words: str) -> list[dict[str, Any]]:
    words = (action, stack.name, stack.storage.model_dump_json(), *words)
    answers, said = nodes.start("tiercel.checklist.place", words)
    for each in answers:
        if "error" in each:
            raise RunFailed(f"node {each['host']}: {each['error']}")
    if len(answers) != nodes.count:
        raise RunFailed(f"{len(answers)} of {count(nodes.count, 'node')} answered ({said})")
    return answers


def _every(nodes: Nodes) -> str:
    return "the node" if nodes.count == 1 else "every node"


def _whose(stack: Stack, hosts: list[str], seen: list[dict[str, Any]]) -> Found:
    shared, fact = stack.storage.shared, f"storages.{stack.name}.shared"
    stated = "yes" if shared else "no"
    if len(hosts) == 1:
        return Found(fact=fact, stated=stated, problem="one node cannot tell")
    # Each node finds its own file anyway.
    common = all(len(each["seen"]) == len(hosts) for each in seen)
    apart = all(set(each["seen"]) <= {each["host"]} for each in seen)
    if common:
        problem = "" if shared else "every node sees the others' files: it is shared (shared: true)"
        found = "every node sees the same files"
    elif apart:
        problem = "no node sees another's files: it is each node's own (shared: false)" if shared else ""
        found = "every node has its own"
    else:
        problem = found = "some nodes see others' files, and some do not"
    return Found(fact=fact, stated=stated, found=found, fits=not problem, problem=problem)


def _same_type(found: str, stated: str) -> bool:
    """NFS is called by its version on some machines, and not on others."""
    return found == stated or (found.startswith("nfs") and stated.startswith("nfs"))


def _without_name(said: str, stack: Stack) -> str:
    return said.replace(f"storage {stack.name}: ", "")
