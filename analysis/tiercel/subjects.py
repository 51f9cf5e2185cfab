"""Subjects: what can be evaluated beside plain data and metadata, each a folder with all that it brings.

The folder's file ``subject.py`` is its one registration. It names modules by what they bring:

    subject = Subject(
        workloads=("tiercel.caching.workload",), engines=("tiercel.caching.engine",),
        sections=("tiercel.caching.section",), commands=("tiercel.caching.commands",),
    )

They are imported when a registry that they fill is first asked. A module named under `workloads` may import
what the layer ``study`` may, one under `engines` what ``engines`` may, and so on (docs/architecture.md). A
package that is no part of tiercel registers its subject as an entry point of the group ``tiercel.subjects``;
it may bring a single launcher or trace format and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Literal

from tiercel.errors import UserError

_GROUP = "tiercel.subjects"

Part = Literal[
    "workloads", "engines", "launchers", "schedulers", "layers", "readers", "rules", "applications",
    "sections", "findings", "commands",
]  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """Names of modules."""

    workloads: tuple[str, ...] = ()
    """Kinds of workloads (`study.workloads.base.workload_kinds`) and their features."""
    engines: tuple[str, ...] = ()
    """Engines (`engines.base.engines`) and the metrics that they measure."""
    launchers: tuple[str, ...] = ()
    """Launchers (`launchers.base.launchers`)."""
    schedulers: tuple[str, ...] = ()
    """Schedulers (`schedulers.base.schedulers`)."""
    layers: tuple[str, ...] = ()
    """Layers (`layers.base.layers`)."""
    readers: tuple[str, ...] = ()
    """Trace formats (`traces.readers.base.readers`)."""
    rules: tuple[str, ...] = ()
    """Rules that make findings of traces (`traces.findings.base.rules`)."""
    applications: tuple[str, ...] = ()
    """Programs that placement is tested on (`placement.applications.base.applications`)."""
    sections: tuple[str, ...] = ()
    """Sections of the report (`report.sections.base.sections`)."""
    findings: tuple[str, ...] = ()
    """Findings of the report: each module has RULES (`report.findings`)."""
    commands: tuple[str, ...] = ()
    """Commands: each module has ``register(app)``, which adds them to the command line."""


@cache
def subjects() -> tuple[Subject, ...]:
    """Return all subjects: this package's by the names of their folders, then those of others."""
    here = Path(__file__).parent
    own = [f"tiercel.{path.parent.name}.subject" for path in sorted(here.glob("*/subject.py"))]
    found = [import_module(name).subject for name in own]
    for entry in sorted(entry_points(group=_GROUP), key=lambda e: e.name):
        try:
            foreign = entry.load()
        except Exception as error:
            raise UserError(_cannot(entry.name, entry.value, error)) from error
        if not isinstance(foreign, Subject):
            raise UserError(f"subject {entry.name} ({entry.value}): is no tiercel.subjects.Subject")
        found.append(foreign)
    return tuple(found)


def load(part: Part) -> list[ModuleType]:
    """Import the modules that subjects name under `part`, and return them.

    UserError where one of another package cannot be imported: it names the module.
    """
    found = []
    for name in (name for subject in subjects() for name in getattr(subject, part)):
        try:
            found.append(import_module(name))
        except ImportError as error:
            if name.startswith("tiercel."):
                raise
            raise UserError(_cannot(name, name, error)) from error
    return found


def fill(part: Part, module: str) -> list[ModuleType]:
    """Import everything of a kind, and return it: the modules beside `module` (given by its ``__name__``), in
    the order of their names, then those that subjects bring."""
    package = import_module(module.rpartition(".")[0])
    beside = [import_module(f"{package.__name__}.{found.name}") for found in iter_modules(package.__path__)]
    return beside + load(part)


def _cannot(name: str, module: str, error: Exception) -> str:
    return f"subject {name} ({module}): {error}: mend or uninstall the package that brings it"
