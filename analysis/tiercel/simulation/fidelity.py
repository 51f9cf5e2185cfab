"""How far predictions of the model were off where they were held against measurements.

``python -m benchmarks.simulation --write`` measures, and writes the file. It tells the error of the model
where the figures of the topology are right; how wrong those of a site file are nobody can tell from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from tiercel.ceilings.ceiling import Figure
from tiercel.pages.words import count, listed, percent

#: Of numbers that are all bounds.
NO_ERROR = "Each is the most that is possible by the figures that are known, so there is no error to tell."
FILE = Path(__file__).with_name("fidelity.json")


@dataclass(frozen=True)
class Fidelity:
    """The errors of predictions that one kind of figure bounds, on one storage; 0.1 is 10 % too high."""

    figure: Figure
    storage: str
    date: str
    load: float
    """Processes that wanted a processor, for each there was: what others took no prediction knows of."""
    predictions: int
    median: float
    """Of their sizes."""
    lowest: float
    highest: float

    @property
    def text(self) -> str:
        ends = " to ".join(f"{100 * end:+.0f}" for end in (self.lowest, self.highest))
        return f"{percent(self.median)} in the median ({ends} %) in {self.predictions} for {self.storage}"


def fidelities(path: Path = FILE) -> list[Fidelity]:
    """Return what was measured."""
    return [Fidelity(**row) for row in json.loads(path.read_text(encoding="utf-8"))]


def keep(new: Iterable[Fidelity], path: Path = FILE) -> None:
    """Write errors in place of those of the same storages."""
    found = list(new)
    told = {each.storage for each in found}
    old = [each for each in fidelities(path) if each.storage not in told] if path.exists() else []
    path.write_text(json.dumps([asdict(each) for each in (*old, *found)], indent=1) + "\n", encoding="utf-8")


def errors_of(observations: pd.DataFrame) -> list[str]:
    """Return how far predictions like these numbers were off, a sentence for each kind of figure that bounds
    some of them. Of a bound there is no error to tell."""
    simulated = observations[observations["origin"] == "simulated"]
    columns = simulated.reindex(columns=["bound_figure", "figures_missing"])
    numbers = columns[columns["figures_missing"].isna()]["bound_figure"].value_counts(sort=False)
    known = fidelities()
    found = []
    for figure, many in numbers.items():
        like = [each.text for each in known if each.figure == figure]
        said = f"off by {listed(like)}" if like else "held against no measurement"
        found.append(f"{count(many, 'number')}, bound by {figure}: predictions like these were {said}.")
    return found
