"""From words to a comparison: what sides a user means, and all that is said of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tiercel.compare.answer import Answer, compare_sides
from tiercel.compare.places import find_place, is_place
from tiercel.compare.side import make_side, names_of
from tiercel.compare.spelling import Spelling, read_side
from tiercel.compare.tables import read_tables
from tiercel.errors import UserError, one_line
from tiercel.results.validity import FLAGS
from tiercel.site.load import known_sites


def sides_of(
    sides: Sequence[str], root: Path, study: str | None, layers: Sequence[str], storages: Sequence[str]
) -> list[Spelling]:
    """Return the sides that are compared: one that is given may be split by layers or storages. UserError for
    fewer than two, and for one twice."""

    found = [read_side(text, lambda where: is_place(where, root)) for text in sides]
    if study:
        name = Path(study).stem if study.endswith((".yaml", ".yml")) else study
        found = [s if s.study else s.narrowed("study", name) for s in found]
    for key, values in (("layer", layers), ("storage", storages)):
        if len(found) == 1 and len(values) > 1:
            found = [found[0].narrowed(key, value) for value in values]
        elif len(values) == 1:
            found = [s if getattr(s, key) else s.narrowed(key, values[0]) for s in found]
        elif values:
            raise UserError(f"--{key}: several are compared of one side, and one is taken of several sides")
    if len(found) < 2:
        raise UserError(
            f"{one_line(sides[0])}: only one side: name another, or --storage A --storage B, or --layer A "
            "--layer B"
        )
    if any(s.layer for s in found):  # a layer is held against its absence where nothing else is said
        found = [s if s.layer else s.narrowed("layer", "none") for s in found]
    seen: dict[tuple[object, ...], str] = {}
    for s in found:
        what = identity(s, root)
        if what in seen:
            raise UserError(
                f"{s.text}: the same as {seen[what]}: give a side other dates (@DATE), a layer (+LAYER) or a "
                "storage (:storage=NAME)"
            )
        seen[what] = s.text
    return found


def compared(
    spellings: Sequence[Spelling], root: Path, mapped: Mapping[str, str], margin: float,
    baselines: Sequence[str] = (),
) -> Answer:  # fmt: skip
    """Read the sides' tables and compare them with the first. UserError for what cannot be compared.

    `baselines`: further sessions of the first side.
    """

    excluded = [code for code, flag in FLAGS.items() if flag.severity == "invalid"]
    with tempfile.TemporaryDirectory(prefix="tiercel-compare-") as scratch:
        found = []
        again = [read_side(text, lambda where: is_place(where, root)) for text in baselines]
        every = [*spellings, *again]
        for name, spelling in zip(names_of(every), every, strict=True):
            place = find_place(spelling.where, root, lambda: known_sites(root), Path(scratch))
            found.append(make_side(name, spelling, place, read_tables(place.folder, place.source)))
        count = len(spellings)
        return compare_sides(found[:count], excluded, mapped, margin, found[count:])


def identity(side: Spelling, root: Path) -> tuple[object, ...]:
    """Return what a side is, however it is written."""
    of_site = root / "results" / side.where
    return ((of_site if of_site.is_dir() else Path(side.where)).resolve(), *side.narrowing)
