"""What a page can hold: rows and figures beyond that are packed into it, and unpacked by its script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tiercel.pages.cells import cell
from tiercel.pages.tables import Cell, Table
from tiercel.pages.tables import table as plain_table
from tiercel.pages.words import seconds
from tiercel.report import words
from tiercel.report.data import Results
from tiercel.report.picture import Picture

#: Rows of a table that are in the page as such.
ROWS = 200
#: Letters of figures that are in the page as such.
DRAWN = 430_000
#: Figures of an experiment's numbers that a report draws: thousands take minutes, and the tables have all.
PANELS = 100
#: Rows of a figure that has one for each workload.
BARS = 100
#: Rows of the tables behind all figures together that are in the page.
_BEHIND = 600


@dataclass(frozen=True)
class Cut:
    """A table whose first rows the page shows; `rest` are packed."""

    table: Table
    rest: Table

    @property
    def total(self) -> int:
        return len(self.table.rows) + len(self.rest.rows)


def cut(table: Table) -> Cut:
    """Return a table as its first rows, and the rest."""
    first, rest = table.rows[:ROWS], table.rows[ROWS:]
    return Cut(replace(table, rows=first), replace(table, rows=rest))


def later(pictures: Sequence[Picture]) -> set[str]:
    """Return the names of the figures that are too many for the page: past the first `DRAWN` letters."""
    found, letters = set(), 0
    for picture in pictures:
        letters += len(picture.svg)
        if letters > DRAWN:
            found.add(picture.name)
    return found


def first_of(rows: Sequence[Any]) -> str:
    """Return the sentence of a caption about rows that a figure leaves out; empty where it has all."""
    return f" The first {BARS} of {words.count(len(rows), 'row')}." if len(rows) > BARS else ""


def behind(results: Results, pictures: Sequence[Picture]) -> dict[str, Table]:
    """Return the tables behind figures, by name; of too many rows together the later ones are left out."""
    found: dict[str, Table] = {}
    rows = 0
    for picture in pictures:
        rows += len(picture.data)
        if picture.data and rows <= _BEHIND:
            found[picture.name] = _behind(results, picture)
    return found


def _behind(results: Results, picture: Picture) -> Table:
    columns = list(picture.data[0])
    if "number" in columns:  # the report's own, by number
        return _numbers(results, picture)
    if "verdict" in columns:
        return _ratios(results, picture)
    rows = [[cell(name, row[name]) for name in columns] for row in picture.data]
    numeric = [name for name in columns if not isinstance(picture.data[0][name], str)]
    said = plain_table(picture.title, [words.capital(name) for name in columns], rows)
    return replace(said, numeric=frozenset(map(words.capital, numeric)))


def _numbers(results: Results, picture: Picture) -> Table:
    latency = picture.name.endswith(".latency")
    rows = []
    for row in picture.data:
        stack = f"{row['storage']}+{row['layer']}" if row["layer"] != "none" else row["storage"]
        cells = [
            Cell(results.stacks[stack]),
            Cell(words.operation(row["operation"])),
            Cell(words.scale(row["nodes"], row["processes_per_node"])),
            *_measured(row, latency=latency),
        ]
        rows.append(("", [Cell(str(row["number"]), href=f"number-{row['number']}"), *cells]))
    last = ("p50", "p99") if latency else ("Median", "Interval")
    columns = ("Number", "Storage", "Operation", "Scale", *last)
    return Table(picture.title, columns, frozenset({"Number", *last}), rows)


def _measured(row: Mapping[str, Any], *, latency: bool) -> list[Cell]:
    if latency:
        return [Cell(seconds(row[name])) for name in ("latency_p50", "latency_p99")]
    metric = row["metric"]
    return [Cell(words.value(metric, row["median"])), Cell(words.interval_of(row))]


def _ratios(results: Results, picture: Picture) -> Table:
    rows = []
    for row in picture.data:
        cells = [
            Cell(results.title(row["experiment"], row["workload"])),
            Cell(words.operation(row["operation"])),
            Cell(words.times(row["ratio"])),
            Cell(words.factors(row["low"], row["high"])),
            Cell("undecided" if row["verdict"] == "undecided" else "claimed"),
        ]
        rows.append(("", cells))
    columns = ("Workload", "Operation", "Ratio", "Interval", "Verdict")
    return Table(picture.title, columns, frozenset({"Ratio", "Interval"}), rows)
