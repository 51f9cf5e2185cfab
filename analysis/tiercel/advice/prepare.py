"""What of a program can be tried, and where: its recipe, its units, the storages that are ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tiercel.advice.units import Unit, data_files, units_of
from tiercel.advice.ways import Way, all_on
from tiercel.advice.ways import home as home_way
from tiercel.errors import UserError
from tiercel.placement.compile import compile_trace
from tiercel.placement.delay import Delay
from tiercel.placement.recipe import Recipe, common_folder
from tiercel.runs.scratch import check_scratch
from tiercel.site.model import Site, Stack
from tiercel.traces import IOFrame
from tiercel.units import format_size

#: Calls after which a file or folder is the program's own, wherever it lies.
_MAKES = (
    "(failed IS NOT TRUE AND (kind = 'write' OR contains(coalesce(flags, ''), 'O_CREAT') OR "
    "regexp_matches(function, '^(mkdir|rename|link|symlink|creat|f?truncate)')))"
)


def data_of(frame: IOFrame) -> list[str]:
    """Return the files and folders of a trace that hold the program's data."""
    names = frame.query(
        f"SELECT name, bool_or(made) AS made FROM (SELECT file AS name, {_MAKES} AS made FROM events "
        f"WHERE api <> 'app' UNION ALL SELECT target, {_MAKES} FROM events WHERE api <> 'app' "
        "AND kind IN ('write', 'metadata')) WHERE name IS NOT NULL GROUP BY name"
    )
    made = frozenset(str(n) for n in names.loc[names["made"], "name"])
    return data_files((str(n) for n in names["name"]), made)


@dataclass(frozen=True)
class Prepared:
    """What can be tried. `storages`: those that are ready; `left_out`: the others, with the reason."""

    recipe: Recipe
    units: list[Unit]
    storages: list[str]
    left_out: dict[str, str]
    notes: list[str]

    @property
    def home(self) -> str:
        """The storage that most of the bytes lie on."""
        sizes: dict[str, int] = {}
        for unit in self.units:
            if unit.storage:
                sizes[unit.storage] = sizes.get(unit.storage, 0) + unit.size
        return max(sizes, key=lambda s: sizes[s])

    @property
    def candidates(self) -> list[Way]:
        """A way for each storage that would change something."""
        at_home = dict(home_way(self.units).systems)
        ways = [all_on(storage, self.units) for storage in self.storages]
        return [way for way in ways if dict(way.systems) != at_home]


def prepare(frame: IOFrame, site: Site, home: str | None, delay: Delay) -> Prepared:
    """Return what can be tried of a trace; `home`: take all files as lying there; `delay`: what the tracer
    added.

    NothingToReplay where the program has no files; UserError where these lie on no storage of the site.
    """
    data = data_of(frame)
    recipe = compile_trace(frame, only=data, delay=delay)
    units = units_of(recipe, site, home)
    notes = []
    outside = [u for u in units if u.storage is None and u.size]
    if outside:
        size = format_size(sum(u.size for u in outside))
        notes.append(
            f"{sum(len(u.files) for u in outside)} files ({size}) lie on no storage of site {site.site} "
            f"({outside[0].folder}...): they are not replayed"
        )
    inside = [u for u in units if u.storage is not None]
    if not any(u.size for u in inside):
        raise UserError(
            f"the program's files lie on no storage of site {site.site}: name where they are to be taken as "
            f"lying, --home NAME (there are: {', '.join(site.storages)})"
        )
    if len(inside) < len(units):
        recipe = compile_trace(frame, only={f for u in inside for f in u.files}, delay=delay)
        units = units_of(recipe, site, home)
    recipe.bases = bases_of(units)
    usable, left_out = _ready(site, units)
    return Prepared(recipe, units, usable, left_out, [*notes, *_mappings(recipe)])


def bases_of(units: Sequence[Unit]) -> tuple[str, ...]:
    """Return the folders without which files are replayed, one for the files of each storage.

    A server is asked for every folder of a name: below their common folder the replay's names are as deep as
    the program's.
    """
    files: dict[str, list[str]] = {}
    for unit in units:
        files.setdefault(unit.storage or "", []).extend(unit.files)
    found = {common_folder(names) for names in files.values()} - {""}
    # Of two in one another the inner one first.
    return tuple(sorted(found, key=lambda base: (-len(base), base)))


def _mappings(recipe: Recipe) -> Iterator[str]:
    for call, count in sorted(recipe.left_out.items(), key=lambda pair: -pair[1]):
        if call in ("mmap", "mmap2"):
            yield (
                f"{count} mappings of its files into memory: what it reads and writes through them is in no "
                "trace of calls, and not in this advice"
            )


def _ready(site: Site, units: Sequence[Unit]) -> tuple[list[str], dict[str, str]]:
    """Return the storages that can be tried, and why the others cannot."""
    usable, left_out = [], {}
    for name, storage in site.storages.items():
        try:
            check_scratch(Stack(name, storage))
            usable.append(name)
        except UserError as error:
            left_out[name] = str(error)
    for unit in units:
        if unit.storage in left_out:
            raise UserError(f"{unit.folder} lies on a storage that cannot be tried: {left_out[unit.storage]}")
    return usable, left_out
