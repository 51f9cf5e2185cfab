"""Who gets which part of a storage: a policy's tree of groups, users and jobs (ThemisIO paper, figure 11)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Member:
    """A job as a leaf of the tree. `whose`: what it is on each level, as ``{"user": "ana", "size": "4"}``."""

    name: str
    whose: Mapping[str, str]
    entitled: float
    measured: float = math.nan


@dataclass(frozen=True)
class Part:
    """A group, user, class of jobs or job, and what lies below it.

    `entitled` and `measured` are fractions of the whole; measured is NaN where nothing was measured.
    """

    level: str
    name: str
    entitled: float
    measured: float
    below: tuple[Part, ...] = ()

    def walk(self, depth: int = 0) -> Iterable[tuple[int, Part]]:
        """Yield this part and all below it with their depths, outermost first."""
        yield depth, self
        for part in self.below:
            yield from part.walk(depth + 1)


def parts_of(levels: Sequence[str], members: Sequence[Member]) -> tuple[Part, ...]:
    """Return the parts of the outermost level; each is entitled to, and got, what its jobs are and did."""
    level, *inner = levels
    if not inner:
        return tuple(Part(level, m.name, m.entitled, m.measured) for m in members)
    together: dict[str, list[Member]] = {}
    for member in members:
        together.setdefault(member.whose[level], []).append(member)
    return tuple(
        Part(level, name, sum(m.entitled for m in found), sum(m.measured for m in found),
             parts_of(inner, found))
        for name, found in together.items()
    )  # fmt: skip
