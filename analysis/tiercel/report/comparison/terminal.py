"""A comparison in the terminal: sentences, what differs, the rows that say most, the page."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.compare.answer import Answer, Pair, reasons, worst_first
from tiercel.errors import one_line
from tiercel.report import words
from tiercel.report.comparison.sentences import (
    SIGNS,
    differing,
    equal,
    remarks,
    stack_of,
    summary,
    title_of,
    unknown,
)

_WIDTH = 100
_ROWS = 20


def print_answer(answer: Answer, page: Path | None, file: IO[str] | None = None) -> None:
    """Print in at most 100 columns; plain text where it is no terminal."""
    out = file or sys.stdout
    if out.isatty():
        width = min(_WIDTH, Console(file=out).width)
        _print(answer, page, Console(file=out, width=width, highlight=False))
        return
    plain = io.StringIO()
    _print(answer, page, Console(file=plain, width=_WIDTH, highlight=False, color_system=None))
    out.write("".join(f"{line.rstrip()}\n" for line in plain.getvalue().splitlines()))


def _print(answer: Answer, page: Path | None, console: Console) -> None:
    for said in summary(answer):
        console.print(Text(f"{one_line(said)}.", style="bold"))
    console.print()
    different = differing(answer)
    console.print(Text("Differences: ", style="bold").append(_plain("; ".join(different) or "nothing")))
    if same := equal(answer):
        console.print(Text("Equal: ", style="dim").append(f"{one_line(same)}."))
    if unsaid := unknown(answer):
        console.print(Text("Unknown on a side: ", style="bold").append(_plain(unsaid)))
    for pair in answer.pairs:
        if pair.rows:
            console.print()
            console.print(_table(pair))
            left = len(pair.rows) - _ROWS
            if left > 0:
                console.print(Text(f"and {left} more, all on the page", style="dim"))
        if pair.alone:
            console.print()
            counts = "; ".join(f"{n} {reason}" for reason, n in reasons(pair.alone))
            console.print(Text("Numbers without a partner: ", style="bold").append(_plain(counts)))
    console.print()
    for said in remarks(answer):
        console.print(Text("Note: ", style="bold").append(_plain(said)))
    if page:
        # Not wrapped: a path in two lines cannot be opened.
        console.print(Text(f"Page: {one_line(str(page))}"), soft_wrap=True)


def _plain(text: str) -> Text:
    return Text(one_line(text) + ".", style="not bold")


def _table(pair: Pair) -> Table:
    table = Table(
        title=f"{one_line(pair.other.name)} over {one_line(pair.base.name)}",
        title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False,
        header_style="bold", title_style="bold",
    )  # fmt: skip
    mixed = pair.origins != ["measured"]
    table.add_column("", no_wrap=True)
    table.add_column("workload", overflow="fold", ratio=3)
    table.add_column("storage", overflow="fold", ratio=2)
    if mixed:
        table.add_column("origin", overflow="fold")
    for name in ("ratio", "interval", "noise"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in worst_first(pair.rows)[:_ROWS]:
        c = row.comparison
        noise = words.factors(c.floor.low, c.floor.high) if c.floor.known else "unknown"
        table.add_row(
            SIGNS[row.outcome],
            Text(one_line(title_of(row.match.base))),
            Text(one_line(stack_of(row))),
            *([row.origin] if mixed else []),
            words.times(c.ratio),
            words.factors(c.low, c.high) if math.isfinite(c.low) else words.MISSING,
            noise,
            row.outcome,
        )
    return table
