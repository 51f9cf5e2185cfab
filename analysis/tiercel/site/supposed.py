"""A site with other hardware: `vast.gateway.units=16`, `gateway=none`, `vast=wombat.vast`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, get_args

from tiercel.documents import parse
from tiercel.errors import UserError, suggest
from tiercel.site.model import Site, Storage
from tiercel.site.topology import FIGURES, FOR_EACH_DIRECTION, Stage, StageKind, placed

#: The source of every figure that a change gives.
SOURCE = "what if"
_FORM = "write [STORAGE.]STAGE.KEY=VALUE, [STORAGE.]STAGE=none, or STORAGE=SITE.STORAGE"
#: What of a stage words cannot change: they change no ceiling.
_WORDS = {"stage", "label", "source"}


def supposed(site: Site, changes: Iterable[str], other_site: Callable[[str], Site]) -> Site:
    """Return `site` with changes to its topologies, one after the other; `other_site` loads a site by its
    name.

    Without a storage a change goes for all that have the stage. With one, a stage that it lacks is added: so
    what a site file does not know can be supposed. Where a storage has several stages of a kind, `server#2`
    is the second. UserError for a change that cannot be made.
    """
    for change in changes:
        site = _changed(site, change, other_site)
    return site


def _changed(site: Site, change: str, other_site: Callable[[str], Site]) -> Site:
    where, equals, value = (part.strip() for part in change.partition("="))
    words = where.split(".")
    if not equals or not value or not all(words):
        raise UserError(f"--set {change}: {_FORM}")
    if len(words) == 1 and words[0] in site.storages and value != "none":
        return _with_storages(site, {words[0]: _replaced(site.storages[words[0]], value, change, other_site)})
    storage = words.pop(0) if words[0] in site.storages else None
    remove = value == "none" and len(words) == 1
    if len(words) != 2 and not remove:
        known = f"no storage {words[0]!r}: {suggest(words[0], site.storages)}" if len(words) == 3 else _FORM
        raise UserError(f"--set {change}: {known}")
    kind, number = _stage_of(words[0], change)
    key = "" if remove else words[1]
    settable = set(Stage.model_fields) - _WORDS
    if key and key not in settable:
        raise UserError(f"--set {change}: no key {key!r}: {suggest(key, settable)}")
    chosen = [storage] if storage else [n for n, s in site.storages.items() if _places(s, kind)]
    if not chosen:
        named = ", ".join(site.storages)
        raise UserError(f"--set {change}: no storage has a stage {kind}: name the storage ({named})")
    new = {}
    for name in chosen:
        old = site.storages[name]
        place = _place(old, kind, number, change, name)
        stage = (
            Stage(stage=kind, absent=True, source=SOURCE) if remove
            else _with(old.topology[place] if place is not None else None, kind, key, value, change)
        )  # fmt: skip
        if place is None:
            stages = placed(old.topology, [stage])
        else:
            stages = [stage if n == place else each for n, each in enumerate(old.topology)]
        new[name] = old.model_copy(update={"topology": stages})
    return _with_storages(site, new)


def _with_storages(site: Site, new: dict[str, Storage]) -> Site:
    return site.model_copy(update={"storages": {**site.storages, **new}})


def _replaced(old: Storage, value: str, change: str, other_site: Callable[[str], Site]) -> Storage:
    """Return a storage with the topology of another one, of this site or of another."""
    name, dot, other = value.partition(".")
    if not dot:
        raise UserError(f"--set {change}: {_FORM}")
    site = other_site(name)
    storages = {**site.unmeasured, **site.storages}
    if other not in storages:
        raise UserError(f"--set {change}: site {name} has no storage {other!r}: {suggest(other, storages)}")
    like = storages[other]
    said = f"{old.label or old.mount} as {like.label or other} of {name}"
    same = {key: getattr(like, key) for key in ("topology", "medium", "shared", "type", "options")}
    return old.model_copy(update={**same, "label": said})


def _stage_of(word: str, change: str) -> tuple[StageKind, int | None]:
    """Return the kind, and which one of several."""
    kind, several, number = word.partition("#")
    kinds = get_args(StageKind)
    if kind not in kinds:
        raise UserError(f"--set {change}: no stage {kind!r}: {suggest(kind, kinds)}")
    if several and not (number.isascii() and number.isdigit()):
        raise UserError(f"--set {change}: {word}: the number of the stage follows #: {kind}#1")
    found: StageKind = kind  # type: ignore[assignment]
    return found, int(number) if several else None


def _places(storage: Storage, kind: StageKind) -> list[int]:
    return [n for n, stage in enumerate(storage.topology) if stage.stage == kind]


def _place(storage: Storage, kind: StageKind, number: int | None, change: str, name: str) -> int | None:
    """Return where in the topology the stage stands; None where the storage has none of its kind."""
    at = _places(storage, kind)
    if number is None and len(at) <= 1:
        return at[0] if at else None
    if number is None or not 1 <= number <= len(at):
        each = [f"{kind}#{n} ({storage.topology[place].name})" for n, place in enumerate(at, 1)]
        which = f": {', '.join(each)}" if each else ""
        raise UserError(f"--set {change}: {name} has {len(at)} stages {kind}{which}: write which one")
    return at[number - 1]


def _with(old: Stage | None, kind: StageKind, key: str, value: str, change: str) -> Stage:
    """Return a stage with one key of another value."""
    content: dict[str, Any] = old.model_dump() if old else {"stage": kind}
    if key in FIGURES:
        content["absent"] = False  # a figure of what the site file says is not there: now it is
    figure = key.removeprefix("read_").removeprefix("write_")
    if figure in FOR_EACH_DIRECTION:
        if key == figure:  # it stands for both directions
            content = {**content, f"read_{figure}": None, f"write_{figure}": None}
        elif content.get(figure) is not None:
            both = content.pop(figure)
            content = {**content, f"read_{figure}": both, f"write_{figure}": both}
    return parse(Stage, {**content, key: value, "source": SOURCE}, f"--set {change}", dumped=True)
