"""What a layer is to the rest of the project.

A layer is put in front of a storage without changing the program: every experiment of every study can
run through it. To add one, write a file with a class under ``@layers.register("name")`` in this folder, or
name it in a subject (`tiercel.subjects`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tiercel.programs import Installation
from tiercel.registry import Registry
from tiercel.site.model import Site, Storage
from tiercel.study.workloads import Workload
from tiercel.subjects import fill

#: Lists of libraries and folders: what a layer and a tracer set both counts.
_JOINED = {"LD_PRELOAD": ":", "HDF5_PLUGIN_PATH": ":", "PYTHONPATH": ":"}

#: What a study file says of a layer, by name.
Options = Mapping[str, bool | int | float | str]

EachNode = Callable[[str, Sequence[str]], list[dict[str, Any]]]


@dataclass(frozen=True)
class Place:
    """What a layer is asked to stand in front of: one run's own folder on a storage."""

    data: Path
    """Folder on the storage under test (or the view of the layer below); exists, this run's own."""
    output: Path
    """The run's raw folder: logs and reports of the layer go there; never on the storage under test."""
    site: Site
    storage: Storage
    nodes: int
    processes_per_node: int
    options: Options
    """The layer's own options from the study file, checked by `Layer.check_options`."""
    seed: int = 0
    each_node: EachNode | None = None
    """Starts a module of tiercel with words, once on each node of the run, and returns what they answer
    (`tiercel.launchers.answers`); raises RunFailed where one answers an error or nothing. None where the run
    is on the node of the harness alone."""


@dataclass(frozen=True)
class View:
    """What the engine sees of a layer that is on."""

    data: Path
    """The folder that the engine is given in place of the storage's."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the engine's processes (not of its launcher). Lists as LD_PRELOAD are joined."""
    command: tuple[str, ...] = ()
    """Words put before the engine's command, on every process."""


class Layer(ABC):
    """One layer: whether it is installed, what it can serve, and how it is switched on for a run."""

    name: str

    @abstractmethod
    def find(self) -> Installation | None:
        """Return where the layer is installed, or None."""

    def how_to_build(self) -> str:
        """Return what a user does to get it: part of the message when it is not there."""
        return "run `make layers`"

    @abstractmethod
    def check_options(self, options: Options, site: Site) -> None:
        """Raise UserError for an option that the layer does not know or cannot follow on `site`."""

    def unsupported(self, engine: str, workload: Workload, nodes: int, options: Options) -> str | None:
        """Return why a run cannot go through this layer with these options, or None when it can."""
        return None

    @abstractmethod
    def session(self, place: Place, installation: Installation) -> AbstractContextManager[View]:
        """Return a context that is entered around the engine's commands of one run.

        On leaving it, everything that the engine was told is durable must be on the storage, and what
        the layer started must have ended. Raises RunFailed when the layer cannot be switched on.
        """


layers: Registry[type[Layer]] = Registry("layer", partial(fill, "layers", __name__))


def merged(*environments: Mapping[str, str]) -> dict[str, str]:
    """Return environments as one: later values win, lists (LD_PRELOAD) are joined, later ones first."""
    found: dict[str, str] = {}
    for environment in environments:
        for name, value in environment.items():
            before = found.get(name)
            found[name] = f"{value}{_JOINED[name]}{before}" if before and name in _JOINED else value
    return found
