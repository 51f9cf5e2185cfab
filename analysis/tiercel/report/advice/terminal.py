"""Advice in the terminal: the answer, a table of the placements, where the rest is."""

from __future__ import annotations

import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.advice.answer import Advice
from tiercel.advice.words import sentences
from tiercel.report.advice.tables import HEADINGS, placements
from tiercel.units import format_latency

_WIDTH = 100


def print_advice(advice: Advice, page: Path, command: str = "") -> None:
    """Print the advice to standard output. `command`: what runs the program as advised."""
    console = Console(highlight=False, width=min(_WIDTH, Console().width) if sys.stdout.isatty() else _WIDTH)
    head, *rest = sentences(advice)
    console.print(Text(head, style="bold"))
    for sentence in rest:
        console.print(Text(sentence))
    rows = placements(advice)
    if rows:
        shown = Table(box=box.SIMPLE, pad_edge=False)
        shown.add_column(HEADINGS[0])
        for heading in HEADINGS[1:-1]:
            shown.add_column(heading, justify="right")
        shown.add_column(HEADINGS[-1])
        for row in rows:
            shown.add_row(*(Text(cell) for cell in row.cells), style="bold" if row.advised else "")
        console.print(shown)
    for note in [*method(advice), *advice.notes]:
        console.print(Text(f"Note: {note}", style="dim"))
    if command:
        console.print(Text(f"Run it so: {command}", style="bold"), soft_wrap=True)
    elif advice.advised is not None:
        console.print(Text("`tiercel advise --apply -- PROGRAM` writes the script that does it."))
    console.print(Text(f"Page: {page}"), soft_wrap=True)


def method(advice: Advice) -> list[str]:
    """Return how the times were measured, in a sentence; nothing where there are none."""
    if advice.method != "trials" or not advice.judged:
        return []
    cache = (
        "the page cache was emptied before each run"
        if advice.cold
        else "the files were in the page cache; the first run on each storage does not count"
    )
    return [
        f"the program ran {advice.program_runs} times in {advice.seconds:.0f} s, on copies of its files; "
        f"{cache}",
        f"copying includes the staging script's own {format_latency(advice.script)}",
    ]
