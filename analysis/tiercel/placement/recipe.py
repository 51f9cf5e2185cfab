"""A recipe for ``tiercel-replay`` (native/replay/src/recipe.h): who does what to which file, in order."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

#: How a file is opened (recipe.h, enum how).
READ_ONLY, TRUNCATES, SYNCED, DIRECT, NO_CREATE = 1, 2, 4, 8, 16
#: The size of a stat, of a change of attributes or length that was asked of an open file, not by its name.
HELD = 1


@dataclass
class Operation:
    """One call. `gap`: ns since the stream's last one, or since what it waited for, if that was later;
    `waits`: (stream, operations) to be over before it."""

    kind: str
    file: int
    offset: int
    size: int
    gap: int
    waits: list[tuple[int, int]]


@dataclass
class FileRecord:
    """One file. `size`: bytes that were there before the program; `largest`: bytes that it holds at most."""

    name: str
    size: int = 0
    largest: int = 0
    existed: bool = False
    folder: bool = False
    buffered: bool = False
    made_folder: bool = False
    """The program makes the folder that it lies in."""
    remains: bool = False
    """It is there when the program ends, other than it was: a result."""

    @property
    def flags(self) -> str:
        letters = {"b": self.buffered, "d": self.folder, "e": self.existed, "n": self.made_folder}
        return "".join(letter for letter, on in letters.items() if on) or "-"


@dataclass
class Recipe:
    """What a recipe holds. `totals`: what the replay must show; `left_out`: calls that are not replayed."""

    records: list[FileRecord] = field(default_factory=list)
    streams: list[list[Operation]] = field(default_factory=list)
    begins: list[list[tuple[int, int]]] = field(default_factory=list)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0
    """Seconds of the trace at which the first replayed call begins and the last one ends."""
    bases: Sequence[str] = ()
    """Folders that the names of files below them are replayed without: a name is as deep as the program's."""

    @property
    def files(self) -> list[str]:
        return [record.name for record in self.records]

    @property
    def sizes(self) -> list[int]:
        return [record.size for record in self.records]

    def place(self, name: str) -> str:
        """Return where a file lies below its root, as a path without a slash at its begin."""
        for number, base in enumerate(self.bases):
            if name.startswith(base + "/"):
                return below_root(
                    name[len(base) :] if len(self.bases) == 1 else f"{number}{name[len(base) :]}"
                )
        return below_root(name)

    def text(self, roots: Mapping[str, int] | None = None) -> str:
        """Return the recipe's text; `roots` numbers the root of each file (default: all 0)."""
        waits = sum(len(o.waits) for s in self.streams for o in s) + sum(map(len, self.begins))
        lines = [
            "tiercel-replay 2",
            f"files {len(self.records)} streams {len(self.streams)} "
            f"operations {sum(map(len, self.streams))} waits {waits}",
        ]
        for r in self.records:
            lines.append(f"f {(roots or {}).get(r.name, 0)} {r.size} {r.flags} {encoded(self.place(r.name))}")
        for operations, begin in zip(self.streams, self.begins, strict=True):
            lines.append(f"s {len(operations)} {len(begin)}")
            lines += [f"w {stream} {count}" for stream, count in begin]
            for o in operations:
                lines.append(f"o {o.kind} {o.file} {o.offset} {o.size} {o.gap} {len(o.waits)}")
                lines += [f"w {stream} {count}" for stream, count in o.waits]
        return "\n".join([*lines, ""])

    @property
    def footprint(self) -> int:
        """Bytes that the files need at most."""
        return sum(record.largest for record in self.records)


def below_root(name: str) -> str:
    """Return where a file lies below its root: no leading slash, no `..`."""
    parts = [p for p in name.split("/") if p not in ("", ".")]
    return "/".join("up-" if p == ".." else p for p in parts) or "root"


def common_folder(names: Collection[str]) -> str:
    """Return the folder that absolute `names` lie in, but for those that are folders above it; empty where
    that is the root. A name is never the folder itself."""
    if not names or not all(name.startswith("/") for name in names):
        return ""
    above = {str(parent) for name in names for parent in PurePosixPath(name).parents}
    inner = [name for name in names if name not in above]
    base = os.path.commonpath([name.rpartition("/")[0] or "/" for name in inner])
    if base in names:
        base = base.rpartition("/")[0]
    return base.rstrip("/")


def encoded(place: str) -> str:
    """Return a path below a root as a recipe has it: every other byte than plain ones as %XX."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+,=@/"
    data = place.encode("utf-8", "surrogateescape")
    return "".join(chr(b) if b in plain else f"%{b:02X}" for b in data)
