"""A study's raw results in a folder of their own, from which an artifact's tables and figures are made.

Files are linked where that is possible, since traces are large; nothing here writes into a file, and cleaning
(results.cleaning) replaces files by others. The raw folder itself is never edited.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from tiercel.artifact.layout import SOURCES
from tiercel.errors import UserError
from tiercel.results.raw import RECORD, RawRun, RawStore

#: Seconds since 1970, or of a run: the year 2100.
_LATEST = 1 << 32


def runs_of(results: Path, study: str) -> list[RawRun]:
    """Return the finished runs of a study, failed ones included. UserError for none, and for damaged ones."""
    runs = [raw for raw in RawStore(results) if raw.run.get("study") == study]
    if not runs:
        raise UserError(f"{results}: holds no run of study {study}: run `tiercel evaluate --study {study}`")
    for raw in runs:
        times = (raw.record.get("started"), raw.record.get("duration"))
        if raw.run.get("run") != raw.folder.name or not all(
            isinstance(time, int | float) and 0 <= time < _LATEST for time in times
        ):
            raise UserError(
                f"{raw.folder}: not a complete result: run.json and record.json do not match: move "
                "the folder away to run it again"
            )
    return runs


def stage(results: Path, runs: Iterable[RawRun], target: Path) -> None:
    """Put what the tables and figures of `runs` are made from into the new folder `target`.

    A record keeps the time at which its run ended as its own: copies and archives change those of files, and
    tables hold them. UserError for links and devices, which would be something else elsewhere.
    """
    for raw in runs:
        folder = target / "raw" / raw.folder.name
        for path in _files(raw.folder):
            copy = folder / path.relative_to(raw.folder)
            _put(path, copy, link=path.name != RECORD)
        ended = int(raw.record["started"] + raw.record["duration"])
        os.utime(folder / RECORD, (ended, ended))
    for name in SOURCES:
        if name != "raw":
            for path in _files(results / name):
                _put(path, target / path.relative_to(results), link=True)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            yield path
        elif not stat.S_ISDIR(mode):
            raise UserError(f"{path}: neither a file nor a folder: an artifact cannot hold it")


def _put(source: Path, target: Path, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        try:
            os.link(source, target)
            return
        except OSError:  # another file system, or one without links, or somebody else's file
            pass
    shutil.copyfile(source, target)
