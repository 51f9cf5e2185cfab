"""How `tiercel site ceilings` and `tiercel site whatif` print: a table for what is bounded alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, get_args

from rich import box
from rich.console import Console
from rich.table import Table

from tiercel.ceilings import Ceiling, Limit
from tiercel.ceilings.study import Row
from tiercel.pages.words import listed
from tiercel.site.model import Site
from tiercel.site.topology import Action, Direction, Stage
from tiercel.units import format_bandwidth, format_latency, format_rate

R = TypeVar("R")
ACTIONS: tuple[Action, ...] = get_args(Action)
Cells = tuple[str, ...]


def print_ceilings(rows: Sequence[Row], site: Site) -> None:
    """Print each scale's ceiling, the stage that sets it and the next one, and which figures are missing."""

    def cells(row: Row) -> Cells | None:
        found = row.ceiling
        if found is None:
            return None
        after = found.next
        then = f"{after.stage.stage}{_by(after)} {_shown(after.rate, row)}" if after else "not known"
        return _shown(found.rate, row), _set_by(found), then

    _print_tables(rows, lambda row: row, cells, ("ceiling", "set by", "next"), site)
    print("\n".join(lacking(rows, site)))


def print_stages(found: Mapping[str, Sequence[Stage]]) -> None:
    """Print what was measured of each storage's stages."""
    console = Console()
    for name, stages in found.items():
        table = Table(title=name, title_justify="left", box=box.SIMPLE)
        for heading in ("stage", "figure", "read", "write"):
            table.add_column(heading, justify="left" if heading in ("stage", "figure") else "right")
        for stage in stages:
            for figure, row in _figures(stage):
                table.add_row(stage.name, figure, *row)
        console.print(table)


def _figures(stage: Stage) -> Iterator[tuple[str, tuple[str, str]]]:
    def both(of: Callable[[Direction], float | None], show: Callable[[float], str]) -> tuple[str, str] | None:
        read, write = of("read"), of("write")
        return (show(read), show(write)) if read is not None and write is not None else None

    shown = {
        "bandwidth": both(stage.one_carries, format_bandwidth),
        "operations": both(stage.begins, lambda rate: f"{rate:,.0f}/s"),
        "latency": both(stage.adds, format_latency),
    }
    yield from ((figure, row) for figure, row in shown.items() if row)
    for action in ACTIONS:
        rate, alone = stage.does(action), stage.takes(action)
        if isinstance(stage.metadata, Mapping) and rate is not None and alone:
            yield f"{action} of files: all, one process", (f"{rate:,.0f}/s", f"{1 / alone:,.0f}/s")


def pair(before: Iterable[Row], after: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Return the rows of the same workload, storage and scale together."""
    later = {row.key: row for row in after}
    return [(row, later[row.key]) for row in before]


def print_change(pairs: Sequence[tuple[Row, Row]], site: Site) -> None:
    """Print what changes, and what binds then."""

    def cells(both: tuple[Row, Row]) -> Cells | None:
        old, new = (row.ceiling for row in both)
        if _core(old) == _core(new):
            return None
        ratio = f"{new.rate / old.rate:.3g} x" if old and new else ""
        shown = (_shown(each.rate, both[0]) if each else "not known" for each in (old, new))
        return (*shown, ratio, _set_by(new) if new else "")

    _print_tables(pairs, lambda both: both[0], cells, ("ceiling", "then", "change", "set by then"), site)
    changes = sum(cells(both) is not None for both in pairs)
    known = sum(old.ceiling is not None or new.ceiling is not None for old, new in pairs)
    print(f"{changes} of {known} ceilings change.")
    print("\n".join(lacking([new for _, new in pairs], site)))


def lacking(rows: Iterable[Row], site: Site) -> list[str]:
    """Return a sentence for each storage whose ceilings lack a figure, and each workload that has none."""
    none: dict[str, None] = {}
    given: dict[tuple[str, str, str, str], dict[str, None]] = {}
    for row in rows:
        if row.why:
            none[row.operation] = None
        elif row.missing:
            what = "no ceiling" if row.ceiling is None else "true ceilings may be lower"
            figure = "rate of it" if row.of_metadata else "bandwidth"
            key = (_storage(row, site), what, figure, ", ".join(row.missing))
            given.setdefault(key, {})[row.operation] = None
        elif row.ceiling is None:
            key = (_storage(row, site), "no ceiling", "rate of it", "any stage")
            given.setdefault(key, {})[row.operation] = None
    known = [
        f"{name}, {listed(list(operations))}: {what}: no {figure} is given for {stages}."
        for (name, what, figure, stages), operations in given.items()
    ]
    said = f"No ceiling for {', '.join(none)}: only reads, writes and metadata have one."
    return [*known, *([said] if none else [])]


def _print_tables(
    items: Sequence[R],
    row_of: Callable[[R], Row],
    cells_of: Callable[[R], Cells | None],
    headings: Cells,
    site: Site,
) -> None:
    """Print a table for each storage and set of workloads whose cells are the same at all scales."""
    scales: dict[tuple[str, str, str], list[tuple[int, int, Cells]]] = {}
    for item in items:
        row, cells = row_of(item), cells_of(item)
        if cells is not None:
            of = f"{row.workload} ({row.operation})" if row.of_metadata else row.workload
            where = (row.experiment, _storage(row, site), of)
            scales.setdefault(where, []).append((row.nodes, row.processes, cells))
    alike: dict[tuple[str, str, tuple[tuple[int, int, Cells], ...]], list[str]] = {}
    for (experiment, storage, workload), lines in scales.items():
        alike.setdefault((experiment, storage, tuple(sorted(lines))), []).append(workload)
    console = Console()
    for (experiment, storage, whole), workloads in alike.items():
        same: dict[Cells, list[tuple[int, int]]] = {}
        for nodes, processes, cells in whole:
            same.setdefault(cells, []).append((nodes, processes))
        table = Table(box=box.SIMPLE)
        for heading in ("nodes", "processes"):
            table.add_column(heading, justify="right", no_wrap=True)
        for heading in headings:
            table.add_column(heading, overflow="fold")
        for cells, at in same.items():
            table.add_row(_range(n for n, _ in at), _range(p for _, p in at), *cells)
        console.print(f"{storage}, {experiment}: {_listed(workloads)}", markup=False, highlight=False)
        console.print(table)


def _listed(workloads: Sequence[str]) -> str:
    most = 4  # a designed sweep has dozens
    more = len(workloads) - most
    return ", ".join(workloads[:most]) + (f" and {more} more" if more > 0 else "")


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _core(ceiling: Ceiling | None) -> tuple[float, str] | None:
    return (ceiling.rate, _set_by(ceiling)) if ceiling else None


def _shown(rate: float, row: Row) -> str:
    return format_rate(rate) if row.of_metadata else format_bandwidth(rate)


def _set_by(ceiling: Ceiling) -> str:
    return f"{ceiling.stage.name}{_by(ceiling.limits[0])}"


def _by(limit: Limit) -> str:
    return "" if limit.figure == "bandwidth" else f" ({limit.figure})"


def _storage(row: Row, site: Site) -> str:
    return site.storages[row.storage].label or row.storage
