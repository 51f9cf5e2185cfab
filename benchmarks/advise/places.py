"""The folder of a program on a storage: filled with its inputs, brought back to them, evicted."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from tiercel.pagecache import memory_backed
from tiercel.placement.applications.measure import evict

#: Inputs up to so many bytes get a new folder for each run.
SMALL = 64 << 20
#: Size, times of modification and of change: an untouched input from a changed file. A file that was staged
#: has its time of modification back.
Stamp = tuple[int, int, int]


class Place:
    """One folder at a fixed path; `inputs` is the folder that it is to be equal to before each run."""

    def __init__(self, folder: Path, inputs: Path) -> None:
        self.folder = folder
        self._inputs = inputs
        self._stamps: dict[str, Stamp] = {}
        self._aside = folder.with_name(f"{folder.name}.old")
        self._number = 0

    def restore(self) -> None:
        """Make the folder equal to the inputs, at another place of the medium where they are small; of large
        ones, what is unchanged since the last time stays as it is.

        What the program made is set aside and removed in the end: for minutes ext4 makes files more slowly
        where many were removed.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        # +T: folders in it lie apart from those where others remove files (ext4 only).
        subprocess.run(["chattr", "+T", str(self.folder.parent)], capture_output=True, check=False)
        self._aside.mkdir(exist_ok=True)
        wanted = contents(self._inputs)
        if self.folder.exists() and sum(path.lstat().st_size for path in wanted.values()) <= SMALL:
            self._number += 1
            self.folder.rename(self._aside / str(self._number))
            self._stamps = {}
        if not self.folder.exists():
            new = self.folder.with_name(f"{self.folder.name}-{token_hex(4)}")  # ext4 goes by the name, too
            new.mkdir()
            new.rename(self.folder)
        for name, path in sorted(contents(self.folder).items()):  # folders before what is in them
            if not os.path.lexists(path):
                continue
            if name not in wanted or path.is_dir() != wanted[name].is_dir() or path.is_symlink():
                self._number += 1
                path.rename(self._aside / str(self._number))
        stamps = {}
        blind = memory_backed(str(self.folder))  # tmpfs keeps its times when a mapping is written
        for name, source in sorted(wanted.items()):
            target = self.folder / name
            if source.is_dir():
                target.mkdir(exist_ok=True)
                shutil.copymode(
                    source, target
                )  # a database's folder is private, or its server does not start
                continue
            if blind or not target.exists() or stamp(target) != self._stamps.get(name):
                shutil.copy2(source, target)
            stamps[name] = stamp(target)
        self._stamps = stamps

    def differences(self) -> str:
        """Return how the folder differs from the inputs, by names, sizes and times; empty where it does
        not."""
        now, wanted = contents(self.folder), contents(self._inputs)
        if now.keys() != wanted.keys():
            return f"names differ: {', '.join(sorted(now.keys() ^ wanted.keys())[:3])}"
        changed = [n for n, path in now.items() if n in self._stamps and stamp(path) != self._stamps[n]]
        return f"changed: {', '.join(changed[:3])}" if changed else ""

    def settle(self, warm: bool) -> None:
        """Write everything here to the medium, then evict it, or read it when `warm`.

        It is this machine's page cache that is emptied; names, attributes and a server's memory are not.
        """
        evict(self.folder)
        subprocess.run(["sync", "-f", str(self.folder)], check=True)
        if warm:
            for path in self.folder.rglob("*"):
                if path.is_file():
                    path.read_bytes()

    def remove(self) -> None:
        """Remove the folder, and the one that holds those of all programs when it is empty."""
        _remove(self.folder)
        _remove(self._aside)
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
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=not folder.exists())
