"""A recipe for ``tiercel-replay`` (native/replay): who does what to which file in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class Operation:
    """One call. `time`: ns since the program began; `waits`: (stream, operations) to be over before it."""

    kind: str
    file: int
    offset: int
    size: int
    time: int
    waits: list[tuple[int, int]]


@dataclass
class Recipe:
    """What a recipe holds. `totals`: what the replay must show; `left_out`: calls that are not replayed."""

    files: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    largest: list[int] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    streams: list[list[Operation]] = field(default_factory=list)
    begins: list[list[tuple[int, int]]] = field(default_factory=list)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def text(self, roots: Mapping[str, int] | None = None) -> str:
        """Return the recipe's text; `roots` numbers the root of each file (default: all 0)."""
        waits = sum(len(o.waits) for s in self.streams for o in s) + sum(map(len, self.begins))
        lines = [
            "tiercel-replay 1",
            f"files {len(self.files)} streams {len(self.streams)} operations {sum(map(len, self.streams))} "
            f"waits {waits}",
        ]
        for name, size, flag in zip(self.files, self.sizes, self.flags, strict=True):
            lines.append(f"f {(roots or {}).get(name, 0)} {size} {flag} {_encoded(name)}")
        for operations, begin in zip(self.streams, self.begins, strict=True):
            lines.append(f"s {len(operations)} {len(begin)}")
            lines += [f"w {stream} {count}" for stream, count in begin]
            for o in operations:
                lines.append(f"o {o.kind} {o.file} {o.offset} {o.size} {o.time} {len(o.waits)}")
                lines += [f"w {stream} {count}" for stream, count in o.waits]
        return "\n".join([*lines, ""])

    @property
    def footprint(self) -> int:
        """Bytes that the files need at most."""
        return sum(self.largest)


def _encoded(name: str) -> str:
    """Return a path below a root: no leading slash, no `..`, every other byte than plain ones as %XX."""
    parts = [p for p in name.encode("utf-8", "surrogateescape").split(b"/") if p not in (b"", b".")]
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+,=@"
    safe = [b"%2E%2E-" if p == b".." else p for p in parts] or [b"root"]
    return "/".join(
        "".join(chr(b) if b in plain or (p == b"%2E%2E-") else f"%{b:02X}" for b in p).replace(
            "%2E%2E-", "up-"
        )
        for p in safe
    )
