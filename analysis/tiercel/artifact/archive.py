"""Archives that are the same bytes for the same files, whoever packs them, when and where."""

from __future__ import annotations

import os
import tarfile
import zlib
from pathlib import Path
from typing import IO, Any

from isal import igzip

from tiercel.errors import UserError

#: 1980-01-01, the earliest that every format knows.
_THEN = 315532800
_BROKEN = (tarfile.TarError, EOFError, zlib.error, igzip.BadGzipFile)


def write_archive(files: dict[str, Path], target: Path) -> None:
    """Write ``{name: path}`` as .tar.gz. Links are kept as links; owners and times are left out."""
    with (
        target.open("wb") as out,
        _packed(out) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in sorted(files.items()):
            entry = archive.gettarinfo(path, name)
            if entry.islnk():  # two of the files are one: each is written
                entry.type, entry.size, entry.linkname = tarfile.REGTYPE, path.stat().st_size, ""
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = _THEN
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            if entry.isreg():
                with path.open("rb") as file:
                    archive.addfile(entry, file)
            else:
                archive.addfile(entry)


def _packed(out: IO[bytes]) -> IO[bytes]:
    """Return what compresses into `out`, several times as quick as zlib."""
    opened: Any = igzip.IGzipFile
    packed: IO[bytes] = opened("", "wb", 2, out, 0)
    return packed


def _extract(opened: tarfile.TarFile, target: Path) -> None:
    """Unpack files and folders: nothing outside of `target`, no devices, no odd rights."""
    if hasattr(tarfile, "data_filter"):
        opened.extractall(target, filter="data")
        return
    # Filters came with Python 3.11.4, and Debian 12 has 3.11.2.
    for member in opened:
        inside = (target / member.name).resolve().is_relative_to(target.resolve())
        if not inside or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name} leads out of the folder, or is no file")
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        opened.extract(member, target)


def unpack(archive: Path, target: Path) -> Path:
    """Unpack an artifact's archive below `target` and return the one folder in it. UserError for others."""
    try:
        if archive.exists() and not archive.is_file():  # a pipe or a device may have no end
            raise UserError(f"{archive}: is no file")
        with tarfile.open(archive) as opened:
            _extract(opened, target)
    except _BROKEN as error:
        raise UserError(f"{archive}: damaged, or no archive: {error or type(error).__name__}") from None
    except FileNotFoundError:
        raise UserError(f"{archive}: no such file") from None
    except OSError as error:
        raise UserError(f"{archive}: cannot be unpacked: {error.strerror or error}") from None
    folders = list(target.iterdir())
    if len(folders) != 1 or not folders[0].is_dir():
        raise UserError(f"{archive}: no artifact: it must hold one folder")
    return folders[0]
