"""What else differs between the sides, and may be the cause of what the numbers show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tiercel.compare.side import Side
from tiercel.compare.stacks import Stacks
from tiercel.units import format_size

#: Most values of one circumstance that are written out.
_SHOWN = 3


@dataclass(frozen=True)
class Circumstance:
    """One thing that may matter: what each side says of it, in the order of the sides."""

    name: str
    values: tuple[str, ...]
    """In words; empty where a side does not say."""
    differs: bool
    together: str
    """All values in one, where they do not differ."""

    @property
    def known(self) -> bool:
        """Every side says something of it; otherwise nobody knows whether it differs."""
        return all(self.values)


Texts = Callable[[Side], frozenset[str]]


def circumstances(sides: Sequence[Side], stacks: Sequence[Stacks]) -> list[Circumstance]:
    """Return all circumstances; `stacks` are those of each side but the first against the first."""
    found = [
        _words(name, [_texts(side.runs, column) for side in sides])
        for name, column in (("site", "site"), ("hosts", "host"), ("kernel", "kernel"))
    ]
    found += [
        _number("cores", sides, "cores", lambda v: f"{v:.0f}", relative=0.001),
        _number("memory of a node", sides, "memory_bytes", format_size, relative=0.02),
        _words("launcher", [_texts(side.runs, "launcher") for side in sides]),
        _words("sessions of processes", [_texts(side.observations, "session_layout") for side in sides]),
        _words("tiercel", [frozenset({side.version} - {""}) for side in sides]),
        _words("study", [_texts(side.runs, "study") for side in sides]),
        _repetitions(sides),
    ]
    engines = sorted({e for side in sides for e in side.names("engine")})
    for engine in engines:
        versions = [_texts(_where(s.observations, "engine", engine), "engine_version") for s in sides]
        there = [engine in side.names("engine") for side in sides]
        if sum(there) > 1:
            found.append(_where_there(_words(f"{engine}", versions), there))
    for storage in sides[0].names("storage"):
        found += _of_storage(storage, sides, stacks)
    found += [
        _number(
            "load before a run",
            sides,
            "load1_before",
            lambda v: f"{v:.1f}" if v < 10 else f"{v:.0f}",
            absolute=0.5,
        ),
        _number("cores used by others", sides, "others_cpu", _percent, absolute=0.05),
        _number("waiting for a core (PSI)", sides, "psi_cpu_during", _percent, absolute=0.1),
        _number("waiting for I/O before a run (PSI)", sides, "psi_io_before", _percent, absolute=0.1),
    ]
    return [c for c in found if any(c.values)]


def _of_storage(storage: str, sides: Sequence[Side], stacks: Sequence[Stacks]) -> list[Circumstance]:
    names = [storage, *(each.storages.get(storage, "") for each in stacks)]
    if not any(names[1:]):
        return []
    rows = [_where(side.runs, "storage", name) for side, name in zip(sides, names, strict=True)]
    partners = _words(f"{storage}: its partner", [frozenset({name} - {""}) for name in names])
    found = [partners] if partners.differs else []
    found += [
        _words(f"{storage}: type", [_texts(part, "storage_type") for part in rows]),
        _words(f"{storage}: mount options", [_texts(part, "mount_options") for part in rows]),
    ]
    free = [_median(part, "free_bytes") for part in rows]
    found.append(_numbers(f"{storage}: free space", free, format_size, relative=0.1))
    return [_where_there(each, [bool(name) for name in names]) for each in found if any(each.values)]


def _where_there(found: Circumstance, there: Sequence[bool]) -> Circumstance:
    """Say of the sides that do not have a thing that it is not there, rather than unknown."""
    values = zip(found.values, there, strict=True)
    return replace(found, values=tuple(value if has else "not there" for value, has in values))


def _repetitions(sides: Sequence[Side]) -> Circumstance:
    """Say how often configurations ran. An adaptive study stops where it can: only twice as often differs."""
    said, medians, every = [], [], []
    for side in sides:
        rows = side.observations[side.observations["twin"].fillna("a") == "a"]
        often = rows.groupby("configuration")["run"].nunique()
        if often.empty:  # only runs of the replicate gave numbers
            often = pd.Series([0])
        least, most = int(often.min()), int(often.max())
        every += [least, most]
        said.append(_range(least, most))
        medians.append(float(often.median()))
    differs = max(medians) >= 2 * min(medians)
    return Circumstance("repetitions", tuple(said), differs, _range(min(every), max(every)))


def _range(least: object, most: object) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


def _where(table: pd.DataFrame, column: str, value: str) -> pd.DataFrame:
    return table[(table[column] == value).fillna(False).astype(bool)]


def _texts(table: pd.DataFrame, column: str) -> frozenset[str]:
    return frozenset(str(v) for v in table[column].dropna().unique()) - {""}


def _words(name: str, found: Sequence[frozenset[str]]) -> Circumstance:
    said = {texts for texts in found if texts}
    values = tuple(_listed(sorted(texts)) for texts in found)
    return Circumstance(name, values, len(said) > 1, next((v for v in values if v), ""))


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _number(
    name: str,
    sides: Sequence[Side],
    column: str,
    show: Callable[[float], str],
    relative: float = 0.0,
    absolute: float = 0.0,
) -> Circumstance:
    return _numbers(name, [_median(side.runs, column) for side in sides], show, relative, absolute)


def _numbers(
    name: str,
    medians: Sequence[float | None],
    show: Callable[[float], str],
    relative: float = 0.0,
    absolute: float = 0.0,
) -> Circumstance:
    """Medians differ when they are further apart than a share of the larger, or than a number."""
    known = [m for m in medians if m is not None]
    apart = max(known) - min(known) if known else 0.0
    most = max((abs(m) for m in known), default=0.0)
    values = tuple("" if m is None else show(m) for m in medians)
    together = _range(show(min(known)), show(max(known))) if known else ""
    return Circumstance(name, values, apart > max(relative * most, absolute), together)


def _median(table: pd.DataFrame, column: str) -> float | None:
    values: Any = pd.to_numeric(table[column], errors="coerce").dropna()
    return float(values.median()) if len(values) else None


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
