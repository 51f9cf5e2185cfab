"""What can be moved as one: folders that a program works in, and input files that it only reads.

A folder in which the program makes, removes or renames files moves as a whole: single links would be replaced
by new files, or refused (O_EXCL). So does a folder of many inputs that holds little else: a script moves it
in one step. Other files that it only reads move one by one, by a link in their place, and those of one folder
belong together. What the program is made of (its libraries and scripts) stays.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.placement.recipe import FileRecord, Recipe
from tiercel.site.model import Site
from tiercel.site.mounts import Mount, mount_of, read_mounts
from tiercel.units import format_size

#: Files that programs are made of.
PROGRAM_FILES = re.compile(
    r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|/__pycache__/|\.so(?:\.\d+)*$|\.pyc$|/\.pyenv/|/\.venv/|/conda/"
)
#: Folders that everybody shares: nothing there moves as a whole.
_SHARED = ("/", "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/scratch", "/var", "/opt", "/mnt", "/srv")
#: A folder with more than this many times what the program touched in it, and this many bytes more, stays.
_OTHER_TIMES, _OTHER_BYTES = 4, 1 << 30
#: More units than this are not tried one by one.
_MOST = 40
#: So many folders of inputs side by side are one.
_SIBLINGS = 4
#: A folder of so many inputs moves as a whole, when it holds at most so many times their bytes.
_MANY, _LITTLE_ELSE = 8, 2.0
#: Kinds of operations after which a folder holds other names.
_MAKING = frozenset("UNMXY")


@dataclass(frozen=True)
class Unit:
    """Files that move together. `storage`: where they lie, None where that is no storage of the site."""

    name: str
    """The folder; for inputs that move one by one with ``/*`` behind it."""
    folder: Path
    whole: bool
    """The folder moves as a whole; else its files one by one."""
    files: tuple[str, ...]
    storage: str | None
    stays: str = ""
    """Why it cannot move; empty where it can."""
    inputs: tuple[str, ...] = ()
    """Files that were there before."""
    results: tuple[str, ...] = ()
    """Files that the program leaves behind."""
    size: int = 0
    """Bytes that it needs at most."""
    bytes_before: int = 0
    """Bytes that are copied when it moves: of the whole folder, where that moves."""
    bytes_after: int = 0
    takes: tuple[str, ...] = field(default=())
    """Names of units that go where this one goes: they lie in its folder, or files are renamed between
    them."""
    changed: bool = False
    """The program makes, removes or renames files in the folder: it comes back whole."""


def data_files(names: Iterable[str], made: Collection[str] = ()) -> list[str]:
    """Return the files that hold a program's data: not the system's, not those that programs are made of,
    unless it has `made` or changed them (an installer's data are programs)."""
    return [
        name
        for name in names
        if name.startswith("/")
        and not name.startswith(SYSTEM_FOLDERS)
        and (name in made or not PROGRAM_FILES.search(name))
    ]


def units_of(
    recipe: Recipe, site: Site, home: str | None = None, mounts: Sequence[Mount] | None = None
) -> list[Unit]:
    """Return the units of a recipe's files, the largest first.

    `home`: take all files as lying on this storage (a trace from elsewhere), instead of looking.
    """
    known = read_mounts() if mounts is None else list(mounts)
    records = {r.name: r for r in recipe.records}
    made = {r.name for r in recipe.records if r.folder and not r.existed}
    changed = _changed_folders(recipe, made)
    members: dict[tuple[str, bool], list[str]] = {}
    for name, record in records.items():
        if record.folder:
            continue
        folder = _standing(_folder_of(name), made)
        members.setdefault((folder, folder in changed), []).append(name)
    members = _fewer(members)
    found: list[Unit] = []
    for (folder, makes), names in members.items():
        own = [records[n] for n in names]
        if not any(r.largest or r.remains or r.existed for r in own):
            continue  # only looked for, never there
        storage = home or _storage_of(Path(folder), site, known)
        inputs = tuple(r.name for r in own if r.existed)
        results = tuple(r.name for r in own if r.remains)
        size = sum(r.largest for r in own)
        before = sum(r.size for r in own if r.existed)
        stays, whole_size = _why_it_stays(Path(folder), makes, size, storage, known)
        reason, there = _why_it_stays(Path(folder), True, size, storage, known)
        many = len(inputs) >= _MANY and not reason and there <= _LITTLE_ELSE * size
        whole, whole_size = makes or many, there if many else whole_size
        name = folder if whole else f"{folder.rstrip('/')}/*"
        found.append(
            Unit(
                name, Path(folder), whole, tuple(sorted(names)), storage,
                stays, inputs, results, size, max(before, whole_size - _made_by_it(own)),
                sum(r.largest for r in own if r.remains), changed=makes,
            )
        )  # fmt: skip
    found.sort(key=lambda u: (-u.size, u.name))
    found = _with_others(found, list(records), lambda folder: home or _storage_of(Path(folder), site, known))
    return _with_company(found, _renames(recipe))


def _with_others(units: list[Unit], names: list[str], storage_of: Callable[[str], str | None]) -> list[Unit]:
    """Return the units with the folders and the names that were only looked for, each with what is around
    it."""
    taken = {file for unit in units for file in unit.files}
    place = {str(u.folder): i for i, u in reversed(list(enumerate(units)))}
    more: dict[int, list[str]] = {}
    alone: dict[str | None, list[str]] = {}
    for name in names:
        if name in taken:
            continue
        folder = name
        while folder not in place and folder not in ("/", ""):
            folder = _folder_of(folder)
        if folder in place:
            more.setdefault(place[folder], []).append(name)
        else:
            alone.setdefault(storage_of(_folder_of(name)), []).append(name)
    found = [replace(u, files=tuple(sorted((*u.files, *more.get(i, ()))))) for i, u in enumerate(units)]
    for storage, others in alone.items():
        name = f"looked for on {storage or 'other mounts'}"
        found.append(Unit(name, Path("/"), False, tuple(others), storage, "nothing is read or written there"))
    return found


def _fewer(members: dict[tuple[str, bool], list[str]]) -> dict[tuple[str, bool], list[str]]:
    """Return folders with the innermost put into those above them, until there are few enough to try."""
    members = _inputs_together(members)
    while len(members) > _MOST:
        inner = [(folder, outer) for folder, _ in members if (outer := _above(folder, members)) is not None]
        if not inner:
            break
        folder, outer = max(inner, key=lambda pair: pair[0].count("/"))
        for whole in (True, False):
            members[outer, True] += members.pop((folder, whole), [])
    return members


def _inputs_together(
    members: dict[tuple[str, bool], list[str]],
) -> dict[tuple[str, bool], list[str]]:
    """Return folders of inputs put together where many lie in one: they are one dataset."""
    members = dict(members)
    while True:
        inside: dict[str, list[str]] = {}
        for folder, whole in members:
            parent = _folder_of(folder)
            if not whole and folder != "/" and parent not in _SHARED and (parent, True) not in members:
                inside.setdefault(parent, []).append(folder)
        many = [(parent, folders) for parent, folders in inside.items() if len(folders) >= _SIBLINGS]
        if not many:
            return members
        parent, folders = max(many, key=lambda pair: pair[0].count("/"))
        for folder in folders:
            members.setdefault((parent, False), []).extend(members.pop((folder, False)))


def _above(folder: str, members: dict[tuple[str, bool], list[str]]) -> str | None:
    """Return the nearest folder above that moves as a whole."""
    while folder not in ("/", ""):
        folder = _folder_of(folder)
        if (folder, True) in members and folder not in _SHARED:
            return folder
    return None


def _renames(recipe: Recipe) -> list[tuple[str, str]]:
    """Return the pairs of files that are renamed or linked into each other."""
    names = recipe.files
    return [
        (names[o.file], names[o.offset - 1])
        for operations in recipe.streams
        for o in operations
        if o.kind in "NY" and o.offset
    ]


def _with_company(units: list[Unit], renames: list[tuple[str, str]]) -> list[Unit]:
    """Return the units with those that each takes along."""
    of_file = {file: unit.name for unit in units for file in unit.files}
    pairs = {(of_file[a], of_file[b]) for a, b in renames if a in of_file and b in of_file}
    found = []
    for unit in units:
        takes = {b for a, b in pairs if a == unit.name} | {a for a, b in pairs if b == unit.name}
        if unit.whole:
            takes |= {u.name for u in units if unit.folder in (u.folder, *u.folder.parents)}
        found.append(replace(unit, takes=tuple(sorted(takes - {unit.name}))))
    return found


def _changed_folders(recipe: Recipe, made: set[str]) -> set[str]:
    """Return the folders, there before the program, in which it makes, removes or renames files."""
    records = recipe.records
    touched = set()
    for operations in recipe.streams:
        for o in operations:
            if o.kind in _MAKING:
                touched.add(records[o.file].name)
                if o.kind in "NY" and o.offset:
                    touched.add(records[o.offset - 1].name)
    touched |= {r.name for r in records if r.remains and not r.existed}
    return {_standing(_folder_of(name), made) for name in touched}


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _standing(folder: str, made: set[str]) -> str:
    """Return the nearest folder at or above `folder` that the program did not make itself."""
    while folder in made:
        folder = _folder_of(folder)
    return folder


def _storage_of(folder: Path, site: Site, mounts: list[Mount]) -> str | None:
    mount = mount_of(folder, mounts)
    for name, storage in site.storages.items():
        if mount is not None and storage.mount_path() == mount.point:
            return name
    return None


def _made_by_it(records: Sequence[FileRecord]) -> int:
    """Return the bytes that now lie there because the program ran: they were not there to be copied in."""
    total = 0
    for record in records:
        if record.remains and not record.existed:
            with contextlib.suppress(OSError):
                total += os.lstat(record.name).st_size
    return total


def _why_it_stays(
    folder: Path, whole: bool, size: int, storage: str | None, mounts: list[Mount]
) -> tuple[str, int]:
    """Return why a unit cannot move ("" where it can), and the bytes of the folder that would move."""
    if storage is None:
        return "lies on no storage of this site", 0
    if not whole:
        return "", 0
    if str(folder) in _SHARED or folder == Path.home():
        return f"is made in {folder}, which is not this program's alone: let it use a folder of its own", 0
    if any(m.point == folder for m in mounts):
        return f"{folder} is a mount point: let it use a folder in it", 0
    if not folder.is_dir():
        return "", 0
    if not os.access(folder.parent, os.W_OK):
        return f"{folder.parent} cannot be written, so {folder} cannot be replaced by a link", 0
    there = folder_size(folder, max(_OTHER_BYTES + size, _OTHER_TIMES * size))
    if there > size + _OTHER_BYTES and there > _OTHER_TIMES * size:
        return f"{folder} holds much more than this program uses ({format_size(there)} at least)", there
    return "", there


def folder_size(folder: Path, enough: int) -> int:
    """Return the bytes of the files in a folder; counting ends beyond `enough`."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{place}/{name}").st_size
            except OSError:
                continue
        if total > enough:
            break
    return total
