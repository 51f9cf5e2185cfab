"""What the hashes in a DFTracer trace stand for.

Each process says so by itself, in metadata lines that come before the first use. Hashes are short: two
processes may use one for two names, and a process may bind one anew. So a hash means what the same process
said of it last, by the order of the lines. A process that says nothing of it means what its parent said, else
what the file says in which it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiercel.traces.readers.scan import Ints, Notes

_Key = tuple[int, str]
"""Process and hash."""
_NONE = Notes([], [], [], [])


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
        """What each process said last before this block, but for what waits."""
        self._waiting: list[Notes | None] = []
        """What they said in the blocks before; None where a file began. Few traces need more than `words`."""
        self._notes = _NONE
        """What they say in this block, and..."""
        self._now: dict[str, str] = {}
        """...what its file says last in it."""
        self._changes: dict[_Key, list[tuple[int, str]]] | None = None
        self._of_file: dict[str, str] = {}

    def new_file(self) -> None:
        """Begin another file: what earlier ones bound is not inherited by processes in it."""
        self.learn(None)
        self._waiting.append(None)

    def learn(self, notes: Notes | None) -> None:
        """Take the metadata lines of the next block."""
        if self._notes.keys:
            self._waiting.append(self._notes)
        self._notes, self._changes = notes or _NONE, None
        keys, values, words = self._notes.keys, self._notes.values, self.words
        self._now = dict(zip(keys, values, strict=True))
        if len(self._now) == len(keys) and words.keys().isdisjoint(self._now):
            words.update(self._now)
            return
        both = zip(keys, values, strict=True)
        self.torn.update(key for key, value in both if words.setdefault(key, value) != value)

    def by_row(self, hashed: str, rows: Ints, processes: Ints) -> list[str]:
        """Return what a torn hash stands for in some rows of the block."""
        return [
            self._at((process, hashed), row)
            for row, process in zip(rows.tolist(), processes.tolist(), strict=True)
        ]

    def _catch_up(self) -> None:
        """Take what waits into `_before` and `_of_file`."""
        for notes in self._waiting:
            if notes is None:
                self._of_file = {}
                continue
            for key, value, process in zip(notes.keys, notes.values, notes.processes, strict=True):
                self._before.setdefault(process, {})[key] = self._of_file[key] = value
        self._waiting.clear()

    def _at(self, key: _Key, row: int) -> str:
        self._catch_up()
        if changes := self._changed().get(key):
            said = [word for at, word in changes if at <= row]
            # Before the first line of its own there is none but what it says next.
            return said[-1] if said else self._before.get(key[0], {}).get(key[1]) or changes[0][1]
        known = self._said_by_line_of(key)
        if known is None:
            self.unsure += 1
            known = self._now.get(key[1], self._of_file.get(key[1])) or self.words[key[1]]
        return known

    def _changed(self) -> dict[_Key, list[tuple[int, str]]]:
        """Return what each process says in this block, from which row on."""
        if self._changes is None:
            self._changes = {}
            for key, value, process, row in zip(*self._notes, strict=True):
                self._changes.setdefault((process, key), []).append((row, value))
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
