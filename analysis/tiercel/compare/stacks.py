"""Which storage (and layer) of another side stands beside which of the baseline.

In this order, each storage at most once: what the user maps; what both sides were narrowed to; the same name;
the same label; the same type and medium, where it is the only one of these on both sides. Nothing else is
guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from tiercel.compare.side import Side
from tiercel.errors import UserError, suggest


@dataclass(frozen=True)
class Storage:
    """What a side says of one of its storages."""

    name: str
    label: str
    type: str
    medium: str


@dataclass(frozen=True)
class Stacks:
    """Partners of storages and layers: names of the other side by those of the baseline."""

    storages: Mapping[str, str]
    why: Mapping[str, str]
    """By storage of the baseline: how its partner was found."""
    layers: Mapping[str, str]
    """Only where both sides were narrowed to one layer; otherwise each layer stands beside itself."""

    def layer(self, name: str) -> str:
        return self.layers.get(name, name)

    def reversed(self) -> Stacks:
        """Return the partners as the other side sees them."""
        return Stacks(
            {b: a for a, b in self.storages.items()},
            {b: self.why[a] for a, b in self.storages.items()},
            {b: a for a, b in self.layers.items()},
        )


def storages_of(side: Side) -> dict[str, Storage]:
    """Return the storages that a side measured, by name: those on which every run failed, too."""
    columns = ["storage", "storage_label", "storage_type", "medium"]
    failed = side.failed.sort_values("started", kind="stable")[columns]
    numbers = side.observations.sort_values("began", kind="stable")[columns]
    rows = pd.concat([failed, numbers]).dropna(subset="storage").drop_duplicates("storage", keep="last")
    return {
        str(row["storage"]): Storage(
            str(row["storage"]), *(_text(row[name]) for name in ("storage_label", "storage_type", "medium"))
        )
        for row in rows.sort_values("storage").to_dict("records")
    }


def _text(value: object) -> str:
    return str(value) if isinstance(value, str) else ""


def pair_stacks(base: Side, other: Side, mapped: Mapping[str, str]) -> Stacks:
    """Return the partners of one side's storages on another; UserError for a map that names none."""
    mine, theirs = storages_of(base), storages_of(other)
    found, why = {}, {}
    for one, two in mapped.items():
        if one in mine and two in theirs:
            found[one], why[one] = two, "mapped"
    chosen = base.spelling.storage, other.spelling.storage
    if chosen[0] in mine and chosen[1] in theirs and chosen[0] not in found:
        found[str(chosen[0])], why[str(chosen[0])] = str(chosen[1]), "chosen"
    ways: tuple[tuple[str, Callable[[Storage], tuple[str, ...]]], ...] = (
        ("same name", lambda s: (s.name,)),
        ("same label", lambda s: (s.label,)),
        ("same type", lambda s: (s.type, s.medium)),
    )
    for reason, key in ways:
        free = [s for s in mine.values() if s.name not in found]
        left = [s for s in theirs.values() if s.name not in found.values()]
        often = Counter(map(key, free)), Counter(map(key, left))
        for storage in free:
            partners = [s for s in left if key(s) == key(storage)]
            alone = often[0][key(storage)] == often[1][key(storage)] == 1
            if alone and key(storage)[0]:
                found[storage.name], why[storage.name] = partners[0].name, reason
    layers = {}
    if base.spelling.layer and other.spelling.layer:
        layers = {base.names("layer")[0]: other.names("layer")[0]}
    return Stacks(found, why, layers)


def check_map(mapped: Mapping[str, str], base: Side, others: list[Side]) -> None:
    """Raise UserError where a map names a storage that no side has."""
    mine, theirs = storages_of(base), {n for other in others for n in storages_of(other)}
    for one, two in mapped.items():
        if one not in mine:
            raise UserError(f"--storage-map {one}={two}: {base.name} has no {one!r}: {suggest(one, mine)}")
        if two not in theirs:
            raise UserError(f"--storage-map {one}={two}: no other side has {two!r}: {suggest(two, theirs)}")
