"""Ways to place a program's units: all as found, all on one storage, each where its own I/O was fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiercel.advice.units import Unit

HOME, AGAIN, MIXED = "home", "home again", "mixed"


@dataclass(frozen=True)
class Way:
    """A placement of units. `systems`: the storage of each unit (by name)."""

    name: str
    systems: Mapping[str, str]

    def moved(self, units: Sequence[Unit]) -> list[Unit]:
        """Return the units that lie elsewhere than at home."""
        return [u for u in units if self.systems[u.name] != u.storage]


def home(units: Sequence[Unit], name: str = HOME) -> Way:
    return Way(name, {u.name: u.storage or "" for u in units})


def all_on(storage: str, units: Sequence[Unit]) -> Way:
    """Return the way with everything that can move on one storage."""
    return Way(f"all on {storage}", mixed(units, {u.name: storage for u in units}).systems)


def mixed(units: Sequence[Unit], wished: Mapping[str, str]) -> Way:
    """Return the way that is nearest to what each unit wishes: what one takes along goes where it goes.

    Where two wish otherwise, the one named first in `units` decides.
    """
    by_name = {u.name: u for u in units}
    systems = {u.name: u.storage or "" for u in units}
    settled: set[str] = set()
    for unit in units:
        if unit.name in settled:
            continue
        group = _company(unit, by_name)
        target = wished.get(unit.name, unit.storage or "")
        elsewhere = any(systems[n] != target for n in group & settled)
        if elsewhere or any(by_name[n].stays and by_name[n].storage != target for n in group):
            target = unit.storage or ""
        for name in group - settled:
            systems[name] = target if target != unit.storage else by_name[name].storage or ""
            if target != unit.storage:
                settled.add(name)
        settled.add(unit.name)
    return Way(MIXED, systems)


def _company(unit: Unit, by_name: Mapping[str, Unit]) -> set[str]:
    """Return the names of all that go with a unit, itself included."""
    found, waiting = {unit.name}, [unit.name]
    while waiting:
        for name in by_name[waiting.pop()].takes:
            if name in by_name and name not in found:
                found.add(name)
                waiting.append(name)
    return found
