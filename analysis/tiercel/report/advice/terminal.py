"""Advice in the terminal: the answer, a table of the ways, where the rest is."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiercel.advice.answer import Advice
from tiercel.advice.document import moves_of
from tiercel.advice.words import sentences, way_title
from tiercel.units import format_latency

_WIDTH = 100


def print_advice(advice: Advice, page: Path, document: Path) -> None:
    """Print the advice to standard output."""
    console = Console(highlight=False, width=min(_WIDTH, Console().width) if sys.stdout.isatty() else _WIDTH)
    head, *rest = sentences(advice)
    console.print(Text(head, style="bold"))
    for sentence in rest:
        console.print(Text(sentence))
    if len(advice.ways) > 1:
        console.print(_ways(advice))
    for finding in advice.findings[:3]:
        console.print(Text(f"{finding.severity}: {finding.sentence} {finding.advice}", style="dim"))
    for note in advice.notes:
        console.print(Text(f"note: {note}", style="dim"))
    if moves_of(advice):
        script = quote(str(document.parent / "plan" / "stage.sh"))
        console.print(Text(f"Plan: sh {script} in, run the program, sh {script} out"), soft_wrap=True)
    console.print(Text(f"Page: {page}"), soft_wrap=True)


def _ways(advice: Advice) -> Table:
    shown = Table(box=box.SIMPLE, pad_edge=False)
    shown.add_column("files")
    for heading in ("run", "interval", "copying", "saved", "replays"):
        shown.add_column(heading, justify="right", no_wrap=True)
    advised = advice.verdict.way.name if advice.verdict and not advice.refused else "home"
    for way in advice.ways:
        saved = "" if way.comparison is None else _signed(way.saved.median - way.copies)
        shown.add_row(
            Text(way_title(advice, way)), format_latency(way.run.median),
            f"{format_latency(way.run.low)}–{format_latency(way.run.high)}",
            "" if way.comparison is None else format_latency(way.copies), saved, str(way.n),
            style="bold" if way.name == advised else "",
        )  # fmt: skip
    return shown


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{format_latency(abs(seconds))}"
