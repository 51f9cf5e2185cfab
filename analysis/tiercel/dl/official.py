"""MLPerf Storage's own workload files, which come with tiercel, and what another file has otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from tiercel.dl.files.idle import switched_off
from tiercel.dl.files.load import FOLDER, load_workload
from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import Duration
from tiercel.project import built_in

#: Of edition 3.0 (2026), by what a file does.
_TRAININGS = ("unet3d-b200", "retinanet-b200", "retinanet-mi355")
_CHECKPOINTS = ("llama3-8b", "llama3-70b", "llama3-405b", "llama3-1t")
#: The name is spelt in several ways, and changes nothing.
_NO_MATTER = {"model.name"}


@dataclass(frozen=True)
class Official:
    """An official file; keys that another one has otherwise: its value, and the official one."""

    name: str
    differing: dict[str, tuple[Any, Any]]


def nearest(workload: DLWorkload) -> Official | None:
    """Return the official file that a workload is compared with: of its model, the one of which it differs
    least; None where no model is like its own."""
    training = workload.workflow.train
    found = [_compared(workload, name) for name in (_TRAININGS if training else _CHECKPOINTS)]
    if training:
        found = [one for one in found if one.name.split("-")[0] == workload.model.name.lower()]
    return min(found, key=lambda one: len(one.differing), default=None)


def _compared(workload: DLWorkload, name: str) -> Official:
    there = load_workload(str(built_in() / FOLDER / f"{name}.yaml"))
    ours, theirs = dict(_leaves(workload)), dict(_leaves(there))
    differing = {
        key: (ours.get(key), theirs.get(key))
        for key in {**theirs, **ours}
        if ours.get(key) != theirs.get(key) and not _idle(workload, there, key)
    }
    return Official(name, differing)


def _idle(workload: DLWorkload, there: DLWorkload, key: str) -> bool:
    """Return whether a key says nothing in either file."""
    if key == "model.parallelism.data":  # what follows from the processes, but of a part of them
        return workload.checkpoint.mode != "subset"
    off = switched_off(workload, key) is not None and switched_off(there, key) is not None
    return off or key in _NO_MATTER


def _leaves(part: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) of all keys of a file, whether it states them or not."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, Duration):
            yield f"{prefix}{name}", value.short
        elif isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
