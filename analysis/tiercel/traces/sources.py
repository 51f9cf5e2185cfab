"""What the user's path stands for: a file, a folder or a tar, and the trace format in it."""

from __future__ import annotations

import contextlib
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tiercel.errors import UserError
from tiercel.traces.readers import readers

#: No trace folder that we know holds more files; a wrong path such as / should not be searched for minutes.
_MANY = 200_000
#: Endings of what tools put beside traces: their indexes.
_BESIDE = {".zindex", ".idx", ".pfi", ".sqlite"}


@dataclass(frozen=True)
class Sources:
    """The files of one trace; `kept` are the user's own files that they come from (the tar itself)."""

    reader: str
    files: tuple[Path, ...]
    kept: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()
    """Files of the same folder that are no trace of this format."""


@contextlib.contextmanager
def find_sources(path: Path, wanted: str | None) -> Iterator[Sources]:
    """Find the trace at `path`; a tar is unpacked for as long as the context lasts.

    `wanted` is a format's name, or None to recognise it. UserError when there is no trace, or several.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise UserError(f"{path}: neither a file nor a folder")
    if not stat.S_ISDIR(mode) and _is_tar(path):
        with tempfile.TemporaryDirectory(prefix="tiercel-trace-") as name:
            _unpack(path, Path(name))
            reader, files, skipped = _search(Path(name), wanted, shown=path)
            yield Sources(reader, files, (path,), skipped)
        return
    reader, files, skipped = _search(path, wanted, shown=path)
    yield Sources(reader, files, _within(files), skipped)


def _is_tar(path: Path) -> bool:
    # Names decide first: looking into a large .pfw.gz for a tar header means inflating some of it.
    if not any(s in {".tar", ".tgz", ".tbz2", ".txz", ".tzst"} for s in path.suffixes[-2:]):
        return False
    try:
        return tarfile.is_tarfile(path)
    except (OSError, EOFError):
        return False


def _unpack(path: Path, folder: Path) -> None:
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                _unpack_one(tar, member, folder)
    except (tarfile.TarError, OSError, EOFError) as error:
        if not any(p.is_file() and p.stat().st_size for p in folder.rglob("*")):
            raise UserError(f"{path}: cannot be unpacked: {error}") from None


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Unpack a folder or a file; of a link, the file in the tar that it leads to.

    The standard library's filter "data" came with Python 3.11.4, and Debian 12 has 3.11.2.
    """
    place = (folder / member.name.lstrip("/")).resolve()
    if not place.is_relative_to(folder.resolve()):
        raise tarfile.TarError(f"{member.name} leads out of the folder")
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    try:
        source = tar.extractfile(member)  # None for devices and the like
    except KeyError:
        raise tarfile.TarError(f"{member.name} is a link to what is not in the tar") from None
    if source:
        place.parent.mkdir(parents=True, exist_ok=True)
        with source, place.open("wb") as file:
            shutil.copyfileobj(source, file)


def _search(path: Path, wanted: str | None, shown: Path) -> tuple[str, tuple[Path, ...], tuple[Path, ...]]:
    """Return the format, the files of the trace, and those that are none."""
    names = [wanted] if wanted else readers.names()
    known = {name: readers.get(name)() for name in names}
    for name, reader in known.items():
        if reader.recognises(path):  # one file, or a format whose trace is a folder
            return name, (path,), ()
    if not path.is_dir():
        if wanted:  # the user says what it is: the reader has the word
            return wanted, (path,), ()
        raise UserError(f"{shown}: not a trace: none of {_titles(names)}")
    found: dict[str, list[Path]] = {name: [] for name in names}
    skipped: list[Path] = []
    for number, file in enumerate(sorted(path.rglob("*"))):
        if number > _MANY:
            raise UserError(f"{shown}: more than {_MANY} files: name the trace's own folder")
        for name, reader in known.items():
            if (file.is_file() or file.is_dir()) and reader.recognises(file):
                found[name].append(file)
                break
        else:
            if file.is_file() and file.suffix not in _BESIDE and not file.name.startswith("."):
                skipped.append(file)
    skipped += _take_twins(found)
    there = {name: files for name, files in found.items() if files}
    if not there:
        raise UserError(f"{shown}: no trace in this folder: none of {_titles(names)}")
    if len(there) > 1:
        listed = ", ".join(f"{len(files)} {name}" for name, files in there.items())
        raise UserError(f"{shown}: several trace formats ({listed}): name one with --format")
    (name, files) = there.popitem()
    # What lies in a trace that is a folder is a part of it.
    left = tuple(file for file in skipped if not any(source in file.parents for source in files))
    return name, tuple(files), left


def _take_twins(found: dict[str, list[Path]]) -> list[Path]:
    """Take packed files out whose plain ones are there too, and return them: a tracer that packs at the end,
    and `gzip -k`, leave the same events twice."""
    taken = []
    for name, files in found.items():
        there = set(files)
        twins = [file for file in files if file.suffix == ".gz" and file.with_suffix("") in there]
        found[name] = sorted(there - set(twins))
        taken += twins
    return taken


def _within(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the plain files behind `files`, whose size and time tell whether a trace changed."""
    return tuple(f for source in files for f in (sorted(source.rglob("*")) if source.is_dir() else [source])
                 if f.is_file())  # fmt: skip


def _titles(names: list[str]) -> str:
    return ", ".join(readers.get(name).title for name in names)
