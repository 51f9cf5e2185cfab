"""The raw folder of a site: one folder for each run, written once, never edited.

::

    results/<site>/raw/<run>/
        run.json        what determines the run (written first)
        context.json    the conditions before, during and after it
        *.stdout *.stderr *.json trace/     what the engine left
        record.json     status, reason, steps, times (written last: without it the run did not finish)
    results/<site>/raw/interrupted/<run>.<n>/   attempts that were cut off, kept

Everything here is free of user names, home folders, accounts, passwords and tokens: write_json takes them out
of what tiercel records, clean out of what engines, layers and tracers left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.results.cleaning import clean_folder

RECORD = "record.json"
INTERRUPTED = "interrupted"
#: What each record holds: whoever reads one asks for it.
_KEYS = ("status", "reason", "started", "duration", "engine_time", "steps")


@dataclass(frozen=True)
class RawRun:
    """A finished run as it lies on disk."""

    folder: Path
    run: dict[str, Any]
    record: dict[str, Any]
    context: dict[str, Any]

    @property
    def ok(self) -> bool:
        return bool(self.record["status"] == "ok")


class RawStore:
    """The raw folder of one site."""

    def __init__(self, results: Path) -> None:
        self.folder = results / "raw"

    def path(self, run_id: str) -> Path:
        return self.folder / run_id

    def finished(self, run_id: str) -> bool:
        return (self.path(run_id) / RECORD).exists()

    def begin(self, run_id: str, row: dict[str, Any]) -> tuple[Path, int]:
        """Make the folder of a run and return it with the number of this attempt (1 for the first).

        An earlier attempt that was cut off moves to ``interrupted/``.
        """
        folder = self.path(run_id)
        if folder.exists():
            clean(folder)  # it was cut off before
            attic = self.folder / INTERRUPTED
            attic.mkdir(exist_ok=True)
            folder.rename(attic / f"{run_id}.{self._attempts(run_id)}")
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise UserError(f"{folder}: cannot be made: {error.strerror}") from None
        write_json(folder / "run.json", row)
        return folder, self._attempts(run_id) + 1

    def _attempts(self, run_id: str) -> int:
        return len(list((self.folder / INTERRUPTED).glob(f"{run_id}.*")))

    def set_aside(self, run_id: str) -> None:
        """Move a finished run to ``interrupted/``, so that it goes again (``--retry-failed``)."""
        attic = self.folder / INTERRUPTED
        attic.mkdir(exist_ok=True)
        self.path(run_id).rename(attic / f"{run_id}.{self._attempts(run_id)}")

    def read(self, run_id: str) -> RawRun | None:
        """Return a finished run, or None for one that did not finish."""
        folder = self.path(run_id)
        if not self.finished(run_id):
            return None
        for path in folder.iterdir():
            if not (path.is_file() or path.is_dir()):  # who reads a pipe waits for ever
                raise UserError(f"{path}: neither a file nor a folder: remove it")
        run, record = read_json(folder / "run.json"), read_json(folder / RECORD)
        if (name := run.get("run", run_id)) != run_id:
            raise UserError(
                f"{folder}: holds run {name}, and a copy must not count again: move it out of raw/"
            )
        if lacking := [key for key in _KEYS if key not in record]:
            raise UserError(
                f"{folder / RECORD}: not a complete result: no {', '.join(lacking)}; "
                "move the folder away to run it again"
            )
        return RawRun(folder, run, record, self.context(run_id))

    def context(self, run_id: str) -> dict[str, Any]:
        """Return the conditions of a run, empty where none were recorded."""
        path = self.path(run_id) / "context.json"
        return read_json(path) if path.is_file() else {}  # a pipe would be waited for

    def ids(self) -> list[str]:
        """Return the names of the finished runs, sorted."""
        if not os.path.lexists(self.folder):
            return []
        try:
            with os.scandir(self.folder) as entries:
                names = sorted(e.name for e in entries if e.name != INTERRUPTED and e.is_dir())
        except OSError as error:  # no folder, a lost mount: not the same as nothing measured
            raise UserError(f"{self.folder}: cannot be read: {error.strerror}") from None
        return [n for n in names if self.finished(n)]

    def __iter__(self) -> Iterator[RawRun]:
        for run_id in self.ids():
            run = self.read(run_id)
            if run:
                yield run


def clean(folder: Path) -> None:
    """Take what is private out of the files of a run; before they are parsed, so that all see the same."""
    clean_folder(folder, private())


def write_json(path: Path, content: Any) -> None:
    """Write `content`, without what is private, so that a reader, or a crash, sees the whole file or none."""
    content = private().plain(content)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in `path`; UserError that names it when it is not whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        if not isinstance(found, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{path}: not a complete result: {error}; move the folder away to run it again"
        ) from None
    return found
