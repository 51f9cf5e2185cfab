"""Where a side's tables lie: a site's results, a folder anywhere, or an archive of one.

Of an archive only the two tables are read, under names of our own: what else it holds, and where it wants to
lie, does not matter.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tiercel.errors import UserError, suggest
from tiercel.project import results_folder

OBSERVATIONS, RUNS = "observations.parquet", "runs.parquet"
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
#: A table larger than this is not unpacked.
LARGEST = 8 << 30
_BLOCK = 1 << 20
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError,
           NotImplementedError, RuntimeError)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A folder with tables. `raw`: its raw folder lies beside them and is the site's own."""

    folder: Path
    source: Path
    """What the user has: the folder, or the archive."""

    @property
    def archived(self) -> bool:
        return self.folder != self.source


def is_place(where: str, root: Path) -> bool:
    """Return whether a side's WHERE names something that exists."""
    return _is_site(where, root) or _exists(Path(where))


def find_place(where: str, root: Path, sites: Callable[[], list[str]], scratch: Path) -> Place:
    """Return where the tables of `where` lie; an archive is unpacked below `scratch`. Raises UserError."""
    path = Path(where)
    if _is_site(where, root):
        return _in_folder(results_folder(root, where))
    if where in (known := sites()) and not (path / OBSERVATIONS).is_file():
        raise UserError(f"site {where}: nothing measured yet: run `tiercel evaluate --site {where}`")
    if not _exists(path):
        measured = [p.name for p in (root / "results").glob("*") if (p / OBSERVATIONS).is_file()]
        raise UserError(
            f"side {where!r}: no such site, folder or archive: {suggest(where, sorted({*known, *measured}))}"
        )
    return _in_folder(path) if path.is_dir() else _in_archive(path, scratch)


def _is_site(where: str, root: Path) -> bool:
    plain = where not in ("", ".", "..") and "/" not in where and "\0" not in where
    return plain and _exists(results_folder(root, where)) and results_folder(root, where).is_dir()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, a zero byte
        return False


def _in_folder(folder: Path) -> Place:
    if (folder / OBSERVATIONS).is_file():
        return Place(folder, folder)
    if (folder / "raw").is_dir():
        raise UserError(f"{folder}: has raw files and no tables yet: run `tiercel collect`")
    below = sorted(p.parent for p in folder.glob(f"*/{OBSERVATIONS}"))
    if len(below) == 1:
        return Place(below[0], below[0])
    if below:
        raise UserError(f"{folder}: holds several results: name one ({', '.join(map(str, below[:5]))})")
    raise UserError(f"{folder}: no results: there is no {OBSERVATIONS}")


@dataclass(frozen=True)
class _Member:
    name: PurePosixPath
    size: int
    open: Callable[[], IO[bytes] | None]


def _in_archive(path: Path, scratch: Path) -> Place:
    if not path.is_file() or not path.name.lower().endswith(ARCHIVES):  # a pipe would be waited for
        raise UserError(f"{path}: neither a folder nor an archive ({', '.join(ARCHIVES)})")
    try:
        with _members(path) as members:
            tables = [m for m in members if m.name.name in (OBSERVATIONS, RUNS)]
            folders = sorted({m.name.parent for m in tables if m.name.name == OBSERVATIONS})
            if not folders:
                raise UserError(f"{path}: holds no {OBSERVATIONS}: run `tiercel collect` before packing it")
            if len(folders) > 1:
                shown = ", ".join(map(str, folders[:5]))
                raise UserError(f"{path}: holds several results ({shown}): unpack it and name one")
            target = scratch / f"archive-{len(list(scratch.iterdir()))}"
            target.mkdir()
            for member in tables:
                if member.name.parent == folders[0]:
                    _unpack(member, target / member.name.name, path)
    except _BROKEN as error:
        raise UserError(f"{path}: damaged, or no archive: {str(error) or type(error).__name__}") from None
    return Place(target, path)


@contextmanager
def _members(path: Path) -> Iterator[list[_Member]]:
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as packed:
            yield [
                _Member(PurePosixPath(i.filename), i.file_size, lambda i=i: packed.open(i))  # type: ignore[misc]
                for i in packed.infolist()
                if not i.is_dir()
            ]
        return
    with tarfile.open(path) as archive:
        yield [
            _Member(PurePosixPath(m.name), m.size, lambda m=m: archive.extractfile(m))  # type: ignore[misc]
            for m in archive
            if m.isreg()
        ]


def _unpack(member: _Member, target: Path, archive: Path) -> None:
    """Copy a member, and no more bytes than are allowed, whatever the archive's own words on its size."""
    source = member.open()
    if source is None or member.size > LARGEST:
        raise UserError(f"{archive}: {member.name}: cannot be unpacked ({member.size:,} bytes)")
    left = LARGEST
    with source, target.open("wb") as out:
        while block := source.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise UserError(f"{archive}: {member.name}: is larger than {LARGEST:,} bytes")
            out.write(block)
