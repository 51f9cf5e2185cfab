"""What a site file says: the machine, its launcher, its storage systems."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from tiercel.documents import Document
from tiercel.errors import UserError
from tiercel.quantities import Line, Size
from tiercel.site.mounts import Medium
from tiercel.site.scheduler import Limits, SchedulerSettings
from tiercel.site.topology import MOST_UNITS, Stage, check_chain
from tiercel.site.variables import VARIABLE, expand

#: The type of object storage, and what there is no file system for.
OBJECTS = "s3"
#: Of one node. Whatever is larger is a mistake, and would plan scales and jobs without end.
MOST_CORES = 100_000
ONLY_DL = "only deep-learning workloads on engine dlkernel run there"
_OF_OBJECTS = ("bucket", "endpoint", "region", "path_style", "attempts")

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


def check_name(name: str) -> str:
    """Return `name`; ValueError unless it can name a site, a storage, a study or a workload."""
    # Names become folder names, dimension values and run names.
    if not _NAME.fullmatch(name) or len(name) > 60:
        raise ValueError(f"{name!r} must be lower-case letters, digits and dashes, 60 at most")
    return name


Name = Annotated[str, AfterValidator(check_name)]


class Storage(Document):
    """One system under test: a mounted file system, or a bucket of object storage (``type: s3``)."""

    type: str = Field(
        description="file-system type as the kernel names it, with or without `fuse.`; s3: object storage"
    )
    mount: str = Field(description="mount point")
    scratch: str = Field(
        description="folder (prefix in a bucket) that tiercel may create and write; $VARIABLES are expanded"
    )
    bucket: str = Field(default="", description="of object storage; it must exist")
    endpoint: str = Field(default="", description="server of object storage: http(s)://HOST[:PORT]")
    region: str = Field(default="", description="of object storage")
    path_style: bool = Field(default=False, description="the bucket goes into the path, not the host's name")
    attempts: int = Field(default=5, ge=1, description="how often a request is sent, at most")
    medium: Medium = Field(default="disk", description="what lies at the end")
    label: str = Field(default="", description="its name in figures")
    source: str = Field(default="", description="what is mounted")
    options: str = Field(default="", description="mount options")
    capacity: Size | None = Field(default=None, description="size of the file system")
    shared: bool = Field(default=False, description="every node sees the same files")
    fill_limit: float = Field(
        default=0.8, gt=0, le=1, description="refuse to fill the file system beyond this"
    )

    licence: Line = Field(default="", description="of the scheduler: a job that measures here holds it")
    allocate: Line = Field(
        default="", description="what a job that measures here asks Flux for: a #DW directive (Rabbit)"
    )
    topology: list[Stage] = Field(default=[], description="from the client to the media")

    @field_validator("type")
    @classmethod
    def _without_prefix(cls, value: str) -> str:
        # The mount table says fuse.sshfs, and other programs sshfs: one name for one thing.
        return value.removeprefix("fuse.")

    @field_validator("topology")
    @classmethod
    def _a_chain(cls, stages: list[Stage]) -> list[Stage]:
        check_chain(stages)
        return stages

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, content: Any) -> Any:
        """Add what follows from the other keys of object storage, and that network storage is shared."""
        if not isinstance(content, dict):
            return content
        found = dict(content)
        if found.get("type") == OBJECTS:
            bucket, server = found.get("bucket") or "", found.get("endpoint") or ""
            known = {"mount": f"s3://{bucket}", "scratch": "tiercel", "medium": "network", "source": server}
            found = {**known, **found}
        return {"shared": found.get("medium") == "network", **found}

    @model_validator(mode="after")
    def _one_kind(self) -> Storage:
        if not self.objects:
            fields = type(self).model_fields
            given = [name for name in _OF_OBJECTS if getattr(self, name) != fields[name].default]
            if given:
                raise ValueError(f"{', '.join(given)}: only of type: {OBJECTS}")
            return self
        if not self.bucket:
            raise ValueError("type: s3 needs bucket")
        if self.mount != f"s3://{self.bucket}":
            raise ValueError("mount: object storage has none: leave it out")
        return self

    @property
    def objects(self) -> bool:
        """Whether this is object storage."""
        return self.type == OBJECTS

    def scratch_path(self) -> Path:
        """Return the scratch folder with variables expanded; UserError for an unset one, and for objects."""
        if self.objects:
            raise UserError(f"{self.mount} is object storage: {ONLY_DL}")
        path = Path(expand(self.scratch, "scratch")).expanduser()
        if not path.is_absolute():
            raise UserError(f"scratch {self.scratch}: must be an absolute path")
        return path

    def mount_path(self) -> Path:
        """Return the mount point with variables expanded; UserError for an unset one."""
        return Path(expand(self.mount, "mount"))


class Unmeasured(Storage):
    """A storage that no engine can use yet: `site show` names it, and `site whatif` knows its topology."""

    reason: Line = Field(description="why it is not measured")


class Site(Document):
    """A machine that is evaluated. One file: ``site-configs/<site>/site.yaml``."""

    site: Name = Field(description="the folder's name")
    simulated: bool = Field(default=False, description="set by tiercel: the machine itself is not used")
    description: Line = Field(default="", description="the machine, in words")
    retired: int | None = Field(
        default=None, ge=1950, le=2100, description="year in which the machine was switched off"
    )
    launcher: str = Field(default="mpiexec", description="starts an engine on all processes")
    launcher_options: list[Line] = Field(
        default=[], description="more words for the launcher; $VARIABLES are expanded"
    )
    scheduler: SchedulerSettings | None = Field(default=None, description="none: jobs run where they start")
    limits: Limits = Field(default=Limits(), description="what a study may use up")
    nodes: int = Field(default=1, ge=1, le=MOST_UNITS, description="how many there are")
    processes_per_node: int = Field(
        default=1, ge=1, le=MOST_CORES, description="the most that an experiment may use"
    )
    cores_per_node: int | None = Field(
        default=None, ge=1, le=MOST_CORES,
        description="what a node-hour costs in core-hours; $VARIABLE: its value, where it is set",
    )  # fmt: skip
    memory_per_node: Size | None = Field(default=None, gt=0, description="of one node")
    discover: bool = Field(default=False, description="add the storage systems mounted on this machine")
    exclude: list[str] = Field(default=[], description="mount points that discovery leaves out")
    storages: dict[Name, Storage] = Field(default={}, description="by name")
    unmeasured: dict[Name, Unmeasured] = Field(default={}, description="storages that no engine can use yet")
    sources: dict[str, Line] = Field(
        default={}, description="where facts of this file come from; what is not named here is unverified"
    )

    @property
    def cores(self) -> int:
        """Cores that a job pays for on each node."""
        return self.cores_per_node or self.processes_per_node

    def node_local(self, storage: Storage) -> bool:
        """Return whether a storage is another one on each of the nodes (one alone has no scheduler)."""
        several = self.scheduler is not None or (self.simulated and self.nodes > 1)
        return several and not storage.shared

    @field_validator("cores_per_node", mode="before")
    @classmethod
    def _of_environment(cls, value: Any) -> Any:
        # Virtual nodes have the cores of whatever machine they run on. A plan needs no such machine.
        found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
        name = (found[1] or found[2]) if found else None  # none of `$$`, which stands for a dollar sign
        return (os.environ.get(name) or None) if name else value

    @field_validator("exclude")
    @classmethod
    def _absolute(cls, value: list[str]) -> list[str]:
        for point in value:
            if not point.startswith("/"):
                raise ValueError(f"{point!r} must be an absolute mount point")
        return value


class LayerChoice(Document):
    """A layer put in front of a storage, with its own options (each layer checks them itself)."""

    layer: Name = Field(description="its name")
    options: dict[str, bool | int | float | str] = Field(default={}, description="of the layer's own")

    @property
    def label(self) -> str:
        """Words for tables and figures: ``fairshare policy=size-fair``."""
        return " ".join([self.layer, *(f"{k}={v}" for k, v in sorted(self.options.items()))])


@dataclass(frozen=True)
class Stack:
    """A storage with the layers in front of it; every experiment runs on any stack."""

    name: str
    storage: Storage
    layers: tuple[LayerChoice, ...] = ()
    layer_versions: tuple[str, ...] = ()
    """Of the installed layers, in the same order."""

    @property
    def layer(self) -> str:
        """The layers as one value for tables: ``none`` or ``fairshare policy=size-fair+cachevol``."""
        return "+".join(choice.label for choice in self.layers) or "none"

    def layer_rows(self) -> list[dict[str, Any]]:
        """Return the layers as plain rows, for identities and records."""
        return [
            {**choice.model_dump(), "label": choice.label, "version": version}
            for choice, version in zip(self.layers, self.layer_versions, strict=True)
        ]
