"""Makes the report of a study on a site: figures, tables as CSV, and the page."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tiercel.atomic_file import drafted, write_text
from tiercel.pages.secured import secured
from tiercel.privacy import private
from tiercel.report.cell_limits import cell_limits
from tiercel.report.classes import classes
from tiercel.report.data import FlagText, Number, Record, Results
from tiercel.report.evidence import evidence
from tiercel.report.figures import draw_all
from tiercel.report.findings import find
from tiercel.report.html import FirstScreen, page
from tiercel.report.latex import write_latex
from tiercel.report.recommend import recommendations
from tiercel.report.sections import Context, make_sections
from tiercel.report.unfinished import Unfinished
from tiercel.report.verdict import verdict
from tiercel.report.verdict_figure import verdict_picture
from tiercel.site.model import Site
from tiercel.study.model import Study


def build(
    folder: Path,
    site: Site,
    study: Study,
    flags: Mapping[str, FlagText],
    *,
    latex: bool = False,
    missing: Unfinished | None = None,
) -> Path:
    """Write ``folder``/report/ from the tables in ``folder`` and return the path of its page.

    `latex` writes report/latex/, too: tables and figures for a paper. `missing`: what the study still lacks.
    """
    everything = Results.from_folder(folder, study, flags)
    return build_from(everything, folder, site, folder / "report", latex=latex, missing=missing)


def build_from(
    everything: Results,
    folder: Path,
    site: Site,
    report: Path,
    *,
    latex: bool = False,
    missing: Unfinished | None = None,
) -> Path:
    """As `build`, from results at hand, into the folder `report` beside ``folder``/raw."""
    results = everything.named()
    found = classes(results)
    said = verdict(everything, site, found)
    drawn_stacks = said.stacks if said else ()
    recommended = recommendations(results, site, folder, found)
    limits = cell_limits(results, folder, found, recommended[0])
    first = FirstScreen(said, verdict_picture(results, report / "figures", found, drawn_stacks), limits)
    pictures = draw_all(results, report / "figures")
    parts = make_sections(Context(folder, report / "figures", site, everything, recommended))
    drawn = [*([first.picture] if first.picture else []), *pictures]
    drawn += [p for part in parts for p in part.all_pictures]
    _remove_others(report / "figures", {p.name for p in drawn})
    for p in drawn:
        if p.data:
            write_csv(report / "figures" / f"{p.name}.csv", p.data)
    _write_tables(everything, report / "tables")
    target = report / "index.html"
    if latex:
        write_latex(results, drawn, report / "latex")
    behind = evidence(results, folder)
    text = page(results, site, first, pictures, find(results), parts, behind, missing)
    # The tables are clean (results.raw); what the site's file says of mounts may not be.
    return write_text(target, secured(private().text(text)))


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove figures of an earlier report that this one does not have."""
    for path in (p for kind in ("svg", "csv") for p in folder.glob(f"*.{kind}")):
        if path.stem not in names:
            path.unlink(missing_ok=True)  # another report of the same results may have been quicker


def _write_tables(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[Record]] = {
        "numbers": [_plain(n) for n in results.numbers],
        "comparisons": results.comparisons,
        "contrasts": results.contrasts,
        "scaling": results.scaling,
        "noise-floors": results.floors,
        "engine-agreement": results.agreement,
        "failed-runs": results.failed,
    }
    for name, rows in tables.items():
        path = folder / f"{name}.csv"
        if rows:
            write_csv(path, rows)
        else:
            path.unlink(missing_ok=True)


def _plain(number: Number) -> Record:
    values = {"number": number.anchor.removeprefix("number-"), **number.row}
    values["flags"] = [f"{code}:{share:g}" for code, share in number.row["flags"].items()]
    return values


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, of which there is at least one, whole or not at all.

    Texts that a spreadsheet would run are quoted; what is missing is empty.
    """
    rows = list(rows)
    with drafted(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)


#: What a formula begins with; never an empty text, which is in every text.
_FORMULA = frozenset("=+-@\t\r")


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(str(v) for v in value)
    if isinstance(value, float) and math.isnan(value):
        return ""
    # A spreadsheet would run a text that starts like a formula, some after a blank that is none to see.
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value
