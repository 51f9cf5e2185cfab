"""The page of a comparison: one HTML file with everything in it, figures and tables beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tiercel
from tiercel.atomic_file import write_text
from tiercel.compare.answer import Answer, Pair
from tiercel.pages.environment import environment
from tiercel.pages.secured import secured
from tiercel.pages.tables import Table
from tiercel.privacy import private
from tiercel.report import words
from tiercel.report.build import write_csv
from tiercel.report.comparison import records, sentences, tables
from tiercel.report.comparison.figures import draw, figure_names
from tiercel.report.comparison.folder import PAGE, check_free, own_files, write_list
from tiercel.report.data import Record


@dataclass(frozen=True)
class _Part:
    """What the page shows of one pair of sides, in its own section."""

    anchor: str
    heading: str
    ratios: Table | None
    details: Table | None
    reasons: Table | None
    alone: Table | None


def build_comparison(answer: Answer, folder: Path) -> Path:
    """Write the page into `folder`, with figures/ and tables/, and return its path.

    An earlier comparison there is replaced. Raises UserError, before anything is written, where the folder
    holds what no comparison wrote; OSError where it cannot be written.
    """
    own = own_files(folder)
    rows = _tables(answer)
    names = [PAGE, *rows, *(f"figures/{name}.svg" for name in figure_names(answer))]
    check_free(folder, own, names)
    folder.mkdir(parents=True, exist_ok=True)
    # Listed before they are written: what a cut-off comparison leaves is still its own.
    write_list(folder, {*own, *names})
    pictures = draw(answer, folder / "figures")
    (folder / "tables").mkdir(exist_ok=True)
    for name, records_of in rows.items():
        write_csv(folder / name, records_of)
    for name in set(own) - set(names):
        (folder / name).unlink(missing_ok=True)
    write_list(folder, names)
    base, *others = answer.sides
    text = (
        environment("tiercel.report")
        .get_template("comparison.html.j2")
        .render(
            title=f"{words.listed([side.name for side in others])} against {base.name}",
            severities={},
            summary=sentences.summary(answer),
            remarks=sentences.remarks(answer),
            differing=tables.differing(answer),
            equal=sentences.equal(answer),
            unknown=sentences.unknown(answer),
            sides=tables.sides(answer),
            pictures=pictures,
            parts=[_part(i, pair) for i, pair in enumerate(answer.pairs, 1)],
            version=tiercel.__version__,
        )
    )
    target = folder / PAGE
    return write_text(target, secured(private().text(text)))


def _part(number: int, pair: Pair) -> _Part:
    rows, details = pair.judged.rows, pair.judged.details
    caption = (
        f"{pair.other.name} over {pair.base.name}, over all scales that both have. Noise: of each side's own "
        "layout sessions. n: repetitions of baseline and other. p: t test, corrected for all "
        "rows."
    )
    return _Part(
        f"pair-{number}",
        f"{pair.other.name} against {pair.base.name}",
        tables.ratios(rows, caption) if rows else None,
        tables.ratios(details, "The same at each scale.") if details else None,
        tables.counted(pair),
        tables.alone(pair) if pair.alone else None,
    )


def _tables(answer: Answer) -> dict[str, list[Record]]:
    """Return the rows of each CSV file, by its name in the page's folder."""
    found = {}
    for number, pair in enumerate(answer.pairs, 1):
        for name, rows in (
            (f"ratios-{number}", records.matches(pair)),
            (f"without-partner-{number}", records.without_partner(pair)),
        ):
            if rows:
                found[f"tables/{name}.csv"] = rows
    return found
