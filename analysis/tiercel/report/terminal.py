"""The summary that ends an evaluation: a short table, what failed, the first findings, the page."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.errors import one_line
from tiercel.report import words
from tiercel.report.data import Number, Results
from tiercel.report.figures import largest
from tiercel.report.findings import find, top
from tiercel.report.html import SEVERITIES
from tiercel.results.validity import FLAGS
from tiercel.study.model import Study
from tiercel.units import format_latency

_WIDTH = 80


def print_summary(folder: Path, study: Study, file: IO[str] | None = None) -> None:
    """Print the results of a study in at most 80 columns; plain text where it is no terminal."""
    results = Results.from_folder(folder, study, FLAGS).named()
    out = file or sys.stdout
    if out.isatty():
        width = min(_WIDTH, Console(file=out).width)
        _print(results, Console(file=out, width=width, highlight=False), folder)
        return
    plain = io.StringIO()
    _print(results, Console(file=plain, width=_WIDTH, highlight=False, color_system=None), folder)
    out.write("".join(f"{line.rstrip()}\n" for line in plain.getvalue().splitlines()))


def _print(results: Results, console: Console, folder: Path) -> None:
    if results.numbers:
        console.print(_table(results))
        marks = [mark for mark in _MARKS if any(mark in _marks(n) for n in results.numbers)]
        if marks:
            console.print(Text("; ".join(f"{mark} {_MARKS[mark]}" for mark in marks), style="dim"))
        console.print()
    for finding in top(find(results)):
        line = Text(f"{SEVERITIES[finding.severity]}: ", style="bold")
        console.print(line.append(one_line(finding.sentence), style="not bold"))
    traced = f"{results.traced} traced, " if results.traced else ""
    runs = f"{words.count(results.ok, 'run')} gave numbers, {traced}{len(results.failed)} failed."
    console.print(Text(runs, style="bold red" if results.failed else "bold"))
    page = folder / "report" / "index.html"
    if page.is_file():
        # Not wrapped: a path in two lines cannot be opened.
        console.print(Text(f"Report: {page}"), soft_wrap=True)


_MARKS = {
    "!": "did not pass a validity check, enters no comparison",
    "?": "not proven to come from the storage",
    "i": "imported",
    "s": "simulated",
}


def _marks(n: Number) -> str:
    cold = "" if n.cold or n.invalid else "?"
    return ("!" if n.invalid else "") + cold + {"imported": "i", "simulated": "s"}.get(n.origin, "")


def _table(results: Results) -> Table:
    table = Table(
        title=f"{results.study.title or results.study.study}: medians at the largest scale",
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
        header_style="bold",
        title_style="bold",
    )
    table.add_column("workload", overflow="fold", ratio=2)
    table.add_column("storage", overflow="fold", ratio=2)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("p99", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    heading, before = "", ("", "")
    for n in _rows(results):
        metadata = n.metric != "bandwidth"
        name = f"  {words.operation(n.operation)}" if metadata else str(n.workload)
        if metadata and n.workload != heading:
            table.add_row(Text(one_line(n.workload)))
        first = (heading, name) != before
        before, heading = (n.workload, name), n.workload
        table.add_row(
            Text(one_line(name if first else "")),
            Text(one_line(n.stack)),
            n.value,
            words.span(n.metric, n.median, n.low, n.high),
            format_latency(n.latency_p99, 2),
            str(n.n),
            _marks(n),
        )
    return table


def _rows(results: Results) -> list[Number]:
    """Return the numbers at the largest scale of each workload and operation, by the study's main engine."""
    groups: dict[tuple[str, ...], list[Number]] = {}
    for n in results.numbers:
        if n.engine == results.main_engine(n.experiment, n.workload):
            groups.setdefault((n.experiment, n.workload, n.operation), []).append(n)
    return [n for group in groups.values() for n in largest(group)]
