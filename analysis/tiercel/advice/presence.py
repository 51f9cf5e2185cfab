"""What of a program's likely inputs lies in the page cache just before it runs: files and folders that its
command line names, and the files of the folder that it is started in."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tiercel.pagecache import residency
from tiercel.placement.recipe import FileRecord

#: A look at more files than this, or for longer, would itself delay the program.
_MOST, _SECONDS = 5000, 1.0
#: Bytes of the inputs that must have been looked at before they speak for the rest.
_ENOUGH = 0.5


@dataclass(frozen=True)
class Presence:
    """Share of each file's pages that were in memory; of files that could be looked at."""

    resident: Mapping[str, float]

    @classmethod
    def take(cls, argv: Sequence[str]) -> Presence:
        """Look now. Files that cannot be read, or on file systems that do not tell, are not in it."""
        found: dict[str, float] = {}
        deadline = time.monotonic() + _SECONDS
        for path in _candidates(argv):
            if len(found) >= _MOST or time.monotonic() > deadline:
                break
            try:
                seen = residency([path])
            except OSError:
                continue
            if seen.pages and seen.fraction is not None:
                found[path] = seen.fraction
        return cls(found)

    def cached(self, inputs: Sequence[FileRecord]) -> bool | None:
        """Return whether most of what the program read of `inputs` was in memory; None: not known."""
        whole = sum(r.size for r in inputs)
        known = [r for r in inputs if r.name in self.resident]
        looked = sum(r.size for r in known)
        if not whole or looked < _ENOUGH * whole:
            return None
        return sum(r.size * self.resident[r.name] for r in known) > looked / 2


def _candidates(argv: Sequence[str]) -> Iterator[str]:
    """Yield the real paths of files that a command line may mean, also behind ``=``."""
    words = [w for word in argv[1:] for w in (word, word.partition("=")[2]) if w]
    for word in dict.fromkeys([*words, "."]):
        path = Path(word)
        try:
            if path.is_file():
                yield os.path.realpath(path)
            elif path.is_dir():
                yield from _files_of(path.resolve(), deep=word != ".")
        except OSError:
            continue


def _files_of(folder: Path, deep: bool) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)  # noqa: PTH118 -- as many as a dataset has
            if os.path.isfile(path) and not os.path.islink(path):  # noqa: PTH113, PTH114
                yield path
        if not deep:
            folders.clear()
