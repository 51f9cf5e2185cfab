"""The page of two traces side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tiercel
from tiercel.atomic_file import write_text
from tiercel.pages.environment import environment
from tiercel.pages.secured import secured
from tiercel.pages.tables import Table, table
from tiercel.pages.words import MISSING, capital, count, name, plain, seconds
from tiercel.traces.against.compare import Comparison, Difference
from tiercel.traces.against.words import FATES, matched_words, verdict
from tiercel.traces.analysis.names import common_folder
from tiercel.traces.page import head
from tiercel.traces.page.calls import sizes_part
from tiercel.traces.page.findings import Shown, shown
from tiercel.traces.page.part import Drawing, Part, frame_table
from tiercel.traces.page.times import bandwidth_part, moved_over_time, overlap_part, peak
from tiercel.units import format_size

if TYPE_CHECKING:
    from tiercel.traces.against.side import Side

#: Files in the table.
TOP = 20
_DIFFERS = "What differs, times first; times in calls are sums over all processes."
#: Differences in words, before the table of all.
_TOLD = 5


def pair_page(comparison: Comparison, api: str | None = None) -> str:
    """Return the page of a comparison as text: one file, no network."""
    a, b = comparison.a, comparison.b
    parts = [_overlap(a, b, api), _bandwidth(a, b, api), _sizes(a, b)]
    return secured(
        environment("tiercel.traces.page")
        .get_template("pair.html.j2")
        .render(
            title=f"{name(a.name)} and {name(b.name)}",
            verdict=plain(verdict(comparison)),
            sides=[
                (s.letter, plain(s.frame.metadata.get("path", "")), head.command(s.frame),
                 head.facts(s.frame, s.numbers), plain(head.verdict(s.frame, s.numbers, s.findings)))
                for s in (a, b)
            ],
            told=[f"{capital(d.sentence)}." for d in comparison.differences[:_TOLD]],
            differences=differences_table(comparison.differences, _DIFFERS),
            same=differences_table(comparison.same, "What is the same in both."),
            incomparable=comparison.incomparable,
            layers=_layers(comparison),
            fates=[(words, _findings(comparison, key)) for key, words in FATES.items()],
            untold=[(letter, plain(f.sentence)) for letter, f in comparison.untold],
            parts=[part for part in parts if part.drawings],
            matched=matched_words(comparison),
            files=files_table(comparison, TOP),
            notes=comparison.notes,
            warnings=[
                (s.letter, [plain(w) for w in dict.fromkeys(s.numbers["warnings"][:TOP])]) for s in (a, b)
            ],
            severities={},
            version=tiercel.__version__,
        )
    )  # fmt: skip


def write_pair_page(comparison: Comparison, path: Path, api: str | None = None) -> Path:
    """Write `pair_page` to `path`, whole or not at all; return `path`."""
    return write_text(path, pair_page(comparison, api), errors="replace")


def differences_table(differences: list[Difference], caption: str) -> Table | None:
    """Return differences as rows: what, A, B, by how much, B over A; None where there are none."""
    rows = [
        [d.quantity.words, (d.quantity.show(d.a), d.a), (d.quantity.show(d.b), d.b),
         (d.quantity.show_difference(d.size), d.size),
         MISSING if d.ratio is None or d.quantity.unit == "1" else (f"{d.ratio:.4g}", d.ratio)]
        for d in differences
    ]  # fmt: skip
    columns = ["what", "A", "B", "difference", "B over A"]
    return table(caption, columns, rows, columns[1:]) if rows else None


def files_table(comparison: Comparison, top: int) -> Table | None:
    """Return the matched files whose time in calls changed most; None where none is matched."""
    files = comparison.files
    if files.empty:
        return None
    folder = common_folder([str(file) for file in files["file"]])
    where = f" In {name(folder)}." if folder else ""
    rows = []
    for row in files.head(top).to_dict("records"):
        change = row["io_time_change"]
        rows.append([
            name(str(row["file"]).removeprefix(folder)),
            *((seconds(row[f"io_time_{letter}"]), row[f"io_time_{letter}"]) for letter in "ab"),
            (f"{'+' if change > 0 else '−' if change < 0 else ''}{seconds(abs(change))}", change),
            *((format_size(row[f"bytes_{letter}"]), row[f"bytes_{letter}"]) for letter in "ab"),
        ])  # fmt: skip
    left = len(files) - len(rows)
    more = f" {count(left, 'matched file')} more." if left else ""
    columns = ["file (A's name)", "time A", "time B", "difference", "bytes A", "bytes B"]
    return table(
        f"Matched files, those whose time in calls changed most first.{where}{more}",
        columns,
        rows,
        columns[1:],
    )


def _findings(comparison: Comparison, fate: str) -> list[Shown]:
    """Return the findings that had this fate, as B says them where it does."""
    mine = [found.b or found.a for found in comparison.found if found.fate == fate]
    return shown([finding for finding in mine if finding is not None])


def _layers(comparison: Comparison) -> Table:
    times = {"data_s": "data time", "metadata_s": "metadata time", "sync_s": "sync time"}
    names = {
        column: f"{times.get(what, what)} {letter.upper()}"
        for column in comparison.layers.columns if column != "layer"
        for what, _, letter in [str(column).rpartition("_")]
    }  # fmt: skip
    caption = "Calls of each layer; times are sums over all processes."
    return frame_table(caption, comparison.layers.rename(columns=names))


def _both(anchor: str, heading: str, a: Part, b: Part, note: str = "") -> Part:
    drawings = [
        Drawing(f"{letter}: {drawing.title}", drawing.markup, drawing.caption)
        for letter, part in (("A", a), ("B", b)) for drawing in part.drawings
    ]  # fmt: skip
    silent = [
        f"{letter}: {' '.join(part.sentences)}" for letter, part in (("A", a), ("B", b)) if not part.drawings
    ]
    return Part(
        anchor, heading, tuple(silent) if drawings else (), tuple(drawings), notes=(note,) if note else ()
    )


def _overlap(a: Side, b: Side, api: str | None) -> Part:
    left, right = (overlap_part(s.frame, s.numbers, api, calls=False) for s in (a, b))
    return _both("overlap", "I/O against computation", left, right, "Each has a time axis of its own.")


def _bandwidth(a: Side, b: Side, api: str | None) -> Part:
    overs = [moved_over_time(s.frame, api) for s in (a, b)]
    # One scale for both, so that what is higher is more.
    top = max((peak(over) for over in overs if over is not None), default=0.0)
    left, right = (bandwidth_part(s.frame, over, top) for s, over in zip((a, b), overs, strict=True))
    return _both("bandwidth", "Bandwidth over time", left, right, "Each has a time axis of its own.")


def _sizes(a: Side, b: Side) -> Part:
    return _both("sizes", "Transfer sizes", sizes_part(a.numbers), sizes_part(b.numbers))
