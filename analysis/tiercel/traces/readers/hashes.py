"""What the hashes in a DFTracer trace stand for.

Each process says so by itself, in metadata lines that come before the first use. Hashes are short: two
processes may use one for two names, and a process may bind one anew. So a hash means what the same process
said of it last, by the order of the lines. A process that says nothing of it means what its parent said, else
what the file says in which it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from tiercel.traces.readers.scan import Ints, Note

_Key = tuple[int, str]
"""Process and hash."""
_KEY_AND_VALUE = itemgetter(1, 2)  # of a Note


class Hashes:
    """The hashes of one kind (files, hosts, texts) over a whole trace; filled block by block.

    `parents`: of each process that is known to have been forked, who did it.
    """

    def __init__(self, parents: Mapping[int, int]) -> None:
        self._parents = parents
        self.words: dict[str, str] = {}
        """What each stands for first."""
        self.unsure = 0
        """Events with a hash of several names, of a process that has not said which."""
        self.torn: set[str] = set()
        """Those that stand for several names."""
        self._before: dict[int, dict[str, str]] = {}
        """What each process said last before this block."""
        self._notes: Sequence[Note] = ()
        """What they say in this block."""
        self._changes: dict[_Key, list[tuple[int, str]]] | None = None
        self._of_file: dict[str, str] = {}

    def new_file(self) -> None:
        """Begin another file: what earlier ones bound is not inherited by processes in it."""
        self._of_file = {}

    def learn(self, notes: Sequence[Note]) -> None:
        """Take the metadata lines of the next block."""
        for process, said in groupby(self._notes, key=itemgetter(3)):
            self._before.setdefault(process, {}).update(map(_KEY_AND_VALUE, said))
        self._notes, self._changes = notes, None
        self._of_file.update(map(_KEY_AND_VALUE, notes))
        words = self.words
        self.torn.update(key for _, key, value, _, _ in notes if words.setdefault(key, value) != value)

    def by_row(self, hashed: str, rows: Ints, processes: Ints) -> list[str]:
        """Return what a torn hash stands for in some rows of the block."""
        return [
            self._at((process, hashed), row)
            for row, process in zip(rows.tolist(), processes.tolist(), strict=True)
        ]

    def _at(self, key: _Key, row: int) -> str:
        if changes := self._changed().get(key):
            said = [word for at, word in changes if at <= row]
            # Before the first line of its own there is none but what it says next.
            return said[-1] if said else self._before.get(key[0], {}).get(key[1]) or changes[0][1]
        known = self._said_by_line_of(key)
        if known is None:
            self.unsure += 1
            known = self._of_file.get(key[1]) or self.words[key[1]]
        return known

    def _changed(self) -> dict[_Key, list[tuple[int, str]]]:
        """Return what each process says in this block, from which row on."""
        if self._changes is None:
            self._changes = {}
            for note in self._notes:
                self._changes.setdefault((note.process, note.key), []).append((note.row, note.value))
        return self._changes

    def _said_by_line_of(self, key: _Key) -> str | None:
        """Return what a process, else its parent, else the parent's parent... said last."""
        process: int | None = key[0]
        seen: set[int] = set()
        while process is not None and process not in seen:
            if changes := self._changed().get((process, key[1])):
                return changes[-1][1]
            if (known := self._before.get(process, {}).get(key[1])) is not None:
                return known
            seen.add(process)
            process = self._parents.get(process)
        return None


def replace_torn(
    codes: Any, torn: dict[int, tuple[Ints, list[str]]], words: list[str]
) -> tuple[Any, list[str]]:
    """Return codes and words where the rows of each torn code have words of their own."""
    codes = codes.copy()
    places: dict[str, int] = {}
    for rows, names in torn.values():
        codes[rows] = np.array([len(words) + places.setdefault(n, len(places)) for n in names], codes.dtype)
    return codes, [*words, *places]
