"""A site with other hardware: `vast.gateway.units=16`, `gateway=none`."""

from __future__ import annotations

from typing import Any, get_args

from tiercel.documents import parse
from tiercel.errors import UserError, suggest
from tiercel.site.model import Site, Storage
from tiercel.site.topology import FOR_EACH_DIRECTION, Stage, StageKind

#: The source of every figure that a change gives.
SOURCE = "what if"
_FORM = "write [STORAGE.]STAGE.KEY=VALUE, or [STORAGE.]STAGE=none"


def changed(site: Site, change: str) -> Site:
    """Return `site` with one change to its topologies; UserError for one that changes nothing.

    Without a storage it goes for all that have the stage. With one, a stage that it lacks is added: so what
    a site file does not know can be supposed.
    """
    where, equals, value = change.partition("=")
    words = where.strip().split(".")
    storage = words.pop(0) if words[0] in site.storages else None
    remove = value.strip() == "none" and len(words) == 1
    if not equals or not value.strip() or (len(words) != 2 and not remove):
        stranger = equals and value.strip() and len(words) == 3
        known = f"no storage {words[0]!r}: {suggest(words[0], site.storages)}" if stranger else _FORM
        raise UserError(f"--set {change}: {known}")
    kind, key = words[0], "" if remove else words[1]
    if kind not in get_args(StageKind):
        raise UserError(f"--set {change}: no stage {kind!r}: {suggest(kind, get_args(StageKind))}")
    settable = set(Stage.model_fields) - {"stage", "source"}
    if key and key not in settable:
        raise UserError(f"--set {change}: no key {key!r}: {suggest(key, settable)}")
    chosen = [storage] if storage else [n for n, s in site.storages.items() if _has(s, kind)]
    if not chosen:
        named = ", ".join(site.storages)
        raise UserError(f"--set {change}: no storage has a stage {kind}: name the storage ({named})")
    storages = dict(site.storages)
    for name in chosen:
        old = storages[name]
        if remove:
            if not _has(old, kind):
                raise UserError(f"--set {change}: {name} has no stage {kind}")
            new = [stage for stage in old.topology if stage.stage != kind]
        else:
            new = _with(old, kind, key, value.strip(), change, name)
        storages[name] = old.model_copy(update={"topology": new})
    return site.model_copy(update={"storages": storages})


def _has(storage: Storage, kind: str) -> bool:
    return any(stage.stage == kind for stage in storage.topology)


def _with(storage: Storage, kind: str, key: str, value: str, change: str, name: str) -> list[Stage]:
    at = [n for n, stage in enumerate(storage.topology) if stage.stage == kind]
    if len(at) > 1:
        raise UserError(f"--set {change}: {name} has {len(at)} stages {kind}: which one is not said")
    content: dict[str, Any] = storage.topology[at[0]].model_dump() if at else {"stage": kind}
    figure = key.removeprefix("read_").removeprefix("write_")
    if figure in FOR_EACH_DIRECTION:
        if key == figure:  # it stands for both directions
            content = {**content, f"read_{figure}": None, f"write_{figure}": None}
        elif content.get(figure) is not None:
            both = content.pop(figure)
            content = {**content, f"read_{figure}": both, f"write_{figure}": both}
    stage = parse(Stage, {**content, key: value, "source": SOURCE}, f"--set {change}")
    stages = list(storage.topology)
    if at:
        stages[at[0]] = stage
    else:
        stages.append(stage)
    return stages
