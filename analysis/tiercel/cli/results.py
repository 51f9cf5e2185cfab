"""Commands on results: collect, report, show."""
# Tables and figures take seconds to import, and a measuring job needs neither: each command imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tiercel.cli.options import Site, Study
from tiercel.errors import UserError
from tiercel.project import project_root, results_folder
from tiercel.results.validity import FLAGS
from tiercel.site import load_site
from tiercel.study.load import load_study


def register(app: typer.Typer) -> None:
    for command in (collect, report, show):
        app.command()(command)


def collect(site: Site = "local", study: Study = "quick") -> None:
    """Make observations.parquet, runs.parquet and dataset.nc from the raw folder."""
    from tiercel.results.current import current_runs
    from tiercel.results.dataset import write_dataset
    from tiercel.results.observations import collect as collect_tables

    results = _existing(site)
    name = load_study(study, project_root()).study
    observations, runs = collect_tables(results)
    counted = set(current_runs(runs[runs["study"] == name])["configuration"])
    of_study = observations[observations["configuration"].isin(counted)]
    try:
        write_dataset(of_study, results / "dataset.nc")
    except UserError as error:  # a huge sweep has no array; its table is whole
        print(f"tiercel: no dataset.nc: {error}", file=sys.stderr)


def report(site: Site = "local", study: Study = "quick") -> None:
    """Write the report from the tables."""
    from tiercel.report.build import build

    root = project_root()
    page = build(_existing(site), load_site(site, root), load_study(study, root), FLAGS)
    print(page)


def show(site: Site = "local", study: Study = "quick") -> None:
    """Print the results in short, and the path of the report."""
    from tiercel.report.terminal import print_summary

    root = project_root()
    print_summary(_existing(site), load_site(site, root), load_study(study, root))


def _existing(site: str) -> Path:
    results = results_folder(project_root(), site)
    if not results.is_dir():
        raise UserError(f"{results}: nothing measured yet: run `tiercel evaluate --site {site}`")
    return results
