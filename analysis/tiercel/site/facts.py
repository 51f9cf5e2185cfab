"""How sure a site's facts are: measured on the site, from a source that the site file names, or unverified.

What was measured lies beside site.yaml, in ``facts.yaml``, written by ``tiercel site check SITE --submit``.
It holds no names of hosts, users or accounts, so that it can be committed with the site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field

from tiercel.atomic_file import write_text
from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.project import provided
from tiercel.site.model import Site
from tiercel.units import format_latency, format_size

FACTS_FILE = "facts.yaml"
_HEAD = """\
# What `tiercel site check {site} --submit` found. Written anew by each; a fact counts for as long as
# site.yaml says what it said then.
"""

Standing = Literal["measured", "source", "unverified"]


class Found(Document):
    """One thing that was looked at on the site."""

    fact: str = Field(description="a key of site.yaml, or what else was looked at")
    stated: str = Field(default="", description="what site.yaml said then")
    found: str = ""
    fits: bool | None = Field(default=None, description="null: could not be told")
    problem: str = Field(default="", description="where it does not fit, or why it could not be told")


class Measured(Document):
    """The content of a facts.yaml."""

    site: str
    date: str
    tiercel: str = ""
    facts: list[Found] = []

    @property
    def problems(self) -> list[str]:
        return [f"{each.fact}: {each.problem}" for each in self.facts if each.fits is False]


@dataclass(frozen=True)
class Fact:
    """A fact of a site. `stated`: what site.yaml says; `found`, `problem`: what was measured, if it was."""

    name: str
    stated: str
    standing: Standing
    found: str = ""
    problem: str = ""
    source: str = ""
    """Where it is from; the date for a measured one."""


def facts_of(site: Site, measured: Measured | None) -> list[Fact]:
    """Return what site.yaml states, and what else was measured, each with its standing."""
    by_name = {each.fact: each for each in measured.facts} if measured else {}
    without_names = private().text
    facts = []
    for name, stated in stated_facts(site):
        seen = by_name.pop(name, None)
        source = _source(site, name)
        # A job's answer names no user, also where site.yaml does (a scratch folder of one's own).
        same = seen is not None and without_names(seen.stated) == without_names(stated)
        if measured and seen and seen.fits is not None and same:
            facts.append(Fact(name, stated, "measured", seen.found, seen.problem, measured.date))
        else:
            facts.append(Fact(name, stated, "source" if source else "unverified", source=source))
    for name, seen in by_name.items():
        standing: Standing = "unverified" if seen.fits is None else "measured"
        date = measured.date if measured else ""
        facts.append(Fact(name, "", standing, seen.found, seen.problem, date))
    return facts


def stated_facts(site: Site) -> Iterator[tuple[str, str]]:
    """Yield the facts that a site's file states, as key and text."""
    if site.retired is not None:
        yield "retired", str(site.retired)
    yield "launcher", " ".join([site.launcher, *site.launcher_options])
    if site.scheduler is not None:
        yield "nodes", str(site.nodes)
    yield "processes_per_node", str(site.processes_per_node)
    if site.cores_per_node is not None:
        yield "cores_per_node", str(site.cores_per_node)
    if site.memory_per_node is not None:
        yield "memory_per_node", format_size(site.memory_per_node)
    if site.scheduler is not None:
        yield "scheduler.name", site.scheduler.name
        yield "scheduler.partition", site.scheduler.partition or "default"
        yield "scheduler.walltime", f"{site.scheduler.walltime / 60:g} min"
        yield "scheduler.head", site.scheduler.head
    for name, unmeasured in site.unmeasured.items():
        yield f"unmeasured.{name}", unmeasured.reason
    for name, storage in site.storages.items():
        yield f"storages.{name}.mount", f"{storage.mount} ({storage.type})"
        yield f"storages.{name}.scratch", storage.scratch
        if site.scheduler is not None:
            yield f"storages.{name}.shared", "yes" if storage.shared else "no"
            if storage.capacity is not None:  # elsewhere it is what was found by looking
                yield f"storages.{name}.capacity", format_size(storage.capacity)
        if storage.licence:
            yield f"storages.{name}.licence", storage.licence
        if storage.allocate:
            yield f"storages.{name}.allocate", storage.allocate
        for stage in storage.topology:
            yield f"storages.{name}.topology.{stage.name}", _rates(stage.model_dump())


def check_sources(site: Site, where: str) -> None:
    """Raise UserError for a key under `sources` that is no fact of the site."""
    known = {name for name, _ in stated_facts(site)}
    for name in site.sources:
        if name not in known:
            raise UserError(f"{where}: sources.{name}: is no fact of this file (facts: {', '.join(known)})")


def facts_path(site: str, root: Path) -> Path:
    """Return where what was measured of a site lies."""
    return root / "site-configs" / site / FACTS_FILE


def read_facts(site: str, root: Path) -> Measured | None:
    """Return what was measured, or None where nothing was; UserError for a file that is no such thing."""
    path = provided(root, f"site-configs/{site}/{FACTS_FILE}")
    return parse(Measured, read_yaml(path), str(path)) if path.exists() else None


def write_facts(measured: Measured, root: Path) -> Path:
    """Write facts.yaml, so that a reader sees the whole file or the one before; UserError where it cannot."""
    path = facts_path(measured.site, root)
    content = measured.model_dump(exclude_defaults=True)
    text = _HEAD.format(site=measured.site) + yaml.safe_dump(content, sort_keys=False, width=110)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # a site of tiercel's own, in somebody's project
        write_text(path, text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def summary(facts: Iterable[Fact]) -> str:
    """Return one sentence: how many facts stand how, and which do not fit."""
    listed = list(facts)
    count = {kind: sum(f.standing == kind for f in listed) for kind in ("measured", "source", "unverified")}
    said = f"{count['measured']} measured, {count['source']} from a source, {count['unverified']} unverified"
    wrong = [f.name for f in listed if f.standing == "measured" and f.problem]
    return f"{said}; does not fit: {', '.join(wrong)}" if wrong else said


def standing_of(site: Site, root: Path) -> str:
    """Return a sentence on how sure a site's facts are; empty for a site that is looked at as it is used."""
    measured = read_facts(site.site, root)
    if site.scheduler is None and measured is None:
        return ""
    said = f"facts of the site: {summary(facts_of(site, measured))}"
    return said if measured else f"{said}; `tiercel site check {site.site} --submit` measures what can be"


def _source(site: Site, name: str) -> str:
    if name in site.sources:
        return site.sources[name]
    _, _, rest = name.partition("storages.")
    storage, _, stage = rest.partition(".topology.")
    if stage:
        stages = site.storages[storage].topology
        return next((each.source for each in stages if each.name == stage), "")
    return ""


def _rates(stage: dict[str, Any]) -> str:
    def of(figure: str, show: Callable[[float], str]) -> list[str]:
        keys = (figure, f"read_{figure}", f"write_{figure}")
        return [show(stage[key]) for key in keys if stage[key]]

    said = of("bandwidth", lambda each: f"{each / 1e9:g} GB/s x {stage['units']}")
    said += of("operations", lambda each: f"{each:g} op/s x {stage['units']}")
    said += of("latency", format_latency)
    said += of("cache", lambda each: f"{format_size(each)} of cache x {stage['units']}")
    if stage["random_operations"] is not None:
        said.append(f"{stage['random_operations']:g} op/s in random order x {stage['units']}")
    if stage["metadata"] is not None:
        given = stage["metadata"]
        each = [f"{k} {v:g}" for k, v in given.items()] if isinstance(given, dict) else [f"{given:g}"]
        said.append(f"metadata {', '.join(each)} op/s x {stage['units']}")
    if stage["absent"]:
        return "none"
    return ", ".join(said) or f"{stage['units']}, bandwidth unknown"
