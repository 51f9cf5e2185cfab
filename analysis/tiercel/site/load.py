"""Reads ``site-configs/<site>/site.yaml`` and completes it with what this machine shows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, suggest
from tiercel.project import names, provided
from tiercel.site.calibrated import with_calibration
from tiercel.site.discover import discover
from tiercel.site.facts import check_sources
from tiercel.site.machine import cores, memory
from tiercel.site.model import Site
from tiercel.site.objects import check_objects
from tiercel.site.scheduler import Limits
from tiercel.site.simulated import SUFFIX, is_simulated, real_name, simulated_name
from tiercel.site.supposed import supposed
from tiercel.site.supposition import Supposition, read_supposition


def known_sites(root: Path) -> list[str]:
    """Return the names of the sites that the project or tiercel itself describes."""
    return sorted(path.parent.name for path in names(root, "site-configs/*/site.yaml"))


def described_sites(root: Path) -> dict[str, Site | str]:
    """Return each known site as its file describes it, or why it cannot be read. No machine is looked at."""
    found: dict[str, Site | str] = {}
    for name in known_sites(root):
        path = provided(root, f"site-configs/{name}/site.yaml")
        try:
            found[name] = parse(Site, read_yaml(path), str(path))
        except UserError as error:
            found[name] = str(error)
    return found


def load_site(name: str, root: Path) -> Site:
    """Return site `name`; one with ``discover: true`` gets this machine's storages, cores and memory.

    ``NAME-simulated`` is site NAME without its machine; one that supposes other hardware is known by its
    results (`site.supposition`). Storages of the file win over discovered ones of the same name. UserError
    for anything wrong, a site without storages included.
    """
    known = known_sites(root)
    if is_simulated(name):
        if name in known:
            raise UserError(
                f"site-configs/{name}: names with {SUFFIX} are of simulated sites: name it otherwise"
            )
        if is_simulated(real_name(name)):
            raise UserError(f"site {name}: {real_name(name)} is simulated already")
        if real_name(name) not in known and (told := read_supposition(name, root)):
            return _supposing(told, name, root)
        return _simulated(load_site(real_name(name), root))
    if name not in known:
        raise UserError(f"no site named {name!r} under site-configs/: {suggest(name, known)}")
    path = provided(root, f"site-configs/{name}/site.yaml")
    content = read_yaml(path)
    site = parse(Site, content, str(path))
    if site.site != name:
        raise UserError(f"{path}: site: must be {name!r}, the name of its folder (given: {site.site!r})")
    if site.simulated:
        raise UserError(f"{path}: simulated: is not for site files: remove it, and name {name}{SUFFIX}")
    if site.discover:
        found = discover(site.exclude)
        site = site.model_copy(
            update={
                "storages": {**found.storages, **site.storages},
                "processes_per_node": content.get("processes_per_node", cores()),
                "memory_per_node": site.memory_per_node or memory(),
            }
        )
        if not site.storages:
            why = "; ".join(f"{point}: {reason}" for point, reason in found.skipped.items())
            raise UserError(f"{path}: no storage to test on this machine ({why or 'nothing is mounted'})")
    if not site.storages:
        raise UserError(f"{path}: storages: at least one is required")
    check_sources(site, str(path))
    _check_stages(site, str(path))
    check_objects(site, str(path))
    return with_calibration(site, root)


def _simulated(site: Site) -> Site:
    """Return a site as it is simulated: nothing is submitted or paid for."""
    description = f"{site.description or site.site}, simulated"
    update = {"site": simulated_name(site.site), "simulated": True, "description": description,
              "scheduler": None, "limits": Limits()}  # fmt: skip
    return site.model_copy(update=update)


def _supposing(found: Supposition, name: str, root: Path) -> Site:
    """Return a simulated site as it is supposed to be."""
    site = _simulated(suppose(load_site(found.site, root), found.set, root))
    said = f"{site.description}, with {', '.join(found.set)}"
    return site.model_copy(update={"site": name, "description": said})


def suppose(site: Site, changes: Iterable[str], root: Path) -> Site:
    """Return `site` with changes to its topologies; UserError for one that cannot be made."""
    return supposed(site, changes, lambda name: load_site(name, root))


def _check_stages(site: Site, where: str) -> None:
    """Raise UserError for a stage of a node's own storage that would be one for all nodes.

    Its ceiling would be that of one node at any scale.
    """
    for name, storage in site.storages.items():
        for n, stage in enumerate(storage.topology):
            if site.nodes > 1 and not storage.shared and not stage.per_node:
                raise UserError(
                    f"{where}: storages.{name}.topology.{n}: each node has its own {stage.stage}: "
                    "per_node: true (or the storage is one for all: shared: true)"
                )
