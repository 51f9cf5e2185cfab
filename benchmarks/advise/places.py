"""The folder of a program on a storage: filled with its inputs, brought back to them, evicted, staged."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tiercel import pagecache
from tiercel.placement.applications.measure import evict

#: Size and time of modification: what tells an untouched input from a changed file.
Stamp = tuple[int, int]


class Place:
    """One folder at a fixed path; `inputs` is the folder that it is to be equal to before each run."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder = folder
        self._inputs = inputs
        self._stamps: dict[str, Stamp] = {}

    def restore(self) -> None:
        """Make the folder equal to the inputs: what is unchanged since the last time stays as it is."""
        if self.folder.is_symlink():  # a plan moved the whole folder, and failed to bring it back
            self.folder.unlink()
        for left in self.folder.parent.glob(f"{self.folder.name}.tiercel-*"):
            _remove(left)
        self.folder.mkdir(parents=True, exist_ok=True)
        wanted = contents(self._inputs)
        for name, path in sorted(contents(self.folder).items(), reverse=True):  # files before their folder
            if name not in wanted or path.is_dir() != wanted[name].is_dir() or path.is_symlink():
                _remove(path)
        stamps = {}
        for name, source in sorted(wanted.items()):
            target = self.folder / name
            if source.is_dir():
                target.mkdir(exist_ok=True)
                continue
            if not target.exists() or stamp(target) != self._stamps.get(name):
                shutil.copy2(source, target)
            stamps[name] = stamp(target)
        self._stamps = stamps

    def settle(self, warm: bool) -> None:
        """Write everything here to the medium, links' targets too, then evict it, or read it when `warm`.

        It is this machine's page cache that is emptied; names, attributes and a server's memory are not.
        """
        places = {self.folder, *(Path(os.path.realpath(p)) for p in self.links())}
        for place in places:
            if place.is_dir():
                evict(place)
            elif place.exists():
                pagecache.evict([place])
        subprocess.run(["sync", "-f", str(self.folder)], check=True)
        if warm:
            for place in places:
                for path in [place] if place.is_file() else place.rglob("*"):
                    if path.is_file():
                        path.read_bytes()

    def links(self) -> list[Path]:
        """Return the links here: what a plan has moved."""
        found = [path for path in contents(self.folder).values() if path.is_symlink()]
        return [self.folder, *found] if self.folder.is_symlink() else found

    def remove(self) -> None:
        """Remove the folder, and the one that holds those of all programs when it is empty."""
        _remove(self.folder)
        with suppress(OSError):
            self.folder.parent.rmdir()


def contents(folder: Path) -> dict[str, Path]:
    """Return everything below `folder` by its name there; links are not followed."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root) / name
            found[str(path.relative_to(folder))] = path
    return found


def stamp(path: Path) -> Stamp:
    seen = path.lstat()
    return seen.st_size, seen.st_mtime_ns


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
