"""Looks at the launcher: how many processes it starts on which nodes, and which cores they may use."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tiercel.errors import RunFailed
from tiercel.launchers.answers import MARK
from tiercel.pages.words import count
from tiercel.runs.places import Nodes
from tiercel.site.facts import Found
from tiercel.site.model import Site

LAUNCHER, BINDING = "launcher", "binding"


def look_at_processes(site: Site, nodes: Nodes) -> tuple[list[Found], set[str]]:
    """Start as many processes as an experiment may use; return what they say, and the names of nodes."""
    stated = " ".join([site.launcher, *site.launcher_options])
    # Without MPI an engine starts its processes itself, and the launcher one.
    wanted = site.processes_per_node if nodes.launcher.mpi else 1
    try:
        answers, said = nodes.start("tiercel.checklist.process", [MARK], wanted)
    except RunFailed as failure:
        return [Found(fact=LAUNCHER, stated=stated, fits=False, problem=str(failure))], set()
    hosts = {str(each["host"]) for each in answers}
    return [spread(answers, said, nodes.count, wanted, stated), *cores(answers, site)], hosts


def spread(answers: list[dict[str, Any]], said: str, nodes: int, wanted: int, stated: str) -> Found:
    """Return whether `wanted` processes answered on each of `nodes`; `said`: the launcher's last words."""
    on_hosts = Counter(str(each["host"]) for each in answers)
    each = sorted(set(on_hosts.values()))
    found = f"{count(len(answers), 'process', 'processes')} on {count(len(on_hosts), 'node')}"
    problem = ""
    if len(on_hosts) != nodes or each != [wanted]:
        problem = f"started {found}, where {nodes * wanted} on {nodes} were asked for"
        problem += "" if answers else f" ({said})"
    return Found(fact=LAUNCHER, stated=stated, found=found, fits=not problem, problem=problem)


def cores(answers: list[dict[str, Any]], site: Site) -> list[Found]:
    """Return how many cores the processes of a node may use, and whether each may use all of them."""
    if not answers:
        return []
    of_hosts: dict[str, set[int]] = {}
    for each in answers:
        of_hosts.setdefault(str(each["host"]), set()).update(each["cores"])
    least = min(len(cores) for cores in of_hosts.values())
    key = "processes_per_node" if site.cores_per_node is None else "cores_per_node"
    problem = ""
    if least < site.cores:
        problem = (
            f"the job may use {least} cores of a node, where the site file counts {site.cores}: let jobs "
            f"have all cores of their nodes, or correct {key}"
        )
    bound = [each for each in answers if len(each["cores"]) < len(of_hosts[str(each["host"])])]
    binding = ""
    if bound:
        binding = (
            f"a process may use {min(len(each['cores']) for each in bound)} of the {least} cores that its "
            "node's processes have: add the launcher's word for no binding to launcher_options"
        )
    return [
        Found(fact=key, stated=str(site.cores), found=f"{least} cores", fits=not problem, problem=problem),
        Found(
            fact=BINDING, found="bound" if bound else "none: every process may use all cores", fits=not bound,
            problem=binding,
        ),
    ]  # fmt: skip
