"""The tables of advice: placements, folders."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from tiercel.advice.answer import Advice
from tiercel.advice.bench import HOME
from tiercel.advice.words import label, title
from tiercel.pages.tables import Table, table
from tiercel.statistics.summary import summarize
from tiercel.units import format_latency, format_size

HEADINGS = ("files", "run", "interval", "copy in", "copy out", "times faster", "with copying", "runs", "")


@dataclass(frozen=True)
class Row:
    """One placement as words."""

    cells: tuple[str, ...]
    advised: bool


def placements(advice: Advice) -> list[Row]:
    """Return a row for each placement, home first, then the fastest."""
    if not advice.results:
        return []
    judged = {j.name: j for j in advice.judged}
    order = [HOME, *judged, *(n for n in advice.results if n not in judged and n != HOME)]
    best = advice.advised.name if advice.advised else HOME
    rows = []
    for name in order:
        result = advice.results[name]
        run = interval = copy_in = copy_out = faster = total = ""
        if result.seconds:
            summary = summarize(result.seconds)
            run = format_latency(median(result.seconds))
            interval = f"{format_latency(summary.low)}–{format_latency(summary.high)}"
        if name in judged:
            copy_in, copy_out = format_latency(result.copy_in), format_latency(result.copy_out)
            faster = f"{judged[name].run.ratio.median:.2g}×"
            total = f"{judged[name].total.ratio.median:.2g}×"
        word = judged[name].total.outcome if name in judged else ""
        said = result.why_not if not result.seconds else word
        cells = (title(advice, result), run, interval, copy_in, copy_out, faster, total,
                 str(len(result.seconds) or ""), said)  # fmt: skip
        rows.append(Row(cells, name == best))
    return rows


def placement_table(advice: Advice) -> Table | None:
    """Return the placements as a table of the page; None where none was measured."""
    rows = [list(row.cells) for row in placements(advice)]
    words = (
        "Run: median of the program's measured run times, copying not counted. Times faster: than where "
        "the files are; "
        "with copying: copying in and out added to each run."
    )
    return table(words, list(HEADINGS), rows, HEADINGS[1:-1]) if rows else None


def folder_table(advice: Advice) -> Table | None:
    """Return the working set; None where it is unknown."""
    rows = [
        [f.path, (format_size(f.size), f.size), label(advice, f.home),
         label(advice, advice.advised.result.candidate.places.get(f.path, f.home)) if advice.advised
         else label(advice, f.home)]
        for f in advice.folders
    ]  # fmt: skip
    return (
        table("The working set.", ["folder", "size", "lies on", "belongs on"], rows, ("size",))
        if rows
        else None
    )
