"""Commands on results: collect and report, which make what is handed on, and show."""
# Tables and figures take seconds to import, and a measuring job needs neither: each command imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json, Site, Study
from tiercel.cli.panels import HAND_ON
from tiercel.errors import UserError
from tiercel.project import project_root


def register(app: typer.Typer) -> None:
    for command in (collect, report):
        app.command(rich_help_panel=HAND_ON)(command)


def collect(site: Site = "local", study: Study = "quick") -> None:
    """Build the result tables from the raw runs: observations.parquet, runs.parquet, dataset.nc."""
    from tiercel.results.study_tables import make_tables
    from tiercel.site.measured import measured_folder
    from tiercel.study.load import load_study

    root = project_root()
    if why := make_tables(measured_folder(site, root), load_study(study, root)):
        print(f"tiercel: dataset.nc does not contain the points of sweeps: {why}", file=sys.stderr)


def report(
    site: Site = "local",
    study: Study = "quick",
    latex: Annotated[
        bool, typer.Option("--latex", help="Also write tables and figures for a paper (LaTeX booktabs, PDF).")
    ] = False,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also write the page as a PDF (needs Chromium).")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Refresh the page while the study runs."),
    ] = False,
) -> None:
    """Write the HTML report from the result tables.

    Example: tiercel report --study quick --pdf
    """
    if follow:
        from tiercel.cli.following import follow_study

        if latex or pdf:
            raise UserError("--follow writes a page for the browser: run --latex and --pdf without --follow")
        follow_study(site, study, project_root())
        return
    from tiercel.cli.following import missing_of
    from tiercel.report.build import build
    from tiercel.report.printing import browser, write_pdf
    from tiercel.results.validity import FLAGS
    from tiercel.runs.begun import check_begun
    from tiercel.site import load_site
    from tiercel.site.measured import measured_folder
    from tiercel.study.load import load_study

    root = project_root()
    folder = measured_folder(site, root)
    program = browser() if pdf else ""  # before minutes are spent on the rest
    measured, asked = load_site(site, root), load_study(study, root)  # first: a mistake in them is one line
    check_begun(folder, site, asked.study)
    missing = missing_of(site, study, root)
    page = build(folder, measured, asked, FLAGS, latex=latex, missing=missing)
    print(page)
    if latex:
        print(page.parent / "latex")
    if pdf:
        print(write_pdf(page, program))


def show(site: Site = "local", study: Study = "quick", as_json: Json = False) -> None:
    """Print a summary of the results and the path of the report.

    Example: tiercel show --json
    """
    from tiercel.report.document import document
    from tiercel.report.terminal import print_summary
    from tiercel.runs.begun import check_begun
    from tiercel.site import load_site
    from tiercel.site.measured import measured_folder
    from tiercel.study.load import load_study

    root = project_root()
    asked = measured_folder(site, root), load_site(site, root), load_study(study, root)
    check_begun(asked[0], site, asked[2].study)
    if as_json:
        print_json(document(*asked))
    else:
        print_summary(*asked)
