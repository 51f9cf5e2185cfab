"""The page of advice: one HTML file with everything in it."""

from __future__ import annotations

import shlex
from pathlib import Path

import tiercel
from tiercel.advice.answer import Advice
from tiercel.advice.words import label, sentences
from tiercel.atomic_file import write_text
from tiercel.pages.environment import environment
from tiercel.pages.secured import secured
from tiercel.report import words
from tiercel.report.advice import tables
from tiercel.report.advice.figures import draw
from tiercel.report.advice.terminal import method
from tiercel.units import format_duration


def write_page(advice: Advice, folder: Path) -> Path:
    """Write ``index.html`` into `folder` and return its path."""
    pictures = draw(advice, folder / "figures")
    title = shlex.join(advice.program)
    head, *rest = sentences(advice)
    text = (
        environment("tiercel.report")
        .get_template("advice.html.j2")
        .render(
            title=title if len(title) <= 120 else f"{title[:119]}…",
            severities={},
            site=advice.site,
            head=head,
            rest=rest,
            pictures=pictures,
            placements=tables.placement_table(advice),
            folders=tables.folder_table(advice),
            notes=[words.capital(note) for note in [*method(advice), *advice.notes]],
            facts=_facts(advice),
            version=tiercel.__version__,
        )
    )
    return write_text(folder / "index.html", secured(text), errors="replace")


def _facts(advice: Advice) -> list[tuple[str, str]]:
    found = [("Site", advice.site.site), ("Started in", advice.cwd)]
    if advice.home:
        found.append(("Files lie on", label(advice, advice.home)))
    if advice.program_runs:
        found.append(("The program ran", f"{advice.program_runs} times"))
    if advice.seconds:
        found.append(("The answer took", format_duration(advice.seconds)))
    return found
