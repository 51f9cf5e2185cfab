"""The working set of a program: the folders that are copied for each trial.

Before anything is known: the folder in which it is started, and those that its command line names. After the
traced run: those of them that it uses, and other folders that it writes to or reads much of.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.advice.seen import Seen, common
from tiercel.errors import UserError
from tiercel.placement import stage
from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.site.model import Site
from tiercel.site.mounts import Mount, mount_of

#: Folders that others use, too: they are not copied, folders in them are.
_SHARED = {
    "/", "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/scratch", "/var", "/opt", "/mnt", "/srv",
    "/media", "/work", "/data", "/lustre", "/gpfs",
}  # fmt: skip
_SCRIPTS = (".py", ".sh", ".pl", ".R", ".jl", ".rb", ".lua")
#: Reading less than this share of all that is read, or than these bytes, does not make a folder part of the
#: set.
_MUCH, _MUCH_BYTES = 0.05, 1 << 20


@dataclass(frozen=True)
class Folder:
    """One folder of the working set. `home`: the storage that it lies on; `used`: the program needs it."""

    path: str
    home: str
    size: int
    used: bool = True


@dataclass(frozen=True)
class Part:
    """A folder inside the working set that is tried by itself, and why."""

    path: str
    why: str


def shared(path: str) -> bool:
    """Return whether a folder is others', too, or the system's."""
    return path in _SHARED or path == str(Path.home()) or f"{path}/".startswith(SYSTEM_FOLDERS)


def first_folders(argv: Sequence[str], cwd: str, named: Sequence[str]) -> list[str]:
    """Return the folders to copy before anything is known of the program; `named` by the user, only these."""
    if named:
        return _outermost([_named(name) for name in named])
    found = [cwd]
    for word in argv[1:]:
        for path in {word, word.partition("=")[2]}:
            if path and (folder := _folder_of(os.path.join(cwd, path), word)):  # noqa: PTH118
                found.append(folder)
    return _outermost([os.path.realpath(f) for f in found if not shared(os.path.realpath(f))])


def _named(name: str) -> str:
    path = os.path.realpath(name)
    if not Path(path).is_dir():
        raise UserError(f"--files {name}: is not a folder")
    if shared(path):
        raise UserError(f"--files {name}: is not this program's own: name a folder in it")
    return path


def _folder_of(path: str, word: str) -> str | None:
    """Return the folder that a word of the command line may mean: itself, or what a file lies in."""
    if "/" not in word and not os.path.lexists(path):
        return None
    if os.path.isdir(path):  # noqa: PTH112
        return path
    if os.path.isfile(path) and (os.access(path, os.X_OK) or path.endswith(_SCRIPTS)):  # noqa: PTH113
        return None
    parent = os.path.dirname(path)  # noqa: PTH120
    return parent if os.path.isdir(parent) and len(word) < 4096 else None  # noqa: PTH112


def _outermost(folders: Sequence[str]) -> list[str]:
    """Return the folders that lie in none of the others."""
    kept: list[str] = []
    for folder in sorted(set(folders), key=lambda f: (f.count("/"), f)):
        if not any(folder == k or folder.startswith(k + "/") for k in kept):
            kept.append(folder)
    return kept


def storage_of(folder: str, site: Site, mounts: list[Mount]) -> str | None:
    """Return the storage of the site that holds a folder; None where that is none."""
    mount = mount_of(Path(folder), mounts)
    for name, storage in site.storages.items():
        if mount is not None and not storage.objects and storage.mount_path() == mount.point:
            return name
    return None


def sized(paths: Sequence[str], site: Site, mounts: list[Mount]) -> list[Folder]:
    """Return folders with their storages and sizes. UserError for one that cannot be copied."""
    found = []
    for path in paths:
        home = storage_of(path, site, mounts)
        if home is None:
            raise UserError(
                f"{path} lies on no storage of site {site.site}; add its mount to site.yaml, or name other "
                f"folders with --files (storages: {', '.join(site.storages)})"
            )
        try:
            found.append(Folder(path, home, stage.size_of(path)))
        except stage.Problem as problem:
            raise UserError(
                f"{path}: cannot be copied: {problem}. Name the folders to try with --files"
            ) from None
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: cannot be copied: {error.strerror}. Name the folders to try "
                f"with --files"
            ) from None
    return found


def after_trace(
    folders: Sequence[Folder], seen: Seen, site: Site, mounts: list[Mount]
) -> tuple[list[Folder], list[str]]:
    """Return the folders to try from now on, and folders that the program changes outside of them."""
    data = seen.data()
    sizes = {name: _size(name) for name in data}
    total = sum(sizes.values())
    kept, outside = [], set()
    read: dict[str, int] = {}
    for folder in folders:
        inside = [n for n in data if n == folder.path or n.startswith(folder.path + "/")]
        changes = any(data[n].written or data[n].made or data[n].removed for n in inside)
        much = sum(sizes[n] for n in inside) >= min(_MUCH_BYTES, max(1, _MUCH * total))
        if changes or much:
            kept.append(folder)
    for name, file in data.items():
        if any(name == f.path or name.startswith(f.path + "/") for f in folders) or name in ("", "/"):
            continue
        folder_path = _standing(name)
        if file.written or file.made or file.removed:
            outside.add(folder_path)
        elif sizes[name]:
            read[folder_path] = read.get(folder_path, 0) + sizes[name]
    more = _together({f for f, size in read.items() if size >= max(_MUCH_BYTES, _MUCH * total)}, read)
    wanted = _outermost([f for f in {*more, *outside} if not shared(f) and storage_of(f, site, mounts)])
    wanted = [f for f in wanted if not any(k.path.startswith(f + "/") for k in folders)]
    added = []
    for path in wanted:
        try:
            added += sized([path], site, mounts)
        except UserError:
            continue  # what cannot be copied stays where it is
    covered = {f.path for f in added}
    untried = sorted(f for f in outside if not any(f == c or f.startswith(c + "/") for c in covered))
    return [*kept, *added], untried


def _together(folders: set[str], read: dict[str, int]) -> list[str]:
    """Return folders of inputs, those that lie side by side as the one around them. Folders of which the
    program reads little are left out."""
    if len(folders) > 1:
        around = os.path.commonpath(sorted(folders))
        if not shared(around) and _mostly(around, sum(read[f] for f in folders)):
            return [around]
    return sorted(f for f in folders if _mostly(f, read[f]))


def _mostly(folder: str, read: int) -> bool:
    """Return whether copying a folder of inputs copies little that the program does not read."""
    return stage_size(folder) <= 4 * read + (64 << 20)


def stage_size(folder: str) -> int:
    try:
        return stage.size_of(folder)
    except (OSError, stage.Problem):
        return 1 << 62


def _standing(name: str) -> str:
    """Return the nearest folder above a file that is there."""
    folder = name.rpartition("/")[0] or "/"
    while not os.path.isdir(folder):  # noqa: PTH112
        folder = folder.rpartition("/")[0] or "/"
    return folder


def _size(name: str) -> int:
    try:
        return os.lstat(name).st_size if os.path.isfile(name) else 0  # noqa: PTH113
    except OSError:
        return 0


def parts_of(folders: Sequence[Folder], seen: Seen) -> list[Part]:
    """Return folders inside the working set that may be worth moving alone, the most promising first."""
    data = seen.data()
    wanted = (
        ("the program syncs files there", [n for n, f in data.items() if f.syncs]),
        ("its temporary files lie there", [n for n, f in data.items() if f.made and f.removed]),
        ("it writes there", [n for n, f in data.items() if f.written and not f.removed]),
        (
            "it opens its inputs there more than once",
            [n for n, f in data.items() if f.opens > 1 and not f.made],
        ),
    )
    found: list[Part] = []
    for why, names in wanted:
        for folder in folders:
            inside = [n for n in names if n.startswith(folder.path + "/")]
            path = _standing(f"{common(inside)}/x") if inside else folder.path
            smaller = path.startswith(folder.path + "/") or len(folders) > 1
            if inside and smaller and path not in [p.path for p in found]:
                found.append(Part(path, why))
    return found
