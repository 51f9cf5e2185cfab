"""SHA-256 of every file, as ``sha256sum -c`` reads it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tiercel.artifact.layout import CHECKSUMS
from tiercel.errors import UserError

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
#: In names: what ends a line somewhere, what sha256sum escapes, and bytes that are no UTF-8.
_ODD = re.compile(r"[\\\ud800-\udfff\0-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True)
class Damage:
    """What of an artifact is not as it was packed; paths from its folder."""

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    """Not in the list: figures would be made from them, scripts would run them."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.added)

    def lines(self) -> list[str]:
        """Return one line for each file."""
        return [
            *(f"{path}: is not the file that was packed" for path in self.changed),
            *(f"{path}: is missing" for path in self.missing),
            *(f"{path}: was not packed" for path in self.added),
        ]


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_checksums(folder: Path) -> Path:
    """Write the checksums of every file in `folder` and below; return the list's path."""
    target = folder / CHECKSUMS
    paths = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p != target)
    if odd := next((p for p in paths if _ODD.search(p)), None):
        raise UserError(f"{odd!r}: a name that a list of checksums cannot hold")
    target.write_text("".join(f"{digest_of(folder / p)}  {p}\n" for p in paths), encoding="utf-8")
    return target


def read_checksums(folder: Path) -> dict[str, str]:
    """Return {path: SHA-256}. UserError where the list is missing or is none."""
    path = folder / CHECKSUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(f"{folder}: no artifact: there is no {CHECKSUMS}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        parts = PurePosixPath(match[2]).parts if match else ()
        if not match or match[2].startswith("/") or ".." in parts:
            raise UserError(f"{path}:{number}: not a line of checksums")
        found[match[2]] = match[1]
    return found


def damage(folder: Path, within: Iterable[str]) -> Damage:
    """Compare every file with its checksum, and look for files that have none: `within`, files and folders.

    A link is never what was packed, nor on the way to a file: who changes where it leads changes the file.
    """
    listed = read_checksums(folder)
    here = {path: folder / path for path in sorted(listed)}
    missing = [path for path, file in here.items() if not file.is_file() or _linked(folder, path)]
    changed = [path for path in here if path not in missing and digest_of(here[path]) != listed[path]]
    there = {path.relative_to(folder).as_posix() for name in within for path in _within(folder / name)}
    return Damage(tuple(changed), tuple(missing), tuple(sorted(there - listed.keys())))


def _linked(folder: Path, path: str) -> bool:
    """Return whether a link is on the way from `folder` to the file `path`, or is the file."""
    return any(
        (folder / part).is_symlink() for part in (path, *map(str, list(PurePosixPath(path).parents)[:-1]))
    )


def _within(folder: Path) -> Iterator[Path]:
    """Yield all that is below `folder` and no folder; links to folders, which are not followed, are none.
    A file is all there is below itself."""
    if folder.is_symlink() or folder.is_file():
        yield folder
        return
    for where, folders, files in os.walk(folder):
        yield from (Path(where, name) for name in files)
        yield from (path for name in folders if (path := Path(where, name)).is_symlink())
