"""Files that belong together: by name (dump.10.txt, dump.20.txt...), and because the program needs them on
one system.

A *group* is what a plan speaks of in one row: files of one folder pattern and name pattern, numbers and
hexadecimal words being any. A *bundle* is groups that must lie on the same file system, because the program
renames or links files from one to the other, or finds one beside the other (a database and its journal).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

import pandas as pd

from tiercel.errors import UserError

#: Runs of digits, and long hexadecimal words.
_NUMBER = re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{8,}(?![0-9a-zA-Z])|\d+")
#: Names of temporary files that end in letters drawn at random.
_TEMPORARY = re.compile(r"^(tmp_obj_|tmp_pack_|tmp_idx_|sort|tmp\.?)\w{6,10}$")
#: git's folders of loose objects.
_OBJECT = re.compile(r"(?<=/objects/)[0-9a-f]{2}(?=/)")
#: Folders of the operating system: programs read them wherever their data lies.
SYSTEM_FOLDERS = (
    "/proc/",
    "/sys/",
    "/dev/",
    "/usr/",
    "/lib/",
    "/lib64/",
    "/etc/",
    "/bin/",
    "/sbin/",
    "/run/",
)
#: SQLite's own files beside a database; it cannot open one without the others.
_COMPANIONS = ("-journal", "-wal", "-shm")


def pattern_of(path: str) -> str:
    """Return the path with what varies from file to file as ``*``."""
    folder, slash, name = path.rpartition("/")
    place = _NUMBER.sub("*", _OBJECT.sub("*", folder + slash))
    if (temporary := _TEMPORARY.match(name)) is not None:
        return f"{place}{temporary[1]}*"
    return place + _NUMBER.sub("*", name)


def groups_of(files: Iterable[str]) -> pd.Series:
    """Return the group (its pattern) of each file (index: file). A pattern of one file is that file's
    path."""
    names = list(files)
    patterns = pd.Series([pattern_of(n) for n in names], index=pd.Index(names, name="file"))
    alone = patterns.map(patterns.value_counts()) == 1
    return patterns.where(~alone, patterns.index.to_series())


def bundles_of(groups: pd.Series, renamed: Iterable[str] = (), together: Iterable[str] = ()) -> pd.Series:
    """Return the bundle (a number) of each group (index: group), given each file's group.

    `renamed`: files that the program renamed or linked. To where, tracers do not say; a rename does not leave
    its file system, so a renamed file's group stays with the other groups of its folder and those above and
    below it. `together`: shell patterns; all files that match one stay on one system.
    """
    parent = {group: group for group in groups.unique()}

    def find(group: str) -> str:
        while parent[group] != group:
            parent[group] = parent[parent[group]]
            group = parent[group]
        return group

    def join(some: list[str]) -> None:
        for other in some[1:]:
            parent[find(other)] = find(some[0])

    by_name: dict[str, str] = {str(file): str(group) for file, group in groups.items()}
    for file, group in by_name.items():
        for suffix in _COMPANIONS:
            if (base := file.removesuffix(suffix)) != file and base in by_name:
                join([by_name[base], group])
    folders = {file: file.rpartition("/")[0] for file in by_name}
    for file in renamed:
        folder = file.rpartition("/")[0]
        members = [
            by_name[f]
            for f, at in folders.items()
            if at == folder or (folder and at.startswith(f"{folder}/"))
        ]
        if file in by_name:
            members.append(by_name[file])
        join(list(dict.fromkeys(members)))
    for pattern in together:
        matching = list(dict.fromkeys(g for f, g in by_name.items() if fnmatchcase(f, pattern)))
        if not matching:
            raise UserError(
                f"--together {pattern}: no file of the trace has such a name: '*/name', or its path"
            )
        join(matching)
    numbers: dict[str, int] = {}
    return pd.Series(
        {g: numbers.setdefault(find(g), len(numbers)) for g in parent}, name="bundle", dtype="int64"
    )
