"""SHA-256 of every file, as ``sha256sum -c`` reads it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tiercel.artifact.layout import CHECKSUMS
from tiercel.errors import UserError

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Damage:
    """What of an artifact is not as it was packed; paths from its folder."""

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    """In the results: figures would be made from them, too."""

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
    if odd := next((p for p in paths if "\n" in p or "\\" in p), None):
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


def damage(folder: Path, within: str) -> Damage:
    """Compare every file with its checksum, and look for files in the folder `within` that have none."""
    listed = read_checksums(folder)
    here = {path: folder / path for path in sorted(listed)}
    missing = [path for path, file in here.items() if not file.is_file() or file.is_symlink()]
    changed = [path for path in here if path not in missing and digest_of(here[path]) != listed[path]]
    there = {p.relative_to(folder).as_posix() for p in (folder / within).rglob("*") if not p.is_dir()}
    return Damage(tuple(changed), tuple(missing), tuple(sorted(there - listed.keys())))
