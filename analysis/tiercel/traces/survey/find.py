"""Which traces a folder holds, each of a job: their files, sizes and times, without reading them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.traces.readers import readers
from tiercel.traces.survey.private import named


@dataclass(frozen=True)
class Found:
    """One trace. `path` is its file, or the folder whose `files` make it; `stamp`: time of change, ns."""

    log: str
    path: str
    reader: str
    files: tuple[str, ...]
    size: int
    stamp: int


def find_traces(folder: Path, key: str = "") -> tuple[list[Found], list[str]]:
    """Return the traces below `folder` in order of their paths, and a sentence for each folder and file that
    cannot be looked at.

    With a `key` nobody without it can try out what a log's name stands for. UserError where `folder` is none,
    cannot be read, or holds no trace.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise UserError(f"{folder}: {'not a folder' if root.exists() else 'no such folder'}")
    lost: list[OSError] = []
    known = {name: readers.get(name)() for name in readers.names()}
    found: list[Found] = []
    for here, names, files in os.walk(root, onerror=lost.append):
        names.sort()
        place = Path(here)
        if here == str(root) and lost:
            break
        groups: dict[tuple[str, str], list[Path]] = {}
        for name, path in _recognised(place, files, known):
            groups.setdefault((name, path.name if known[name].alone else ""), []).append(path)
        for name in list(names):
            reader = next((n for n, r in known.items() if r.recognises(place / name)), None)
            if reader:  # a format whose trace is a folder: what lies in it is no trace of its own
                names.remove(name)
                groups[reader, name] = [place / name]
        for (name, own), paths in sorted(groups.items(), key=lambda item: str(item[1][0])):
            try:
                found.append(_found(root, place / own if own else place, name, paths, key))
            except OSError as error:
                lost.append(error)
    if lost and str(lost[0].filename) == str(root):
        raise UserError(f"{folder}: {lost[0].strerror}")
    if not found:
        titles = ", ".join(readers.get(name).title for name in readers.names())
        raise UserError(f"{folder}: no trace in this folder: none of {titles}")
    return found, [f"{error.filename}: {error.strerror}" for error in lost]


def _recognised(place: Path, files: list[str], known: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    for name in sorted(files):
        if name.startswith("."):
            continue
        path = place / name
        reader = next((n for n, r in known.items() if r.recognises(path)), None)
        if reader:
            yield reader, path


def _found(root: Path, path: Path, reader: str, sources: list[Path], key: str) -> Found:
    within_them = (f for s in sources for f in (s.rglob("*") if s.is_dir() else [s]))
    statuses = [f.stat() for f in within_them if not f.is_dir()]
    within = os.fsencode(f"{path.relative_to(root)} {reader}")
    return Found(
        log=named(within, key), path=str(path), reader=reader,
        files=tuple(str(source) for source in sources), size=sum(s.st_size for s in statuses),
        stamp=max(s.st_mtime_ns for s in statuses),
    )  # fmt: skip
