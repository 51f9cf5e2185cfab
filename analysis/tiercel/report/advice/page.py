"""The page of advice: one HTML file with everything in it."""

from __future__ import annotations

import shlex
from pathlib import Path

import tiercel
from tiercel.advice.answer import Advice
from tiercel.advice.document import moves_of
from tiercel.advice.words import label, sentences
from tiercel.atomic_file import write_text
from tiercel.pages.environment import environment
from tiercel.pages.secured import secured
from tiercel.report import words
from tiercel.report.advice import tables
from tiercel.report.advice.figures import draw
from tiercel.units import format_duration, format_latency

_NAMES = {
    "read": "reading",
    "write": "writing",
    "metadata": "opening, looking, removing...",
    "sync": "syncing",
}


def write_page(advice: Advice, folder: Path) -> Path:
    """Write ``index.html`` into `folder` and return its path."""
    pictures = draw(advice, folder / "figures")
    capture = advice.capture
    title = shlex.join(capture.argv) if capture else advice.trace.name
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
            ways=tables.ways(advice),
            units=tables.units(advice),
            storages=tables.storages(advice),
            findings=tables.findings(advice),
            plan=bool(moves_of(advice)),
            notes=[words.capital(note) for note in advice.notes],
            facts=_facts(advice),
            version=tiercel.__version__,
        )
    )
    return write_text(folder / "index.html", secured(text), errors="replace")


def _facts(advice: Advice) -> list[tuple[str, str]]:
    capture, io = advice.capture, advice.io
    found = [("Site", advice.site.site), ("Files lie on", label(advice, advice.home))]
    if capture is not None:
        cost = format_latency(capture.cost.delay)
        found += [
            ("Traced run", f"{format_duration(capture.seconds)}, exit code {capture.exit_code}"),
            ("Tracer", f"{capture.tracer} {capture.tracer_version}: {capture.why}; {cost} a call, taken out"),
        ]
    if io is not None:
        kinds = ", ".join(f"{_NAMES[k]} {format_latency(s)}" for k, s in io.by_kind.items() if s > 0)
        found.append(("I/O at home", f"{io.operations:,} calls, {format_latency(io.calls)}: {kinds}"))
    if advice.warm is not None:
        found.append(("Inputs", "were in the page cache" if advice.warm else "were not in the page cache"))
    if advice.mode:
        how = (
            "its I/O was replayed with its thinking between the calls"
            if advice.mode == "replayed"
            else "its I/O was replayed; the runs are reckoned from that, since the run is long for the budget"
        )
        found += [
            ("Measured", f"{how}, in {format_duration(advice.seconds)}"),
            ("Faithful", f"the trace's I/O time is {advice.fidelity:.2f} times the replay's at home"),
        ]
    return found
